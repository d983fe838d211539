//! Nodes of a workflow.

use async_trait::async_trait;
use cofferdam_agent::BoxError;

use super::message::{MessageType, Payload};
use super::snapshot::UserRequest;
use super::step::Step;

/// Handles messages: sends others, yields output, writes state, asks the user.
///
/// * **Calls.** In one run, an executor handles one message at a time, in the order in which they
///   were sent. Several runs may use an executor concurrently.
/// * **State.** Between two messages, state must be stored with [`Step::set_executor_state`] or
///   [`Step::set_state`]; a checkpoint contains nothing else.
/// * **Effects.** Messages, state and requests take effect at the end of the superstep. If an
///   executor of the superstep fails, none of them do.
/// * **Cancellation.** The future is dropped some time after [`Step::cancellation`] is canceled.
#[async_trait]
pub trait Executor: Send + Sync {
    /// Returns the id in the workflow.
    fn id(&self) -> &str;

    /// Returns the kind of executor. A checkpoint can be restored only if every executor has the
    /// same kind as before.
    fn kind(&self) -> &str {
        "executor"
    }

    /// Returns the types of messages that the executor takes.
    fn accepts(&self) -> Vec<MessageType>;

    /// Returns the types of messages that the executor sends.
    fn sends(&self) -> Vec<MessageType> {
        Vec::new()
    }

    /// Returns the types of output that the executor yields.
    fn yields(&self) -> Vec<MessageType> {
        Vec::new()
    }

    /// Handles one message of a type that the executor takes.
    ///
    /// # Errors
    /// Any error; it ends the run (`WF-8`).
    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError>;

    /// Continues after the user has answered a request of this executor (`WF-12`). The answer has
    /// the type that the request expects.
    ///
    /// # Errors
    /// Any error; it ends the run. The default implementation returns one, which suits executors
    /// that make no requests.
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

/// Error returned by executors that make no requests.
#[derive(Debug, thiserror::Error)]
#[error("the request `{request}` belongs to an executor that takes no answers")]
struct NoAnswers {
    request: String,
}
