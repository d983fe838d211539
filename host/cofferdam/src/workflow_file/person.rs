//! The user as a node of a workflow's graph.

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use cofferdam_workflow::definition::{PersonDefinition, PersonPasses};
use cofferdam_workflow::{Executor, MessageType, Payload, Step, UserRequest};

/// Asks the user about each message. Sends on the answer, or the message if the answer is yes.
pub(super) struct Person {
    id: String,
    table: PersonDefinition,
}

impl Person {
    pub(super) fn new(id: &str, table: &PersonDefinition) -> Self {
        Self { id: id.to_owned(), table: table.clone() }
    }
}

/// Returns whether the answer of the user means yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes" | "true")
}

#[async_trait]
impl Executor for Person {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> &str {
        match self.table.passes {
            PersonPasses::Answer => "person/answer",
            PersonPasses::Message => "person/message",
        }
    }

    fn takes(&self) -> Vec<MessageType> {
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
            Err(_) => message.shown(),
        };
        let id = step.request(
            Payload::text(format!("{}\n\n{text}", self.table.prompt)),
            MessageType::Text,
        )?;
        // Messages by request id, because several requests may be open at the same time.
        let mut waiting = step.own().as_object().cloned().unwrap_or_default();
        waiting.insert(id, text.into());
        Ok(step.set_own(waiting)?)
    }

    async fn answered(
        &self,
        request: UserRequest,
        answer: Payload,
        step: &Step,
    ) -> Result<(), BoxError> {
        let mut waiting = step.own().as_object().cloned().unwrap_or_default();
        let message = waiting.remove(&request.id).unwrap_or_default();
        step.set_own(waiting)?;
        let sent = match self.table.passes {
            PersonPasses::Answer => answer,
            PersonPasses::Message if is_yes(&answer.shown()) => Payload::json(message),
            PersonPasses::Message => return Ok(()),
        };
        step.output_payload(sent.clone())?;
        Ok(step.send_payload(sent, None)?)
    }
}
