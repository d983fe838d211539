//! Why there is no reply.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why there is no reply. The message is for the person who runs the host; it holds no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChatError {
    /// What kind of thing went wrong.
    pub kind: ChatErrorKind,
    /// What went wrong, and what to do about it where that is known.
    pub message: String,
    /// How long the provider asks to wait before the next try.
    pub retry_after: Option<Duration>,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChatErrorKind {
    /// The run was cancelled.
    Cancelled,
    /// The provider does not know who asks, or does not let them: HTTP 401 and 403.
    Unauthorized,
    /// The provider refuses the request as it is: other 4xx.
    Rejected,
    /// Too many requests, or the provider has no room: 429 and 529.
    Overloaded,
    /// The provider failed: 5xx.
    Server,
    /// The provider cannot be reached, or the connection broke.
    Connection,
    /// The provider did not answer, or stopped answering, in the time it has.
    Timeout,
    /// What came back is not what this provider's interface says.
    Malformed,
    /// What came back is larger than the limit.
    TooLarge,
    /// The client cannot be set up, or cannot say what it is asked to say.
    Configuration,
    /// A scripted client has no more replies.
    ScriptEnded,
}

impl ChatErrorKind {
    /// Whether the same request may succeed a little later.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Overloaded | Self::Server | Self::Connection | Self::Timeout)
    }
}

impl ChatError {
    /// An error with a message for the person who runs the host.
    pub fn new(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }

    /// The run was cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(ChatErrorKind::Cancelled, "cancelled")
    }
}
