//! Why a run has no response.

use crate::middleware::FunctionError;
use crate::{BoxError, BudgetExceeded, ChatError};

/// Why a run has no response. Texts are for the person who runs the host; no model sees them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run was cancelled (`LOOP-15`).
    #[error("cancelled")]
    Cancelled,
    /// The model gave no reply.
    #[error(transparent)]
    Chat(ChatError),
    /// A token budget is used up (`LOOP-49`).
    #[error(transparent)]
    BudgetExceeded(#[from] BudgetExceeded),
    /// Calls failed as often in a row as they may (`LOOP-18`): those of the last round, in call
    /// order.
    #[error("{}", joined(.0))]
    Calls(Vec<CallFailure>),
    /// Function middleware has closed the run (`MW-13`).
    #[error(transparent)]
    FailClosed(BoxError),
    /// Code of the caller failed: a hook, a context provider, middleware.
    #[error(transparent)]
    Other(BoxError),
}

/// A call that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// There is no such tool (`LOOP-12`).
    #[error("Requested function \"{name}\" not found.")]
    Unknown {
        /// What the model called.
        name: String,
    },
    /// There is one, and the model was not told of it (`CHOICE-14`).
    #[error("Function call request for a function that wasn't defined. Correct yourself.")]
    NotAdvertised,
    /// The call has no value.
    #[error(transparent)]
    Failed(#[from] FunctionError),
    /// The call gave what the model is told about a failure.
    #[error("{0}")]
    Shown(String),
}

fn joined(failures: &[CallFailure]) -> String {
    let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

impl From<ChatError> for RunError {
    fn from(error: ChatError) -> Self {
        match error.kind {
            crate::ChatErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Chat(error),
        }
    }
}
