//! Several agents at once (`WF-13`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{Agent, BoxError, Message};

use super::super::agent::{AgentExecutor, Passes};
use super::super::builder::Workflow;
use super::super::conversation;
use super::super::executor::Executor;
use super::super::message::{MessageType, Payload};
use super::super::step::Step;
use super::{InvalidOrchestration, names};

/// Who hands the input out. No agent is likely to be called so.
const INPUT: &str = "concurrent:input";
/// Who puts the answers together.
const ANSWERS: &str = "concurrent:answers";

type Aggregate = Arc<dyn Fn(Vec<Message>) -> Payload + Send + Sync>;

/// Several agents at once: each sees the input, and the output is all answers in the order of the participants (`WF-13`).
#[must_use = "nothing is built yet"]
pub struct Concurrent {
    name: String,
    agents: Vec<Agent>,
    aggregate: Option<Aggregate>,
    shows_others: bool,
    max_iterations: Option<u64>,
}

impl Concurrent {
    /// These agents.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        Self {
            name: "concurrent".into(),
            agents: agents.into_iter().collect(),
            aggregate: None,
            shows_others: false,
            max_iterations: None,
        }
    }

    /// What the workflow is called.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Makes the output of the answers, which come in the order of the participants.
    pub fn aggregate<P: Into<Payload>>(
        mut self,
        aggregate: impl Fn(Vec<Message>) -> P + Send + Sync + 'static,
    ) -> Self {
        self.aggregate = Some(Arc::new(move |answers| aggregate(answers).into()));
        self
    }

    /// Each answer is shown as intermediate when it comes.
    pub fn intermediate_outputs(mut self, shown: bool) -> Self {
        self.shows_others = shown;
        self
    }

    /// Most supersteps of one run.
    pub fn max_iterations(mut self, max_iterations: u64) -> Self {
        self.max_iterations = Some(max_iterations);
        self
    }

    /// The workflow.
    ///
    /// # Errors
    /// No participants, or two with one name.
    pub fn build(self) -> Result<Workflow, InvalidOrchestration> {
        let names = names(&self.agents)?;
        let mut builder = Workflow::builder(self.name)
            .executor(Input)
            .start(INPUT)
            .output_from([ANSWERS])
            .executor(Answers { aggregate: self.aggregate });
        if self.shows_others {
            builder = builder.intermediate_output_from(names.clone());
        }
        if let Some(max_iterations) = self.max_iterations {
            builder = builder.max_iterations(max_iterations);
        }
        for (agent, name) in self.agents.into_iter().zip(&names) {
            let executor = AgentExecutor::new(name, agent).passing(Passes::Answer).forgetting();
            builder = builder.executor(executor);
        }
        let builder = match names.as_slice() {
            [only] => builder.edge(INPUT, only).edge(only, ANSWERS),
            names => builder.fan_out(INPUT, names).fan_in(names, ANSWERS),
        };
        Ok(builder.build()?)
    }
}

/// Hands the input out as messages.
struct Input;

#[async_trait]
impl Executor for Input {
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
struct Answers {
    aggregate: Option<Aggregate>,
}

#[async_trait]
impl Executor for Answers {
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
