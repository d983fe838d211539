//! Central executor of patterns with rounds: receives every answer and selects the next speaker.

use async_trait::async_trait;
use cofferdam_agent::{BoxError, Message};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::super::builder::WorkflowBuilder;
use super::super::conversation;
use super::super::executor::Executor;
use super::super::limits::MAX_ITERATIONS;
use super::super::message::{MessageType, Payload};
use super::super::step::Step;

/// Logic of a central executor.
#[async_trait]
pub(super) trait HubLogic: Send + Sync + 'static {
    /// Id of the executor; unlikely to be the name of an agent.
    const ID: &'static str;
    /// State between two answers.
    type State: Default + Serialize + DeserializeOwned + Send;

    /// Handles the input or an answer: sends the conversation to the next speaker, or yields the
    /// output.
    async fn handle_messages(
        &self,
        said: Vec<Message>,
        state: &mut Self::State,
        step: &Step,
    ) -> Result<(), BoxError>;
}

/// Adds a central executor with edges to all participants and back. Raises the limit of supersteps
/// to `supersteps` if that is higher than the default.
pub(super) fn graph<L: HubLogic>(
    builder: WorkflowBuilder,
    lead: L,
    supersteps: u64,
    names: &[String],
) -> WorkflowBuilder {
    let builder = builder.executor(Hub(lead)).start(L::ID).output_from([L::ID]);
    let builder = builder.max_iterations(supersteps.max(MAX_ITERATIONS));
    names.iter().fold(builder, |builder, name| builder.edge(L::ID, name).edge(name, L::ID))
}

struct Hub<L>(L);

#[async_trait]
impl<L: HubLogic> Executor for Hub<L> {
    fn id(&self) -> &str {
        L::ID
    }

    fn accepts(&self) -> Vec<MessageType> {
        conversation::accepted_types()
    }

    fn sends(&self) -> Vec<MessageType> {
        vec![MessageType::messages()]
    }

    fn yields(&self) -> Vec<MessageType> {
        self.sends()
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        let mut state = step.read_executor_state::<L::State>()?;
        self.0.handle_messages(conversation::read(&message)?, &mut state, step).await?;
        step.write_executor_state(&state)
    }
}
