//! Errors of runs.

use crate::middleware::FunctionError;
use crate::{BoxError, BudgetExceeded, ChatError, InvalidAnswer};

/// Error of a run. The messages are for the operator; the model does not see them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run was canceled (`LOOP-15`).
    #[error("cancelled")]
    Cancelled,
    /// The model request failed.
    #[error(transparent)]
    Chat(ChatError),
    /// A token budget is used up (`LOOP-49`).
    #[error(transparent)]
    BudgetExceeded(#[from] BudgetExceeded),
    /// The answer does not have the form that the run asks for (`LOOP-66`).
    #[error(transparent)]
    Answer(#[from] InvalidAnswer),
    /// Too many consecutive calls failed (`LOOP-18`). Contains the failures of the last iteration,
    /// in call order.
    #[error("{}", joined(.0))]
    Calls(Vec<CallFailure>),
    /// Too many agents would be nested (`LOOP-57`).
    #[error("agents are nested deeper than {depth_max}")]
    TooDeep {
        /// Maximum number of nested agents, the outermost included.
        depth_max: u32,
    },
    /// Earlier runs of the session had a guard that the agent does not have.
    #[error("the session was begun with the guard `{guard}`, and the agent does not have it")]
    GuardMissing {
        /// Name of the guard.
        guard: String,
    },
    /// The run needs input that its caller cannot give. The string says for what, and may be shown
    /// to a model.
    #[error("{0}")]
    NeedsInput(String),
    /// Function middleware ended the run (`MW-13`).
    #[error(transparent)]
    FailClosed(BoxError),
    /// Code of the caller failed: a hook, a context provider or middleware.
    #[error(transparent)]
    Other(BoxError),
}

/// Failure of one call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailure {
    /// The tool does not exist (`LOOP-12`).
    #[error("Requested function \"{name}\" not found.")]
    Unknown {
        /// Name that the model called.
        name: String,
    },
    /// The tool exists but was not advertised (`CHOICE-14`).
    #[error("Function call request for a function that wasn't defined. Correct yourself.")]
    NotAdvertised,
    /// The call returned an error.
    #[error(transparent)]
    Failed(#[from] FunctionError),
    /// The call returned the message about a failure that the model sees.
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
