//! Exact counting for models of OpenAI.

use bpe_openai::Tokenizer;

use super::TokenCounter;

/// Counter with the tokenizers of OpenAI. Strings are counted exactly; frames, images and files as
/// by default.
#[derive(Clone, Copy)]
pub struct OpenAiTokens {
    tokenizer: &'static Tokenizer,
}

impl OpenAiTokens {
    /// Creates a counter for a model. GPT-3.5, GPT-4 and GPT-4 Turbo use `cl100k_base`, all newer
    /// models `o200k_base`.
    #[must_use]
    pub fn for_model(model: &str) -> Self {
        let is_old = model == "gpt-4"
            || ["gpt-4-", "gpt-3.5"].iter().any(|prefix| model.starts_with(prefix));
        let tokenizer = if is_old { bpe_openai::cl100k_base() } else { bpe_openai::o200k_base() };
        Self { tokenizer }
    }
}

impl TokenCounter for OpenAiTokens {
    fn text(&self, text: &str) -> u64 {
        u64::try_from(self.tokenizer.count(text)).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Debug for OpenAiTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiTokens").finish_non_exhaustive()
    }
}
