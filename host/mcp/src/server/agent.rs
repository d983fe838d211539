//! Agent as a tool (`MCP-38`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::{
    Annotations, CallContext, CallRecord, Completion, InputSchema, Outcome, Output, ToolCall,
    ToolDefinition, ToolName, ToolSource,
};
use serde_json::{Value, json};

use crate::client::local_name;

/// Answers tasks. Implemented by types that run an agent.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Runs a task and returns the reply as a string.
    async fn answer(&self, task: &str, context: &CallContext) -> Outcome;
}

/// The single tool of a served agent: named after the agent (`MCP-9`), with one required string
/// argument.
pub struct AgentTool<A> {
    agent: A,
    definitions: Arc<[Arc<ToolDefinition>]>,
    name: String,
}

/// Error returned when an agent cannot be offered as a tool.
#[derive(Debug, thiserror::Error)]
#[error("an agent called `{name}` cannot be offered as a tool: {reason}")]
pub struct InvalidAgent {
    name: String,
    reason: String,
}

impl<A: Agent> AgentTool<A> {
    /// Creates the tool of an agent.
    ///
    /// # Errors
    /// [`InvalidAgent`] if no valid tool name can be derived from the agent's name.
    pub fn new(name: &str, description: &str, agent: A) -> Result<Self, InvalidAgent> {
        let invalid = |reason: String| InvalidAgent { name: name.to_owned(), reason };
        let tool = ToolName::new(local_name(name)).map_err(|error| invalid(error.to_string()))?;
        let schema = json!({
            "type": "object",
            "properties": {"task": {"type": "string", "description": format!("Task for {name}")}},
            "required": ["task"],
            "additionalProperties": false,
        });
        let input = InputSchema::compile(tool.as_str(), &schema.to_string());
        let definition = ToolDefinition {
            name: tool,
            title: None,
            description: description.to_owned(),
            input: Arc::new(input.map_err(|error| invalid(error.to_string()))?),
            output: None,
            annotations: Annotations::default(),
            group: None,
        };
        Ok(Self { agent, definitions: Arc::from([Arc::new(definition)]), name: name.to_owned() })
    }
}

#[async_trait]
impl<A: Agent + 'static> ToolSource for AgentTool<A> {
    fn name(&self) -> &str {
        &self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let task = call.arguments.value().get("task").and_then(Value::as_str).unwrap_or_default();
        let outcome = tokio::select! {
            biased;
            () = context.cancelled() => Outcome::Cancelled,
            outcome = self.agent.answer(task, context) => match outcome {
                Outcome::Ok(output) => Outcome::Ok(Output::Value(Value::String(output.text()))),
                other => other,
            },
        };
        let mut record = CallRecord::default();
        record.call_id.clone_from(&context.call_id);
        record.tool = Some(call.tool.name.clone());
        record.set_outcome(&outcome);
        Completion::new(outcome, record)
    }
}
