//! Several agents at once (`WF-13`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{Agent, BoxError, Message};

use super::super::builder::WorkflowBuilder;
use super::super::conversation;
use super::super::executor::Executor;
use super::super::message::{MessageType, Payload};
use super::super::step::Step;
use super::{Intermediate, Orchestration, OrchestrationResult, Pattern};

/// Executor that distributes the input. No agent is likely to be called so.
const INPUT: &str = "concurrent:input";
/// Executor that aggregates the answers.
const ANSWERS: &str = "concurrent:answers";

type Aggregate = Arc<dyn Fn(Vec<Message>) -> Payload + Send + Sync>;

/// Several agents at once: each sees the input, and the output is all answers in the order of the
/// participants (`WF-13`).
pub type Concurrent = Orchestration<AllAtOnce>;

/// Pattern of [`Concurrent`].
#[derive(Default)]
pub struct AllAtOnce {
    aggregate: Option<Aggregate>,
}

impl Concurrent {
    /// Takes the agents.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        Self::of(agents, AllAtOnce::default())
    }

    /// Makes the output of the answers, which come in the order of the participants.
    pub fn aggregate<P: Into<Payload>>(
        mut self,
        aggregate: impl Fn(Vec<Message>) -> P + Send + Sync + 'static,
    ) -> Self {
        self.pattern.aggregate = Some(Arc::new(move |answers| aggregate(answers).into()));
        self
    }
}

impl Pattern for AllAtOnce {
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

impl Intermediate for AllAtOnce {}

/// Hands the input out as messages.
struct InputExecutor;

#[async_trait]
impl Executor for InputExecutor {
    fn id(&self) -> &str {
        INPUT
    }

    fn takes(&self) -> Vec<MessageType> {
        conversation::taken()
    }

    fn sends(&self) -> Vec<MessageType> {
        vec![MessageType::messages()]
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        Ok(step.send(&conversation::read(&message)?)?)
    }
}

/// Puts the answers together.
struct Aggregator {
    aggregate: Option<Aggregate>,
}

#[async_trait]
impl Executor for Aggregator {
    fn id(&self) -> &str {
        ANSWERS
    }

    fn takes(&self) -> Vec<MessageType> {
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
