//! Nodes of a workflow.

use async_trait::async_trait;
use cofferdam_agent::BoxError;

use super::message::{MessageType, Payload};
use super::snapshot::UserRequest;
use super::step::Step;

/// Does something with a message: sends others, yields output, writes state, asks.
///
/// * **Calls.** One message at a time within a run, in the order in which they were sent; several
///   runs may use one executor at a time.
/// * **State.** An executor keeps nothing between two messages but what it gives to
///   [`Step::set_own`] and [`Step::set_state`]: only that is in a checkpoint.
/// * **Effects.** What it did is published when its part of the superstep is done. If it fails,
///   nothing of the superstep happened.
/// * **Cancellation.** The future is dropped some time after [`Step::cancellation`] is cancelled.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Returns the id in the workflow.
    fn id(&self) -> &str;

    /// Returns the kind of executor. A checkpoint is restored only where every executor is of the
    /// kind that it was of.
    fn kind(&self) -> &str {
        "executor"
    }

    /// Returns the types that it takes.
    fn takes(&self) -> Vec<MessageType>;

    /// Returns the types that it sends.
    fn sends(&self) -> Vec<MessageType> {
        Vec::new()
    }

    /// Returns the types that it yields as output of the workflow.
    fn yields(&self) -> Vec<MessageType> {
        Vec::new()
    }

    /// Handles one message of a type that it takes.
    ///
    /// # Errors
    /// Any; the run ends with it (`WF-8`).
    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError>;

    /// Goes on after the user has answered a request of this executor (`WF-12`). The answer is of
    /// the type that was asked for.
    ///
    /// # Errors
    /// Any; the run ends with it. Executors that ask nothing need no more than this default, which
    /// is one.
    async fn answered(
        &self,
        request: UserRequest,
        answer: Payload,
        step: &Step,
    ) -> Result<(), BoxError> {
        let _ = (answer, step);
        Err(NoAnswers { request: request.id }.into())
    }
}

/// An executor that asks nothing was given an answer.
#[derive(Debug, thiserror::Error)]
#[error("the request `{request}` belongs to an executor that takes no answers")]
struct NoAnswers {
    request: String,
}
