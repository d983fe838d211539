//! Concurrent orchestration (`WF-13`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{AgentRun, BoxError, Message};

use super::super::builder::WorkflowBuilder;
use super::super::conversation;
use super::super::executor::Executor;
use super::super::message::{MessageType, Payload};
use super::super::step::Step;
use super::{Intermediate, Orchestration, OrchestrationResult, Pattern};

/// Id of the executor that distributes the input; unlikely to be the name of an agent.
const INPUT: &str = "concurrent:input";
/// Id of the executor that aggregates the answers.
const ANSWERS: &str = "concurrent:answers";

type Aggregate = Arc<dyn Fn(Vec<Message>) -> Payload + Send + Sync>;

/// Concurrent orchestration: each agent sees the input, and the output is all answers in the order
/// of the participants (`WF-13`).
pub type Concurrent = Orchestration<ConcurrentPattern>;

/// Pattern of [`Concurrent`].
#[derive(Default)]
pub struct ConcurrentPattern {
    aggregate: Option<Aggregate>,
}

impl Concurrent {
    /// Creates the orchestration of these agents.
    pub fn new(agents: impl IntoIterator<Item: Into<Arc<dyn AgentRun>>>) -> Self {
        Self::of(agents, ConcurrentPattern::default())
    }

    /// Sets the function that makes the output from the answers, which are in the order of the
    /// participants.
    pub fn aggregate<P: Into<Payload>>(
        mut self,
        aggregate: impl Fn(Vec<Message>) -> P + Send + Sync + 'static,
    ) -> Self {
        self.pattern.aggregate = Some(Arc::new(move |answers| aggregate(answers).into()));
        self
    }
}

impl Pattern for ConcurrentPattern {
    const NAME: &'static str = "concurrent";

    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder> {
        let answers = Aggregator { aggregate: self.aggregate.clone() };
        let builder =
            builder.executor(InputExecutor).start(INPUT).output_from([ANSWERS]).executor(answers);
        Ok(match names {
            [only] => builder.edge(INPUT, only).edge(only, ANSWERS),
            names => builder.fan_out(INPUT, names).fan_in(names, ANSWERS),
        })
    }
}

impl Intermediate for ConcurrentPattern {}

/// Sends the input to all agents as messages.
struct InputExecutor;

#[async_trait]
impl Executor for InputExecutor {
    fn id(&self) -> &str {
        INPUT
    }

    fn accepts(&self) -> Vec<MessageType> {
        conversation::accepted_types()
    }

    fn sends(&self) -> Vec<MessageType> {
        vec![MessageType::messages()]
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        Ok(step.send(&conversation::read(&message)?)?)
    }
}

/// Aggregates the answers.
struct Aggregator {
    aggregate: Option<Aggregate>,
}

#[async_trait]
impl Executor for Aggregator {
    fn id(&self) -> &str {
        ANSWERS
    }

    fn accepts(&self) -> Vec<MessageType> {
        vec![MessageType::list(MessageType::messages()), MessageType::messages()]
    }

    fn yields(&self) -> Vec<MessageType> {
        vec![if self.aggregate.is_some() { MessageType::Any } else { MessageType::messages() }]
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        let answers = conversation::read(&message)?;
        let output = match &self.aggregate {
            Some(aggregate) => aggregate(answers),
            None => Payload::messages(&answers),
        };
        Ok(step.output_payload(output)?)
    }
}
