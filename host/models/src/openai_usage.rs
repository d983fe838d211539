//! Token usage as both APIs of OpenAI report it.

use cofferdam_agent::TokenUsage;

use super::fields::Fields;

/// Reads the token usage. `input` and `output` are the API's names of the two sides.
pub(super) fn read(usage: &Fields<'_>, input: &str, output: &str) -> TokenUsage {
    let count = |side: &str| usage.count(&format!("{side}_tokens")).unwrap_or(0);
    let detail = |side: &str, key| {
        usage
            .object(&format!("{side}_tokens_details"))
            .and_then(|details| details.count(key))
            .unwrap_or(0)
    };
    let (read, written) = (count(input), count(output));
    let both = read.saturating_add(written);
    TokenUsage {
        input: read,
        output: written,
        // Budgets count the total, so a service cannot report less than both sides.
        total: usage.count("total_tokens").unwrap_or(0).max(both),
        cached_input: detail(input, "cached_tokens"),
        cache_write_input: detail(input, "cache_write_tokens"),
        reasoning: detail(output, "reasoning_tokens"),
    }
}
