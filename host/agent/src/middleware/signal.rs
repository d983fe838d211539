//! Signals by which middleware ends a step early.

use cofferdam_tool::{InvalidArguments, RefusedCall, ToolError, ToolFailure};

use super::FunctionValue;
use crate::{BoxError, RunError};

/// Reason for agent or chat middleware to end early.
#[derive(Debug)]
pub enum Signal<T> {
    /// Ends the run without an error: with this value, with the one set before, or with nothing
    /// (`MW-15`).
    Terminate(Option<T>),
    /// Ends the run with this error.
    Error(RunError),
}

/// Reason for function middleware to end early.
#[derive(Debug)]
pub enum FunctionSignal {
    /// Ends the call, and the loop after this batch: with this value, with the one set before, or
    /// with the empty string (`MW-12`).
    Terminate(Option<FunctionValue>),
    /// Ends the run with this error; the call has no result (`MW-13`).
    FailClosed(BoxError),
    /// Fails the call; the model sees a generic message of the loop (`MW-10`, `MW-11`).
    Error(FunctionError),
    /// The run was canceled (`LOOP-15`).
    Cancelled,
}

/// Error of a function call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The arguments do not decode; the tool did not run (`LOOP-13`).
    #[error(transparent)]
    InvalidArguments(#[from] InvalidArguments),
    /// The tool has reached its limit on calls or failures (`RES-23`).
    #[error("{0}")]
    UsedUp(RefusedCall),
    /// The tool reported a failure.
    #[error("{}", .0.message)]
    Failure(ToolFailure),
    /// A trap, a limit, a denial, or an error of a host tool.
    #[error("{}", .0.detail.as_deref().unwrap_or(.0.type_name()))]
    Tool(ToolError),
    /// Middleware failed, or a tool that middleware called (`MW-11`).
    #[error("{0}")]
    Other(BoxError),
}

impl FunctionError {
    /// Returns whether a retry may help (`RES-9`); `None` if unknown.
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
