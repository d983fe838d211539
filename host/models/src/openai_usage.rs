//! What a reply has cost, as both interfaces of OpenAI say it.

use cofferdam_agent::TokenUsage;

use super::fields::Fields;

/// Reads the tokens. `input` and `output` are what the interface calls the two sides.
pub(super) fn read(usage: &Fields<'_>, input: &str, output: &str) -> TokenUsage {
    let count = |side: &str| usage.count(&format!("{side}_tokens")).unwrap_or(0);
    let detail = |side: &str, key| {
        usage
            .object(&format!("{side}_tokens_details"))
            .and_then(|details| details.count(key))
            .unwrap_or(0)
    };
    let (read, written) = (count(input), count(output));
    TokenUsage {
        input: read,
        output: written,
        total: usage.count("total_tokens").unwrap_or(read.saturating_add(written)),
        cached_input: detail(input, "cached_tokens"),
        reasoning: detail(output, "reasoning_tokens"),
    }
}
