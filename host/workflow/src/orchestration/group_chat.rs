//! Group chat: agents that speak one at a time (`WF-14`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{AgentRun, BoxError, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::agent::separate_turn;
use super::super::builder::WorkflowBuilder;
use super::super::conversation;
use super::super::step::Step;
use super::hub::{self, HubLogic};
use super::{Intermediate, InvalidOrchestration, Orchestration, OrchestrationResult, Pattern};

/// Default maximum number of rounds. Each takes two supersteps, so they fit within the default
/// limit of supersteps.
const MAX_ROUNDS: u64 = 40;
/// Maximum number of times that an agent is asked for the next speaker, when its answer is invalid.
const ATTEMPTS_MAX: u32 = 3;

/// Selects the next speaker.
#[async_trait]
pub trait Selector: Send + Sync {
    /// Returns the name of the next speaker; `None` ends the chat. It is called before each turn
    /// with all messages so far, in the step of the group chat's central executor.
    ///
    /// # Errors
    /// Any error; it ends the run.
    async fn next(
        &self,
        chat: &[Message],
        participants: &[String],
        step: &Step,
    ) -> Result<Option<String>, BoxError>;
}

/// Creates a selector from a function.
pub fn selector_fn(
    next: impl Fn(&[Message], &[String]) -> Option<String> + Send + Sync + 'static,
) -> impl Selector + 'static {
    FunctionSelector(next)
}

struct FunctionSelector<F>(F);

#[async_trait]
impl<F> Selector for FunctionSelector<F>
where
    F: Fn(&[Message], &[String]) -> Option<String> + Send + Sync,
{
    async fn next(
        &self,
        chat: &[Message],
        participants: &[String],
        _: &Step,
    ) -> Result<Option<String>, BoxError> {
        Ok((self.0)(chat, participants))
    }
}

/// Selector that asks an agent for the next speaker. The agent sees the participants and all
/// messages so far. It answers `{"next": NAME}` or only a name; `{"next": null}` ends the chat.
pub struct AgentSelector {
    agent: Arc<dyn AgentRun>,
}

/// Error returned if a selector names no participant.
#[derive(Debug, thiserror::Error)]
#[error(
    "the agent that chooses the next speaker named `{named}`, which is not a participant; \
     participants: {known}"
)]
struct NoSpeaker {
    named: String,
    known: String,
}

impl AgentSelector {
    /// Creates a selector that asks `agent`.
    #[must_use]
    pub fn new(agent: impl Into<Arc<dyn AgentRun>>) -> Self {
        Self { agent: agent.into() }
    }
}

#[async_trait]
impl Selector for AgentSelector {
    async fn next(
        &self,
        chat: &[Message],
        participants: &[String],
        step: &Step,
    ) -> Result<Option<String>, BoxError> {
        let known = participants.join(", ");
        let mut prompt = format!(
            "You lead a conversation. Participants: {known}.\n\nWhat was said so far:\n{}\n\nWho speaks next? Answer with JSON \
             alone: {{\"next\": \"NAME\"}}, or {{\"next\": null}} if the conversation is over.",
            conversation::transcript(chat)
        );
        let mut named = String::new();
        for _ in 0..ATTEMPTS_MAX {
            let response = separate_turn(&*self.agent, prompt.clone(), step).await?;
            match read(&response.text(), participants) {
                Ok(next) => return Ok(next),
                Err(other) => named = other,
            }
            prompt.push_str(
                "\n\nYour last answer was not one of these names. Answer with JSON alone.",
            );
        }
        Err(NoSpeaker { named, known }.into())
    }
}

/// Parses an answer. The error is the name that is not a participant.
fn read(answer: &str, participants: &[String]) -> Result<Option<String>, String> {
    let answer = answer.trim();
    let between =
        answer.find('{').zip(answer.rfind('}')).and_then(|(from, to)| answer.get(from..=to));
    let json = between.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let named = match json.as_ref().and_then(|json| json.get("next")) {
        Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => name.trim(),
        _ => answer.trim_matches(['"', '.', '`', '*']),
    };
    match participants.iter().find(|name| *name == named) {
        Some(name) => Ok(Some(name.clone())),
        None => Err(named.chars().take(100).collect()),
    }
}

/// Group chat: a selector names the next speaker until it names none, or `max_rounds` is reached
/// (`WF-14`). All participants see all messages. The output is the messages of the participants.
pub type GroupChat = Orchestration<GroupChatPattern>;

/// Pattern of [`GroupChat`].
pub struct GroupChatPattern {
    selector: Arc<dyn Selector>,
    max_rounds: u64,
}

impl GroupChat {
    /// Creates a group chat of agents, with a selector of the next speaker.
    pub fn new(
        agents: impl IntoIterator<Item: Into<Arc<dyn AgentRun>>>,
        selector: impl Selector + 'static,
    ) -> Self {
        Self::of(agents, GroupChatPattern { selector: Arc::new(selector), max_rounds: MAX_ROUNDS })
    }

    /// Sets the maximum number of turns of agents. The default is 40.
    pub fn max_rounds(mut self, max_rounds: u64) -> Self {
        self.pattern.max_rounds = max_rounds;
        self
    }
}

impl Pattern for GroupChatPattern {
    const NAME: &'static str = "group-chat";
    const NAMES_SPEAKERS: bool = true;

    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder> {
        if self.max_rounds == 0 {
            return Err(InvalidOrchestration::ZeroLimit { limit: "max_rounds" });
        }
        let (selector, participants) = (Arc::clone(&self.selector), names.to_vec());
        let chair = Moderator { selector, participants, max_rounds: self.max_rounds };
        Ok(hub::graph(builder, chair, self.max_rounds.saturating_mul(2).saturating_add(1), names))
    }
}

impl Intermediate for GroupChatPattern {}

/// Central executor: asks the selector, and sends the conversation to the speaker that it names.
struct Moderator {
    selector: Arc<dyn Selector>,
    participants: Vec<String>,
    max_rounds: u64,
}

/// State of a group chat.
#[derive(Default, Serialize, Deserialize)]
struct Chat {
    said: Vec<Message>,
    /// Number of messages before those of the first speaker.
    input: usize,
    rounds: u64,
}

#[async_trait]
impl HubLogic for Moderator {
    const ID: &'static str = "group-chat:chair";
    type State = Chat;

    async fn handle_messages(
        &self,
        said: Vec<Message>,
        chat: &mut Chat,
        step: &Step,
    ) -> Result<(), BoxError> {
        chat.said.extend(said);
        if step.sources().is_empty() {
            chat.input = chat.said.len();
        }
        let next = match chat.rounds < self.max_rounds {
            true => self.selector.next(&chat.said, &self.participants, step).await?,
            false => None,
        };
        match next {
            Some(name) if self.participants.contains(&name) => {
                chat.rounds = chat.rounds.saturating_add(1);
                step.send_to(&name, &chat.said)?;
            }
            Some(named) => {
                return Err(NoSpeaker { named, known: self.participants.join(", ") }.into());
            }
            None => {
                let answers: Vec<_> = chat.said.iter().skip(chat.input).cloned().collect();
                step.output(&answers)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_a_participant_or_none() {
        let participants = ["ann".to_owned(), "bob".to_owned()];
        let read = |answer| read(answer, &participants);
        assert_eq!(read(r#"{"next": "bob"}"#), Ok(Some("bob".to_owned())));
        assert_eq!(read("```json\n{\"next\":\"ann\"}\n```"), Ok(Some("ann".to_owned())));
        assert_eq!(read("ann."), Ok(Some("ann".to_owned())));
        assert_eq!(read(r#"{"next":null}"#), Ok(None));
        assert_eq!(read(r#"{"next":"eve"}"#), Err("eve".to_owned()));
        assert!(read("}{").is_err() && read("").is_err());
    }
}
