//! Ways in which several agents work on one thing, as workflows (`WF-13`, `WF-14`).
//!
//! Each is a builder; what it builds is a [`Workflow`](super::Workflow) like any other, with events, requests and checkpoints. Participants are
//! known by the names of their agents.

mod concurrent;
mod group_chat;
mod handoff;
mod magentic;
mod sequential;

use std::collections::BTreeSet;

use cofferdam_agent::Agent;
use cofferdam_tool::{DeclarationError, DuplicateTool};

use super::error::InvalidWorkflow;

pub use concurrent::Concurrent;
pub use group_chat::{AgentSelector, GroupChat, Selector, selector_fn};
pub use handoff::Handoff;
pub use magentic::{Magentic, MagenticLimits};
pub use sequential::Sequential;

/// Why agents cannot work together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidOrchestration {
    /// Nobody takes part (`WF-13`).
    #[error("an orchestration needs at least one participant")]
    Empty,
    /// Two agents have one name (`WF-13`).
    #[error("two participants are called `{name}`; give each agent a name of its own")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// Somebody is named who does not take part.
    #[error("`{name}` is no participant; participants: {}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// Who takes part.
        known: Vec<String>,
    },
    /// No tool can be called `handoff_to_` and this name.
    #[error("no tool can be called `handoff_to_{name}`: {source}")]
    HandoffName {
        /// The name.
        name: String,
        /// Why not.
        source: Box<DeclarationError>,
    },
    /// A participant has a tool that is called like one of the handoffs.
    #[error("`{name}` cannot be given its handoffs: {source}")]
    HandoffTaken {
        /// The name.
        name: String,
        /// Why not.
        source: Box<DuplicateTool>,
    },
    /// A limit that lets nothing happen.
    #[error("`{limit}` is 0, and nobody could speak; pass at least 1")]
    ZeroLimit {
        /// Which one.
        limit: &'static str,
    },
    /// The workflow cannot be built.
    #[error(transparent)]
    Workflow(#[from] InvalidWorkflow),
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
