//! Results of calls.

use cofferdam_tool::{
    CallRecord, Completion, Outcome, Output, RefusedCall, ToolError, ToolFailure,
};
use serde_json::Value;

/// Result of a call that succeeded.
#[derive(Debug, Clone)]
pub struct CallOutput {
    /// Value or contents that the tool returned.
    pub output: Output,
    /// Facts about the call: durations, changed files, contacted hosts, and output of the tool.
    pub record: Box<CallRecord>,
}

/// Error of a call without a result.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call did not start: there is no such tool, or the arguments do not fit its schema.
    #[error(transparent)]
    Refused(#[from] RefusedCall),
    /// The tool reported a failure.
    #[error("{}", .failure.message)]
    Failure {
        /// Message, suggestion and value for the model.
        failure: Box<ToolFailure>,
        /// Facts about the call.
        record: Box<CallRecord>,
    },
    /// The call trapped, exceeded a limit, was denied a permission or returned an invalid result.
    #[error("the call ended as {}", .error.type_name())]
    Error {
        /// Type of the error, with details for the operator.
        error: Box<ToolError>,
        /// Facts about the call.
        record: Box<CallRecord>,
    },
    /// The caller canceled the call.
    #[error("the call was cancelled")]
    Cancelled {
        /// Facts about the call.
        record: Box<CallRecord>,
    },
}

impl CallOutput {
    /// Returns the string that a model should read: a string unchanged, any other value as compact
    /// JSON.
    #[must_use]
    pub fn text(&self) -> String {
        self.output.text()
    }

    /// Returns the value that the tool returned; `None` if it returned contents, such as several
    /// items or binary data.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        match &self.output {
            Output::Value(value) => Some(value),
            Output::Contents(_) => None,
        }
    }
}

impl CallError {
    /// Returns the string that a model should read; `None` after cancellation.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let outcome = match self {
            Self::Refused(refused) => return Some(refused.to_string()),
            Self::Failure { failure, .. } => Outcome::Failure((**failure).clone()),
            Self::Error { error, .. } => Outcome::Error((**error).clone()),
            Self::Cancelled { .. } => return None,
        };
        outcome.into_shown().map(|shown| shown.text())
    }

    /// Returns the facts about the call; `None` if it did not start.
    #[must_use]
    pub fn record(&self) -> Option<&CallRecord> {
        match self {
            Self::Refused(_) => None,
            Self::Failure { record, .. }
            | Self::Error { record, .. }
            | Self::Cancelled { record } => Some(record),
        }
    }
}

/// Converts the completion of a call to a result.
pub(crate) fn result(completion: Completion) -> Result<CallOutput, CallError> {
    let Completion { outcome, record } = completion;
    match outcome {
        Outcome::Ok(output) => Ok(CallOutput { output, record }),
        Outcome::Failure(failure) => Err(CallError::Failure { failure: Box::new(failure), record }),
        Outcome::Error(error) => Err(CallError::Error { error: Box::new(error), record }),
        _ => Err(CallError::Cancelled { record }),
    }
}
