//! What a program needs of the host: calls of tools that run side by side.

use cofferdam_sdk::Content;

/// Starts calls and waits for their ends.
pub trait Host {
    /// Starts a call and returns its number without waiting.
    fn start(&self, name: &str, arguments: &str) -> u32;

    /// Waits until a call has ended, and returns all that have. Empty if none is running.
    fn wait_any(&self) -> Vec<EndedCall>;
}

/// A call that has ended.
#[derive(Debug)]
pub struct EndedCall {
    /// Number of the call.
    pub call: u32,
    /// Items of the result, or the error.
    pub outcome: Result<Vec<Content>, CallError>,
}

/// Error of a call.
#[derive(Debug, Clone, Default)]
pub struct CallError {
    /// Kind of the error: `unknown-tool`, `invalid-arguments`, `failed`, `ended`, `denied`,
    /// `too-deep` or `limit`.
    pub code: &'static str,
    /// Description for the model.
    pub message: String,
    /// Advice for the model.
    pub suggestion: Option<String>,
    /// JSON value of a failure that the tool reported.
    pub value: Option<String>,
}
