//! Errors of gateways and workers.

use cofferdam_tool::ToolError;
use serde_json::json;

use crate::bus::BusError;

/// Error returned when a gateway or worker cannot start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The bus failed.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// No worker answered.
    #[error("no worker answered; start one with `cofferdam worker` for the same tenant")]
    NoWorkers,
    /// The toolset has no tools.
    #[error("there are no tools to offer; name plugins or a configuration")]
    NoTools,
    /// The definitions of a source do not fit into one message.
    #[error(
        "the definitions of `{name}` have {bytes} bytes, and the message bus allows {bytes_max}; \
         raise `max_payload` of the server"
    )]
    SourceTooLarge {
        /// Name of the source.
        name: String,
        /// Size of its definitions in bytes.
        bytes: usize,
        /// Maximum size of a message in bytes.
        bytes_max: usize,
    },
}

/// Error of a call through a gateway. All but [`OutcomeUnknown`](Self::OutcomeUnknown),
/// [`ResultNotStored`](Self::ResultNotStored), [`InvalidResult`](Self::InvalidResult) and
/// [`Moved`](Self::Moved) mean that no tool has run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The call was started, and its worker was lost. It may have taken effect.
    #[error("the worker was lost while it ran the call; the call may have taken effect")]
    OutcomeUnknown,
    /// No worker has the tool.
    #[error("no worker has this version of the tool")]
    NoWorker,
    /// No worker has the version that the operator has pinned.
    #[error("no worker has the pinned version {0} of the tool")]
    VersionAbsent(String),
    /// All workers that were asked are busy.
    #[error("all workers are busy")]
    Busy,
    /// Workers exist, and none answered in time.
    #[error("no worker answered in time")]
    NoAnswer,
    /// The arguments do not fit into one message.
    #[error("the call has {bytes} bytes, and the message bus allows {bytes_max}")]
    CallTooLarge {
        /// Size of the call in bytes.
        bytes: usize,
        /// Maximum size of a message in bytes.
        bytes_max: usize,
    },
    /// The bus is not connected.
    #[error("the gateway is not connected to its message bus: {0}")]
    Disconnected(String),
    /// The idempotency key belongs to another call.
    #[error("the idempotency key belongs to a call with another tool or other arguments")]
    KeyConflict,
    /// The store of the results of calls with idempotency keys failed.
    #[error("results of calls with idempotency keys cannot be stored: {0}")]
    KeysUnavailable(String),
    /// The call with this idempotency key has ended before, and its result was not stored.
    #[error("the result of the call was larger than the store of results allows")]
    ResultNotStored,
    /// The worker sent a result that is not one of the protocol.
    #[error("the worker sent an invalid result: {0}")]
    InvalidResult(String),
    /// Another gateway has taken the call over. This one does not learn its end.
    #[error("another gateway has taken the call over")]
    Moved,
}

impl DispatchError {
    /// Returns the name of the error type, as models and records see it.
    fn type_name(&self) -> &'static str {
        match self {
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::NoWorker | Self::VersionAbsent(_) | Self::NoAnswer | Self::Disconnected(_) => {
                "WorkerUnavailable"
            }
            Self::Busy => "WorkersBusy",
            Self::CallTooLarge { .. } => "CallTooLarge",
            Self::KeyConflict => "IdempotencyConflict",
            Self::KeysUnavailable(_) => "IdempotencyUnavailable",
            Self::ResultNotStored => "ResultNotStored",
            Self::InvalidResult(_) => "InvalidReply",
            Self::Moved => "CallMoved",
        }
    }

    /// Returns the text for a model. It says whether the tool may have run.
    fn shown(&self) -> &'static str {
        match self {
            Self::OutcomeUnknown => {
                "The connection to the tool was lost while it ran. The call may have taken \
                 effect: check before you call it again."
            }
            Self::NoWorker | Self::NoAnswer | Self::Disconnected(_) => {
                "The tool is not available at the moment. Nothing was called."
            }
            Self::VersionAbsent(_) => {
                "The version of the tool that the operator has pinned is not available. Nothing \
                 was called."
            }
            Self::Busy => "The tool is busy. Nothing was called; try again later.",
            Self::CallTooLarge { .. } => {
                "The arguments are too large. Nothing was called; send less in one call."
            }
            Self::KeyConflict => {
                "The idempotency key belongs to another call. Nothing was called; use a new key."
            }
            Self::KeysUnavailable(_) => {
                "Calls with idempotency keys are not possible at the moment. Nothing was called; \
                 try again later with the same key."
            }
            Self::ResultNotStored => {
                "The call with this idempotency key has ended before. Its result was too large to \
                 be stored, and the tool was not called again."
            }
            Self::InvalidResult(_) => "The tool ran, and its result could not be read.",
            Self::Moved => "The call goes on, and its result can be requested elsewhere.",
        }
    }

    /// Returns the error as the end of a call. Its detail is for the operator.
    pub(crate) fn into_tool_error(self) -> ToolError {
        let shown = self.shown();
        ToolError::host(self.type_name())
            .with_detail(self.to_string())
            .with_error_value(|error| json!({"message": shown, "type": error.type_name()}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_learns_whether_a_call_may_have_run() {
        let error = DispatchError::OutcomeUnknown.into_tool_error();
        assert_eq!(error.type_name(), "OutcomeUnknown");
        assert_eq!(error.transient(), None);
        let shown = error.error_value()["message"].as_str().unwrap().to_owned();
        assert!(shown.contains("may have taken effect"), "{shown}");
        let disconnected = DispatchError::Disconnected("10.0.0.1:4222 refused".to_owned());
        let shown = disconnected.into_tool_error().error_value().to_string();
        assert!(shown.contains("Nothing was called") && !shown.contains("10.0.0.1"), "{shown}");
    }
}
