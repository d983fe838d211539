//! Errors of model requests.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Error of a model request. The message is for the operator and contains no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChatError {
    /// Kind of the error.
    pub kind: ChatErrorKind,
    /// Description of the error, with a remedy if one is known.
    pub message: String,
    /// Pause that the provider asks for before the next attempt.
    pub retry_after: Option<Duration>,
}

/// Kind of a [`ChatError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatErrorKind {
    /// The run was canceled.
    Cancelled,
    /// The provider rejects the credentials: HTTP 401 and 403.
    Unauthorized,
    /// The provider rejects the request: other 4xx.
    Rejected,
    /// The provider limits the rate of requests or is overloaded: 429 and 529.
    Overloaded,
    /// The provider failed: 5xx.
    Server,
    /// The provider cannot be reached, or the connection broke.
    Connection,
    /// The provider did not respond, or stopped responding, in time.
    Timeout,
    /// The response does not have the form that the provider's API defines.
    Malformed,
    /// The response exceeds a limit.
    TooLarge,
    /// The client's configuration is invalid, or it cannot express the request.
    Configuration,
    /// A scripted client has no more replies.
    ScriptEnded,
}

impl ChatErrorKind {
    /// Returns whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Overloaded | Self::Server | Self::Connection | Self::Timeout)
    }
}

impl ChatError {
    /// Creates an error with a message for the operator.
    pub fn new(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// Creates the error of a canceled run.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ChatErrorKind::Cancelled, "cancelled")
    }
}
