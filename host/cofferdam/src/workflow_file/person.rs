//! The user as a node of a workflow's graph.

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use cofferdam_workflow::definition::{PersonDefinition, UserForwards};
use cofferdam_workflow::{Executor, MessageType, Payload, Step, UserRequest};

/// Asks the user about each message. Sends on the answer, or the message if the answer is yes.
pub(super) struct UserExecutor {
    id: String,
    table: PersonDefinition,
}

impl UserExecutor {
    pub(super) fn new(id: &str, table: &PersonDefinition) -> Self {
        Self { id: id.to_owned(), table: table.clone() }
    }
}

/// Returns whether the answer of the user means yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "true")
}

#[async_trait]
impl Executor for UserExecutor {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> &str {
        match self.table.passes {
            UserForwards::Answer => "person/answer",
            UserForwards::Message => "person/message",
        }
    }

    fn accepts(&self) -> Vec<MessageType> {
        vec![MessageType::Text, MessageType::list(MessageType::Text)]
    }

    fn sends(&self) -> Vec<MessageType> {
        vec![MessageType::Text]
    }

    fn yields(&self) -> Vec<MessageType> {
        vec![MessageType::Text]
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        let text = match message.read::<Vec<String>>() {
            Ok(texts) => texts.join("\n"),
            Err(_) => message.display_text(),
        };
        let id = step.request(
            Payload::text(format!("{}\n\n{text}", self.table.prompt)),
            MessageType::Text,
        )?;
        // Messages by request id, because several requests may be open at the same time.
        let mut waiting = step.executor_state().as_object().cloned().unwrap_or_default();
        waiting.insert(id, text.into());
        Ok(step.set_executor_state(waiting)?)
    }

    async fn answered(
        &self,
        request: UserRequest,
        answer: Payload,
        step: &Step,
    ) -> Result<(), BoxError> {
        let mut waiting = step.executor_state().as_object().cloned().unwrap_or_default();
        let message = waiting.remove(&request.id).unwrap_or_default();
        step.set_executor_state(waiting)?;
        let sent = match self.table.passes {
            UserForwards::Answer => answer,
            UserForwards::Message if is_yes(&answer.display_text()) => Payload::json(message),
            UserForwards::Message => return Ok(()),
        };
        step.output_payload(sent.clone())?;
        Ok(step.send_payload(sent, None)?)
    }
}
