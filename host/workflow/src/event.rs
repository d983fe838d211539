//! Events of a run (`WF-11`).

use std::fmt;

use serde::Serialize;

use super::checkpoint::CheckpointId;
use super::message::Payload;
use super::snapshot::UserRequest;

/// Something that has happened in a run. The text form is `executor_invoked:a`, or
/// `superstep_started#1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkflowEvent {
    /// A superstep has begun.
    SuperstepStarted {
        /// Its number, from 1.
        superstep: u64,
    },
    /// A superstep is done, and its checkpoint is written if there is one.
    SuperstepCompleted {
        /// Its number.
        superstep: u64,
        /// The checkpoint.
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<CheckpointId>,
    },
    /// An executor is given a message.
    ExecutorInvoked {
        /// Executor.
        executor: String,
    },
    /// It is done with the message.
    ExecutorCompleted {
        /// Executor.
        executor: String,
    },
    /// It has failed, and with it the run.
    ExecutorFailed {
        /// Executor.
        executor: String,
        /// Its error, for the operator.
        error: String,
    },
    /// Output of the workflow (`WF-9`).
    Output(ProducedOutput),
    /// A yield that is designated as intermediate (`WF-9`).
    Intermediate(ProducedOutput),
    /// The user is asked (`WF-12`).
    Request(UserRequest),
}

/// Yield of an executor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProducedOutput {
    /// Executor.
    pub executor: String,
    /// Value.
    pub value: Payload,
}

impl ProducedOutput {
    /// The value as the user reads it.
    #[must_use]
    pub fn text(&self) -> String {
        self.value.shown()
    }
}

impl fmt::Display for WorkflowEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SuperstepStarted { superstep } => write!(f, "superstep_started#{superstep}"),
            Self::SuperstepCompleted { superstep, .. } => {
                write!(f, "superstep_completed#{superstep}")
            }
            Self::ExecutorInvoked { executor } => write!(f, "executor_invoked:{executor}"),
            Self::ExecutorCompleted { executor } => write!(f, "executor_completed:{executor}"),
            Self::ExecutorFailed { executor, .. } => write!(f, "executor_failed:{executor}"),
            Self::Output(produced) => write!(f, "output:{}", produced.executor),
            Self::Intermediate(produced) => write!(f, "intermediate:{}", produced.executor),
            Self::Request(request) => write!(f, "request:{}", request.executor),
        }
    }
}
