//! Ready-made workflows of several agents (`WF-13`, `WF-14`).
//!
//! They share one builder, [`Orchestration`], which is generic over the pattern. It builds an
//! ordinary [`Workflow`] with events, requests and checkpoints. Participants are identified by the
//! names of their agents.

mod concurrent;
mod group_chat;
mod handoff;
mod hub;
mod magentic;
mod sequential;

use std::collections::BTreeSet;
use std::sync::Arc;

use cofferdam_agent::AgentRun;
use cofferdam_tool::DuplicateTool;
use cofferdam_tool::declaration::DeclarationError;

use super::agent::{AgentExecutor, ForwardMode};
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
    agents: Vec<Arc<dyn AgentRun>>,
    /// Selects the participants whose answers are intermediate output.
    others: Option<ParticipantFilter>,
    max_iterations: Option<u64>,
    pattern: P,
}

/// Function that selects some of the participants.
type ParticipantFilter = fn(&[String]) -> &[String];
type OrchestrationResult<T> = Result<T, InvalidOrchestration>;

/// Pattern in which agents work together.
pub trait Pattern {
    /// Default name of the workflow.
    const NAME: &'static str;
    /// True if agents see the name of the speaker before each answer of another agent.
    const NAMES_SPEAKERS: bool = false;

    /// Adds everything but the agents: start, outputs, other executors, edges.
    ///
    /// # Errors
    /// The settings are invalid for these participants.
    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder>;

    /// Creates the executor of one agent. By default it sends its answer and forgets each turn.
    ///
    /// # Errors
    /// The agent cannot take part.
    fn executor(
        &self,
        agent: Arc<dyn AgentRun>,
        names: &[String],
    ) -> OrchestrationResult<AgentExecutor> {
        let _ = names;
        Ok(participant(agent, ForwardMode::Answer, Self::NAMES_SPEAKERS))
    }
}

/// Pattern in which answers of some participants are not output.
pub trait Intermediate: Pattern {
    /// Returns the participants whose answers are not output.
    fn others(names: &[String]) -> &[String] {
        names
    }
}

impl<P: Pattern> Orchestration<P> {
    fn of(agents: impl IntoIterator<Item: Into<Arc<dyn AgentRun>>>, pattern: P) -> Self {
        let (name, agents) = (P::NAME.to_owned(), agents.into_iter().map(Into::into).collect());
        Self { name, agents, others: None, max_iterations: None, pattern }
    }

    /// Sets the name of the workflow.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the maximum number of supersteps of one run. By default, patterns with rounds allow as
    /// many supersteps as their rounds need.
    pub fn max_iterations(mut self, max_iterations: u64) -> Self {
        self.max_iterations = Some(max_iterations);
        self
    }

    /// Builds the workflow.
    ///
    /// # Errors
    /// There are no participants, two of them have the same name, or settings of the pattern are
    /// invalid.
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
    /// Makes the answers that are not output intermediate output.
    pub fn intermediate_outputs(mut self, shown: bool) -> Self {
        self.others = shown.then_some(P::others);
        self
    }
}

/// Error of building an orchestration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOrchestration {
    /// There are no participants (`WF-13`).
    #[error("an orchestration needs at least one participant")]
    Empty,
    /// Two agents have the same name (`WF-13`).
    #[error("two participants are called `{name}`; give each agent a name of its own")]
    DuplicateName {
        /// Name of both agents.
        name: String,
    },
    /// A setting names an agent that is not a participant.
    #[error("`{name}` is not a participant; participants: {}", known.join(", "))]
    Unknown {
        /// The unknown name.
        name: String,
        /// Names of the participants.
        known: Vec<String>,
    },
    /// `handoff_to_` with this name is not a valid tool name.
    #[error("no tool can be called `handoff_to_{name}`: {source}")]
    HandoffName {
        /// Name of the target.
        name: String,
        /// Cause.
        source: Box<DeclarationError>,
    },
    /// A participant already has a tool with the name of one of its handoffs.
    #[error("`{name}` cannot be given its handoffs: {source}")]
    HandoffTaken {
        /// Name of the participant.
        name: String,
        /// Cause.
        source: Box<DuplicateTool>,
    },
    /// A participant that can hand off takes no tools of its caller.
    #[error("`{name}` takes no tools of its caller, so it cannot hand off; give it no route")]
    HandoffTools {
        /// Name of the participant.
        name: String,
    },
    /// A limit is 0.
    #[error("`{limit}` is 0, so no agent could speak; pass at least 1")]
    ZeroLimit {
        /// Name of the limit.
        limit: &'static str,
    },
    /// The resulting workflow is invalid.
    #[error(transparent)]
    Workflow(#[from] InvalidWorkflow),
}

/// Creates an executor of an agent that forgets each turn.
fn participant(
    agent: Arc<dyn AgentRun>,
    passes: ForwardMode,
    names_speakers: bool,
) -> AgentExecutor {
    let executor = AgentExecutor::new(agent.name().to_owned(), agent).passing(passes).forgetting();
    if names_speakers { executor.with_speaker_names() } else { executor }
}

/// Returns the names of the participants and checks that they are unique (`WF-13`).
fn names(agents: &[Arc<dyn AgentRun>]) -> Result<Vec<String>, InvalidOrchestration> {
    if agents.is_empty() {
        return Err(InvalidOrchestration::Empty);
    }
    let mut seen = BTreeSet::new();
    if let Some(twice) = agents.iter().find(|agent| !seen.insert(agent.name())) {
        return Err(InvalidOrchestration::DuplicateName { name: twice.name().to_owned() });
    }
    Ok(agents.iter().map(|agent| agent.name().to_owned()).collect())
}
