//! Requests to a model.

use std::sync::Arc;

use cofferdam_tool::ToolDefinition;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::Message;

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// Messages for the model, in order. Calls and results are paired, and approvals are left out.
    pub messages: Vec<Arc<Message>>,
    /// Functions to advertise.
    pub tools: Arc<[Arc<ToolDefinition>]>,
    /// Options of the request.
    pub options: ChatOptions,
    /// Id of the conversation that the service stores; `messages` then contains only those that are
    /// new to it (`LOOP-4`).
    pub conversation_id: Option<String>,
    /// Canceled when the caller no longer waits for the reply.
    pub cancellation: CancellationToken,
}

/// Options of a model request. `None` means the provider's default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatOptions {
    /// Instructions that come before everything else, in addition to system messages.
    pub instructions: Option<String>,
    /// Restriction on calling functions.
    pub tool_choice: Option<ToolMode>,
    /// Permission to call several functions in one reply (`CHOICE-7`).
    pub allow_parallel_calls: Option<bool>,
    /// True if the provider should enforce schemas where it can (`CHOICE-7`).
    pub strict_schemas: bool,
    /// Maximum number of tokens of the reply.
    pub max_output_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Additional fields of the provider's request. They never replace fields that the client sets
    /// itself.
    pub additional: Map<String, Value>,
}

/// Restriction on calling functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolMode {
    /// The model decides.
    Auto,
    /// The model must not call any. The functions stay listed (`LOOP-19`).
    None,
    /// The model must call at least one; this one if a name is given.
    Required(Option<String>),
}
