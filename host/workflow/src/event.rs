//! Events of a run (`WF-11`).

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::checkpoint::CheckpointId;
use super::message::Payload;
use super::snapshot::UserRequest;

/// Function that is called with each event of a run.
pub(super) type EventObserver = Arc<dyn Fn(&WorkflowEvent) + Send + Sync>;

/// Event of a run. The string form is `executor_invoked:a`, or `superstep_started#1`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkflowEvent {
    /// A superstep starts.
    SuperstepStarted {
        /// Number of the superstep, from 1.
        superstep: u64,
    },
    /// A superstep is complete, and its checkpoint is saved if the run has checkpoints.
    SuperstepCompleted {
        /// Number of the superstep.
        superstep: u64,
        /// Id of the checkpoint.
        #[serde(skip_serializing_if = "Option::is_none")]
        checkpoint: Option<CheckpointId>,
    },
    /// An executor receives a message.
    ExecutorInvoked {
        /// Id of the executor.
        executor: String,
    },
    /// An executor has handled a message.
    ExecutorCompleted {
        /// Id of the executor.
        executor: String,
    },
    /// An executor failed, which ends the run.
    ExecutorFailed {
        /// Id of the executor.
        executor: String,
        /// Error message, for the operator.
        error: String,
    },
    /// An executor yielded output (`WF-9`).
    Output(ProducedOutput),
    /// An executor yielded intermediate output (`WF-9`).
    Intermediate(ProducedOutput),
    /// An executor made a request to the user (`WF-12`).
    Request(UserRequest),
}

/// Value that an executor yielded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProducedOutput {
    /// Id of the executor.
    pub executor: String,
    /// Value.
    pub value: Payload,
}

impl ProducedOutput {
    /// Returns the value as the user reads it.
    #[must_use]
    pub fn text(&self) -> String {
        self.value.display_text()
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
