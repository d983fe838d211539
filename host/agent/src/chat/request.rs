//! One request to a model.

use std::sync::Arc;

use cofferdam_tool::ToolDefinition;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::Message;

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// What the model is to see, in order. Calls and results of calls are paired, and approvals are
    /// not among it.
    pub messages: Vec<Arc<Message>>,
    /// The functions that are advertised.
    pub tools: Arc<[Arc<ToolDefinition>]>,
    /// How the model is to answer.
    pub options: ChatOptions,
    /// The conversation that the service keeps; `messages` are then only those that it has not seen
    /// (`LOOP-4`).
    pub conversation_id: Option<String>,
    /// Cancelled when nobody waits for the reply any more.
    pub cancellation: CancellationToken,
}

/// How a model is to answer. `None` everywhere means the provider's own default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatOptions {
    /// What the model is told before everything else, beside system messages.
    pub instructions: Option<String>,
    /// Whether the model may, must or must not call functions.
    pub tool_choice: Option<ToolMode>,
    /// Whether it may call several functions in one reply (`CHOICE-7`).
    pub allow_parallel_calls: Option<bool>,
    /// Whether the provider is asked to keep to the schema where it can (`CHOICE-7`).
    pub strict_schemas: bool,
    /// Most tokens of the reply.
    pub max_output_tokens: Option<u64>,
    /// Randomness.
    pub temperature: Option<f64>,
    /// Fields for the provider's request as they are. They never replace one that the client sets
    /// itself.
    pub additional: Map<String, Value>,
}

/// Whether a model may, must or must not call functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolMode {
    /// As the model likes.
    Auto,
    /// Not at all. The functions stay listed (`LOOP-19`).
    None,
    /// At least one; the one of this name if there is a name.
    Required(Option<String>),
}
