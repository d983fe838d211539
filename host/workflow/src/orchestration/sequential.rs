//! One agent after another (`WF-13`).

use cofferdam_agent::Agent;

use super::super::agent::{AgentExecutor, Passes};
use super::super::builder::Workflow;
use super::{InvalidOrchestration, names};

/// One agent after another: each sees the input and the answers so far, and the output is the last answer (`WF-13`).
#[must_use = "nothing is built yet"]
pub struct Sequential {
    name: String,
    agents: Vec<Agent>,
    chain_only_responses: bool,
    shows_others: bool,
    max_iterations: Option<u64>,
}

impl Sequential {
    /// These agents in this order.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        let agents = agents.into_iter().collect();
        Self {
            name: "sequential".into(),
            agents,
            chain_only_responses: false,
            shows_others: false,
            max_iterations: None,
        }
    }

    /// What the workflow is called.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Each agent sees the last answer alone (`WF-13`).
    pub fn chain_only_responses(mut self, only: bool) -> Self {
        self.chain_only_responses = only;
        self
    }

    /// The answers of all but the last agent are shown as intermediate.
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
        let passes = if self.chain_only_responses { Passes::Answer } else { Passes::Conversation };
        let (first, last) = match (names.first(), names.last()) {
            (Some(first), Some(last)) => (first.clone(), last.clone()),
            _ => return Err(InvalidOrchestration::Empty),
        };
        let mut builder = Workflow::builder(self.name).start(first).output_from(vec![last]);
        if self.shows_others && names.len() > 1 {
            builder = builder.intermediate_output_from("all_other");
        }
        if let Some(max_iterations) = self.max_iterations {
            builder = builder.max_iterations(max_iterations);
        }
        for (agent, name) in self.agents.into_iter().zip(&names) {
            builder = builder.executor(AgentExecutor::new(name, agent).passing(passes).forgetting());
        }
        if names.len() > 1 {
            builder = builder.chain(names);
        }
        Ok(builder.build()?)
    }
}
