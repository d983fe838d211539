//! Sequential orchestration (`WF-13`).

use std::sync::Arc;

use cofferdam_agent::AgentRun;

use super::super::agent::{AgentExecutor, ForwardMode};
use super::super::builder::WorkflowBuilder;
use super::{
    Intermediate, InvalidOrchestration, Orchestration, OrchestrationResult, Pattern, participant,
};

/// Sequential orchestration: each agent sees the input and the answers so far, and the output is
/// the last answer (`WF-13`).
pub type Sequential = Orchestration<OneByOne>;

/// Pattern of [`Sequential`].
#[derive(Default)]
pub struct OneByOne {
    chain_only_responses: bool,
}

impl Sequential {
    /// Creates the orchestration of these agents, in their order.
    pub fn new(agents: impl IntoIterator<Item: Into<Arc<dyn AgentRun>>>) -> Self {
        Self::of(agents, OneByOne::default())
    }

    /// Sets whether each agent sees only the last answer (`WF-13`).
    pub fn chain_only_responses(mut self, only: bool) -> Self {
        self.pattern.chain_only_responses = only;
        self
    }
}

impl Pattern for OneByOne {
    const NAME: &'static str = "sequential";

    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder> {
        let (Some(first), Some(last)) = (names.first(), names.last()) else {
            return Err(InvalidOrchestration::Empty);
        };
        let builder = builder.start(first).output_from([last.as_str()]);
        Ok(if names.len() > 1 { builder.chain(names) } else { builder })
    }

    fn executor(
        &self,
        agent: Arc<dyn AgentRun>,
        _: &[String],
    ) -> OrchestrationResult<AgentExecutor> {
        let passes =
            if self.chain_only_responses { ForwardMode::Answer } else { ForwardMode::Conversation };
        Ok(participant(agent, passes, Self::NAMES_SPEAKERS))
    }
}

impl Intermediate for OneByOne {
    fn others(names: &[String]) -> &[String] {
        names.split_last().map_or(&[], |(_, others)| others)
    }
}
