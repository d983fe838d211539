//! Counting of tokens (`SES-20`).

use crate::{Data, Message, MessageContent};

/// Tokens of the frame around each message.
const MESSAGE_TOKENS: u64 = 4;
/// Tokens of an image.
const IMAGE_TOKENS: u64 = 1600;
/// Tokens of a page of a PDF file.
const PAGE_TOKENS: u64 = 3000;
/// Bytes of a PDF file that count as one page.
const PAGE_BYTES: u64 = 50_000;

/// Counts the tokens of messages before they are sent.
pub trait TokenCounter: Send + Sync {
    /// Returns the tokens of a string of prose, such as instructions.
    fn text(&self, text: &str) -> u64;

    /// Returns the tokens of JSON and program text, such as definitions of functions, arguments and
    /// results.
    fn data(&self, text: &str) -> u64 {
        self.text(text)
    }

    /// Returns the tokens of a message, including its frame. By default they are the tokens of its
    /// strings, plus 4 for the frame, 1,600 for an image, and 3,000 for each 50 kB begun of another
    /// file. Encrypted reasoning and approvals count as nothing.
    fn message(&self, message: &Message) -> u64 {
        let content = |content: &MessageContent| match content {
            MessageContent::Text(text) => self.text(&text.text),
            MessageContent::Reasoning(reasoning) => self.text(&reasoning.text),
            MessageContent::Data(data) => file(data),
            MessageContent::FunctionCall(call) => {
                self.text(&call.name).saturating_add(self.data(&call.arguments))
            }
            MessageContent::FunctionResult(result) => {
                self.data(&result.result).saturating_add(result.items.iter().map(file).sum())
            }
            _ => 0,
        };
        message.contents.iter().map(content).fold(MESSAGE_TOKENS, u64::saturating_add)
    }
}

/// Estimate for any model: a quarter of the bytes of ASCII prose, a third of the bytes of other
/// strings and of data, rounded up.
///
/// Tokenizers differ: newer models of Anthropic make about 30 % more tokens of the same string,
/// which is `TokenEstimate::percent(130)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenEstimate {
    percent: u64,
}

impl Default for TokenEstimate {
    fn default() -> Self {
        Self { percent: 100 }
    }
}

impl TokenEstimate {
    /// Creates an estimate that is this percentage of the default one.
    #[must_use]
    pub fn percent(percent: u64) -> Self {
        Self { percent }
    }

    fn scaled(self, bytes: usize, bytes_per_token: u64) -> u64 {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        bytes.saturating_mul(self.percent).div_ceil(bytes_per_token.saturating_mul(100))
    }
}

impl TokenCounter for TokenEstimate {
    fn text(&self, text: &str) -> u64 {
        self.scaled(text.len(), if text.is_ascii() { 4 } else { 3 })
    }

    fn data(&self, text: &str) -> u64 {
        self.scaled(text.len(), 3)
    }
}

fn file(data: &Data) -> u64 {
    if data.media_type.starts_with("image/") {
        return IMAGE_TOKENS;
    }
    // Base64 has 4 characters for 3 bytes.
    let bytes = u64::try_from(data.data.len()).unwrap_or(u64::MAX) / 4 * 3;
    bytes.div_ceil(PAGE_BYTES).saturating_mul(PAGE_TOKENS)
}
