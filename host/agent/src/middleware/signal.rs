//! What middleware says instead of going on.

use cofferdam_tool::{InvalidArguments, Refused, ToolError, ToolFailure};

use super::FunctionValue;
use crate::{BoxError, RunError};

/// What agent and chat middleware say instead of going on.
#[derive(Debug)]
pub enum Signal<T> {
    /// The run ends here, and nothing is raised: with this, with what was set before, or with
    /// nothing (`MW-15`).
    Terminate(Option<T>),
    /// The run ends with this error.
    Error(RunError),
}

/// What function middleware says instead of going on.
#[derive(Debug)]
pub enum FunctionSignal {
    /// The call ends here and the loop after this batch: with this, with what was set before, or
    /// with the empty text (`MW-12`).
    Terminate(Option<FunctionValue>),
    /// The run ends with this error, and the call has no result (`MW-13`).
    FailClosed(BoxError),
    /// The call failed; the model is told so, in the loop's words (`MW-10`, `MW-11`).
    Error(FunctionError),
    /// The run was cancelled (`LOOP-15`).
    Cancelled,
}

/// Why a call has no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The arguments do not decode; the tool has not run (`LOOP-13`).
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The tool was called, or has failed, as often as it may (`RES-23`).
    #[error("{0}")]
    UsedUp(Refused),
    /// The tool reported a failure.
    #[error("{}", .0.message)]
    Failure(ToolFailure),
    /// A trap, a limit, a denial, or an error of a host tool.
    #[error("{}", .0.detail.as_deref().unwrap_or(.0.type_name()))]
    Tool(ToolError),
    /// Middleware has failed, or a tool in its hands (`MW-11`).
    #[error("{0}")]
    Other(BoxError),
}

impl FunctionError {
    /// Whether trying again may help (`RES-9`); `None` if that is not known.
    #[must_use]
    pub fn is_transient(&self) -> Option<bool> {
        match self {
            Self::InvalidArguments(_) | Self::UsedUp(_) => Some(false),
            Self::Failure(failure) => failure.transient,
            Self::Tool(error) => error.transient(),
            Self::Other(_) => None,
        }
    }
}

impl<T> From<RunError> for Signal<T> {
    fn from(error: RunError) -> Self {
        Self::Error(error)
    }
}

impl From<FunctionError> for FunctionSignal {
    fn from(error: FunctionError) -> Self {
        Self::Error(error)
    }
}

impl From<BoxError> for FunctionSignal {
    fn from(error: BoxError) -> Self {
        Self::Error(FunctionError::Other(error))
    }
}
