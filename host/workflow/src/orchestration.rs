//! Ways in which several agents work on one thing, as workflows (`WF-13`, `WF-14`).
//!
//! All of them are one builder, [`Orchestration`], with a pattern of its own each. It builds a
//! [`Workflow`] like any other, with events, requests and checkpoints. Participants are known by
//! the names of their agents.

mod concurrent;
mod group_chat;
mod handoff;
mod hub;
mod magentic;
mod sequential;

use std::collections::BTreeSet;

use cofferdam_agent::Agent;
use cofferdam_tool::DuplicateTool;
use cofferdam_tool::declaration::DeclarationError;

use super::agent::{AgentExecutor, Passes};
use super::builder::{Workflow, WorkflowBuilder};
use super::error::InvalidWorkflow;

pub use concurrent::Concurrent;
pub use group_chat::{AgentSelector, GroupChat, Selector, selector_fn};
pub use handoff::Handoff;
pub use magentic::{Magentic, MagenticLimits};
pub use sequential::Sequential;

/// Builder of a workflow in which agents work together in one pattern: [`Sequential`],
/// [`Concurrent`], [`GroupChat`], [`Handoff`] or [`Magentic`].
#[must_use = "nothing is built yet"]
pub struct Orchestration<P> {
    name: String,
    agents: Vec<Agent>,
    /// Participants whose answers are shown as intermediate.
    others: Option<Others>,
    max_iterations: Option<u64>,
    pattern: P,
}

/// Returns some of the participants.
type Others = fn(&[String]) -> &[String];
type OrchestrationResult<T> = Result<T, InvalidOrchestration>;

/// Pattern in which agents work together.
pub trait Pattern {
    /// Name of the workflow unless it is given one.
    const NAME: &'static str;
    /// True if each agent is told the names of the others with their answers.
    const NAMES_SPEAKERS: bool = false;

    /// Adds everything but the agents: start, outputs, other executors, edges.
    ///
    /// # Errors
    /// Settings that cannot work with these participants.
    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder>;

    /// Makes the executor of one agent, which passes on its answer and begins each time anew unless
    /// the pattern differs.
    ///
    /// # Errors
    /// The agent cannot take part.
    fn executor(&self, agent: Agent, names: &[String]) -> OrchestrationResult<AgentExecutor> {
        let _ = names;
        Ok(participant(agent, Passes::Answer, Self::NAMES_SPEAKERS))
    }
}

/// Pattern in which answers of some participants are not the output.
pub trait Intermediate: Pattern {
    /// Returns the participants whose answers are not the output.
    fn others(names: &[String]) -> &[String] {
        names
    }
}

impl<P: Pattern> Orchestration<P> {
    fn of(agents: impl IntoIterator<Item = Agent>, pattern: P) -> Self {
        let (name, agents) = (P::NAME.to_owned(), agents.into_iter().collect());
        Self { name, agents, others: None, max_iterations: None, pattern }
    }

    /// Sets the name of the workflow.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Limits the supersteps of one run. Patterns with rounds have a limit that all of their rounds
    /// fit in.
    pub fn max_iterations(mut self, max_iterations: u64) -> Self {
        self.max_iterations = Some(max_iterations);
        self
    }

    /// Builds the workflow.
    ///
    /// # Errors
    /// No participants, two with one name, or settings of the pattern that cannot work.
    pub fn build(self) -> Result<Workflow, InvalidOrchestration> {
        let names = names(&self.agents)?;
        let mut builder = self.pattern.graph(Workflow::builder(self.name), &names)?;
        if let Some(max_iterations) = self.max_iterations {
            builder = builder.max_iterations(max_iterations);
        }
        let others =
            self.others.map(|others| others(&names).to_vec()).filter(|others| !others.is_empty());
        if let Some(others) = others {
            builder = builder.intermediate_output_from(others);
        }
        for agent in self.agents {
            builder = builder.executor(self.pattern.executor(agent, &names)?);
        }
        Ok(builder.build()?)
    }
}

impl<P: Intermediate> Orchestration<P> {
    /// Shows answers that are not the output as intermediate, at once.
    pub fn intermediate_outputs(mut self, shown: bool) -> Self {
        self.others = shown.then_some(P::others);
        self
    }
}

/// Error of building an orchestration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOrchestration {
    /// There is no participant (`WF-13`).
    #[error("an orchestration needs at least one participant")]
    Empty,
    /// Two agents have one name (`WF-13`).
    #[error("two participants are called `{name}`; give each agent a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// A name is not a participant.
    #[error("`{name}` is not a participant; participants: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Participants.
        known: Vec<String>,
    },
    /// No tool can be called `handoff_to_` and this name.
    #[error("no tool can be called `handoff_to_{name}`: {source}")]
    HandoffName {
        /// The name.
        name: String,
        /// Cause.
        source: Box<DeclarationError>,
    },
    /// A participant has a tool that is called like one of the handoffs.
    #[error("`{name}` cannot be given its handoffs: {source}")]
    HandoffTaken {
        /// The name.
        name: String,
        /// Cause.
        source: Box<DuplicateTool>,
    },
    /// A limit that lets nothing happen.
    #[error("`{limit}` is 0, so no agent could speak; pass at least 1")]
    ZeroLimit {
        /// Limit.
        limit: &'static str,
    },
    /// The workflow cannot be built.
    #[error(transparent)]
    Workflow(#[from] InvalidWorkflow),
}

/// Makes an executor of an agent that begins each time anew.
fn participant(agent: Agent, passes: Passes, names_speakers: bool) -> AgentExecutor {
    let executor = AgentExecutor::new(agent.name().to_owned(), agent).passing(passes).forgetting();
    if names_speakers { executor.naming_speakers() } else { executor }
}

/// The names of the participants, each of which has its own (`WF-13`).
fn names(agents: &[Agent]) -> Result<Vec<String>, InvalidOrchestration> {
    if agents.is_empty() {
        return Err(InvalidOrchestration::Empty);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = agents.iter().find(|agent| !seen.insert(agent.name())) {
        return Err(InvalidOrchestration::DuplicateName { name: twice.name().to_owned() });
    }
    Ok(agents.iter().map(|agent| agent.name().to_owned()).collect())
}
