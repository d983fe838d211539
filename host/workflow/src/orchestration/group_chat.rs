//! Agents that talk to each other in turns (`WF-14`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{Agent, BoxError, Message};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::agent::{AgentExecutor, Passes, turn_apart};
use super::super::builder::Workflow;
use super::super::conversation;
use super::super::executor::Executor;
use super::super::limits::MAX_ITERATIONS;
use super::super::message::{MessageType, Payload};
use super::super::step::Step;
use super::{InvalidOrchestration, names};

/// Who gives the word. No agent is likely to be called so.
const CHAIR: &str = "group-chat:chair";
/// Turns of agents, unless somebody says otherwise: with two supersteps each they are within [`MAX_ITERATIONS`].
const MAX_ROUNDS: u64 = 40;
/// How often an agent is asked who speaks next, when what it says is no answer to that.
const ATTEMPTS_MAX: u32 = 3;

/// Says who speaks next.
#[async_trait]
pub trait Selector: Send + Sync {
    /// The name of who speaks next; `None` ends the chat. Asked before each turn, with everything that was said, and
    /// within the step of the one who asks.
    ///
    /// # Errors
    /// Any; the run ends with it.
    async fn next(
        &self,
        chat: &[Message],
        participants: &[String],
        step: &Step,
    ) -> Result<Option<String>, BoxError>;
}

/// A function that says who speaks next.
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

/// An agent that says who speaks next. It is told who takes part and what was said, and answers `{"next": NAME}`, or a name alone;
/// `{"next": null}` ends the chat.
pub struct AgentSelector {
    agent: Agent,
}

/// An agent does not say who speaks next.
#[derive(Debug, thiserror::Error)]
#[error(
    "the agent that chooses the next speaker named `{named}`, which is no participant; participants: {known}"
)]
struct NoSpeaker {
    named: String,
    known: String,
}

impl AgentSelector {
    /// This agent.
    #[must_use]
    pub fn new(agent: Agent) -> Self {
        Self { agent }
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
            let response = turn_apart(&self.agent, prompt.clone(), step).await?;
            match read(&response.text(), participants) {
                Ok(next) => return Ok(next),
                Err(other) => named = other,
            }
            prompt.push_str("\n\nYour last answer was not one of these names. Answer with JSON alone.");
        }
        Err(NoSpeaker { named, known }.into())
    }
}

/// What an answer means; the error is what was named instead of a participant.
fn read(answer: &str, participants: &[String]) -> Result<Option<String>, String> {
    let answer = answer.trim();
    let between = answer.find('{').zip(answer.rfind('}')).and_then(|(from, to)| answer.get(from..=to));
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

/// Agents that talk to each other: a selector names the next speaker until it names none, or `max_rounds` is reached (`WF-14`).
/// Everybody hears everything. The output is what the participants have said.
#[must_use = "nothing is built yet"]
pub struct GroupChat {
    name: String,
    agents: Vec<Agent>,
    selector: Arc<dyn Selector>,
    max_rounds: u64,
    shows_others: bool,
}

impl GroupChat {
    /// These agents, with whoever says who speaks next.
    pub fn new(agents: impl IntoIterator<Item = Agent>, selector: impl Selector + 'static) -> Self {
        Self {
            name: "group-chat".into(),
            agents: agents.into_iter().collect(),
            selector: Arc::new(selector),
            max_rounds: MAX_ROUNDS,
            shows_others: false,
        }
    }

    /// What the workflow is called.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Most turns of agents. The default is 40.
    pub fn max_rounds(mut self, max_rounds: u64) -> Self {
        self.max_rounds = max_rounds;
        self
    }

    /// What everybody says is shown as intermediate at once.
    pub fn intermediate_outputs(mut self, shown: bool) -> Self {
        self.shows_others = shown;
        self
    }

    /// The workflow.
    ///
    /// # Errors
    /// No participants, two with one name, or no rounds.
    pub fn build(self) -> Result<Workflow, InvalidOrchestration> {
        let names = names(&self.agents)?;
        if self.max_rounds == 0 {
            return Err(InvalidOrchestration::ZeroLimit { limit: "max_rounds" });
        }
        let chair =
            Chair { selector: self.selector, participants: names.clone(), max_rounds: self.max_rounds };
        let supersteps = self.max_rounds.saturating_mul(2).saturating_add(1);
        let mut builder = Workflow::builder(self.name)
            .executor(chair)
            .start(CHAIR)
            .output_from([CHAIR])
            .max_iterations(supersteps.max(MAX_ITERATIONS));
        if self.shows_others {
            builder = builder.intermediate_output_from(names.clone());
        }
        for (agent, name) in self.agents.into_iter().zip(&names) {
            let executor = AgentExecutor::new(name, agent).passing(Passes::Answer).forgetting();
            builder = builder.executor(executor.naming_speakers()).edge(CHAIR, name).edge(name, CHAIR);
        }
        Ok(builder.build()?)
    }
}

/// Gives the word.
struct Chair {
    selector: Arc<dyn Selector>,
    participants: Vec<String>,
    max_rounds: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Chat {
    said: Vec<Message>,
    /// How many messages were there before anybody spoke.
    input: usize,
    rounds: u64,
}

#[async_trait]
impl Executor for Chair {
    fn id(&self) -> &str {
        CHAIR
    }

    fn takes(&self) -> Vec<MessageType> {
        conversation::taken()
    }

    fn sends(&self) -> Vec<MessageType> {
        vec![MessageType::messages()]
    }

    fn yields(&self) -> Vec<MessageType> {
        vec![MessageType::messages()]
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        let own = step.own();
        let mut chat = if own.is_null() { Chat::default() } else { serde_json::from_value(own)? };
        chat.said.extend(conversation::read(&message)?);
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
            Some(named) => return Err(NoSpeaker { named, known: self.participants.join(", ") }.into()),
            None => {
                let answers: Vec<_> = chat.said.iter().skip(chat.input).cloned().collect();
                step.output(&answers)?;
            }
        }
        Ok(step.set_own(serde_json::to_value(&chat)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_a_participant_or_nobody() {
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
