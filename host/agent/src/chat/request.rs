//! Requests to a model.

use std::sync::Arc;

use cofferdam_tool::ToolDefinition;
use cofferdam_tool::trace::TraceContext;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{Effort, ResponseFormat};
use crate::Message;

/// One request to a model.
#[derive(Debug, Clone, Default)]
pub struct ChatRequest {
    /// Messages for the model, in order. Calls and results are paired, and approvals are left out.
    pub messages: Vec<Arc<Message>>,
    /// Functions to advertise.
    pub tools: Arc<[Arc<ToolDefinition>]>,
    /// Number of functions at the end of `tools` that the model has loaded (`LOOP-69`), in the
    /// order of loading. A client of an API that requires the list to stay the same can defer
    /// those that a result of [`LOAD_TOOL`](crate::LOAD_TOOL) names.
    pub loaded_tools: usize,
    /// Functions that an earlier request of the run advertised, if this one advertises none. A
    /// client of an API that requires the list to stay the same sends them, and forbids calling
    /// them.
    pub withheld_tools: Arc<[Arc<ToolDefinition>]>,
    /// Options of the request.
    pub options: ChatOptions,
    /// Id of the conversation that the service stores; `messages` then contains only those that are
    /// new to it (`LOOP-4`).
    pub conversation_id: Option<String>,
    /// Id of the session, if the run has one. A client may derive a key for the provider's prompt
    /// cache from it.
    pub session_id: Option<String>,
    /// Span of the run.
    pub trace: Option<TraceContext>,
    /// Canceled when the caller no longer waits for the reply.
    pub cancellation: CancellationToken,
}

/// Options of a model request. `None` means the provider's default. A client returns an error if
/// its API does not have an option that is set.
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
    /// Model, instead of the client's. A client of one model ignores it.
    pub model: Option<String>,
    /// Maximum number of tokens of the reply.
    pub max_output_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Share of the probability mass from which tokens are sampled.
    pub top_p: Option<f64>,
    /// Strings that end the reply and are not a part of it.
    pub stop: Vec<String>,
    /// Seed of the sampling, for replies that can be repeated to the extent that the provider
    /// supports it.
    pub seed: Option<i64>,
    /// Effort in reasoning.
    pub effort: Option<Effort>,
    /// JSON form of the answer. The loop decodes the answer by it (`LOOP-65`).
    pub response_format: Option<ResponseFormat>,
    /// Additional fields of the provider's request. They never replace fields that the client sets
    /// itself; a field that is an object in both has the members of both.
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

/// Deserializes a number that JSON can hold: models get the settings in it.
///
/// # Errors
/// If the number is infinite or not a number.
pub fn finite_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(number) if !number.is_finite() => {
            Err(D::Error::custom(format!("expected a finite number, found {number}")))
        }
        number => Ok(number),
    }
}
