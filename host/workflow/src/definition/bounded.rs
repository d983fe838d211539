//! Loops over runs of an agent whose context does not grow (`LOOP-64`), in YAML.

use std::num::NonZeroU32;
use std::sync::Arc;

use cofferdam_agent::{AgentRun, BoundedLoop, LoopDecision, Response};
use serde::Deserialize;
use serde_json::Value;

use super::TextCondition;

/// Value of `bounded`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BoundedDefinition {
    /// Condition on the answer of an iteration that ends the loop.
    pub until: TextCondition,
    /// Maximum number of iterations.
    pub max_iterations: Option<NonZeroU32>,
    /// Message after the notes, with which an iteration after the first one begins.
    pub next_message: Option<String>,
}

impl BoundedDefinition {
    /// Returns the loop over an agent. The answer of each iteration is the note about it.
    ///
    /// # Errors
    /// A description of the mistake in the condition.
    pub fn bound(&self, agent: impl Into<Arc<dyn AgentRun>>) -> Result<BoundedLoop, String> {
        let until = self.until.condition()?;
        let decide = move |response: &Response, _: u32| {
            let text = response.text();
            let holds = match response.value() {
                Some(value) => until.holds(value),
                None => until.holds(&Value::from(text.as_str())),
            };
            if holds { LoopDecision::Done } else { LoopDecision::Continue { note: text } }
        };
        let mut bounded = BoundedLoop::new(agent, decide);
        if let Some(max_iterations) = self.max_iterations {
            bounded = bounded.max_iterations(max_iterations.get());
        }
        if let Some(message) = &self.next_message {
            bounded = bounded.next_message(message);
        }
        Ok(bounded)
    }
}
