//! Contexts that middleware can read and change.

use std::sync::Arc;

use cofferdam_tool::invoke::HostValues;
use cofferdam_tool::{CallRecord, Output, ToolDefinition};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{FunctionSignal, MiddlewareStage, Signal};
use crate::{
    ChatOptions, ChatRequest, FunctionResult, LiveTools, Message, Reply, ReplyStream, Response,
    RunStream, Session,
};

/// A run, as agent middleware sees it.
#[derive(Debug)]
pub struct AgentContext {
    /// Messages of the caller.
    pub messages: Vec<Arc<Message>>,
    /// Options of the run's model requests.
    pub options: ChatOptions,
    /// The session, if there is one.
    pub session: Option<Session>,
    /// Values of the run, for tools of remote servers and for middleware.
    pub host: Option<Arc<HostValues>>,
    /// True if the caller streams the run.
    pub is_streaming: bool,
    /// Canceled when the run is.
    pub cancellation: CancellationToken,
    /// Result of the run. Set by the rest of the chain, or by middleware instead (`MW-14`).
    pub result: Option<AgentResult>,
}

/// Result of a run.
#[derive(Debug)]
pub enum AgentResult {
    /// The whole response.
    Response(Response),
    /// The response as a stream. The run continues while it is read (`MW-5`).
    Stream(RunStream),
}

/// A model call, as chat middleware sees it (`MW-20`).
#[derive(Debug)]
pub struct ChatContext {
    /// Request to the model. Changes apply to this call.
    pub request: ChatRequest,
    /// The session, if there is one.
    pub session: Option<Session>,
    /// Values of the run.
    pub host: Option<Arc<HostValues>>,
    /// True if the reply is streamed.
    pub is_streaming: bool,
    /// Reply of the model. Set by the rest of the chain, or by middleware instead (`MW-14`).
    pub result: Option<ChatResult>,
}

/// Result of a model call.
#[derive(Debug)]
pub enum ChatResult {
    /// The whole reply.
    Reply(Reply),
    /// The reply as a stream (`MW-5`).
    Stream(ReplyStream),
}

/// A function call, as function middleware sees it (`MW-6`).
#[derive(Debug)]
#[non_exhaustive]
pub struct FunctionContext {
    /// Definition of the called tool.
    pub tool: Arc<ToolDefinition>,
    /// Arguments, not yet validated. Changes apply to everything inside (`MW-7`).
    pub arguments: CallArguments,
    /// Id that the model gave the call.
    pub call_id: String,
    /// The session, if there is one.
    pub session: Option<Session>,
    /// Values of the run.
    pub host: Option<Arc<HostValues>>,
    /// Tools of the run. Changes take effect in the next iteration (`MW-16`).
    pub tools: LiveTools,
    /// Canceled when the run is.
    pub cancellation: CancellationToken,
    /// Record of the last attempt, with its true outcome. Only for the host.
    pub record: Option<Box<CallRecord>>,
    /// Result of the call. Set by the rest of the chain, or by middleware instead (`MW-8`).
    pub result: Option<FunctionValue>,
}

/// Arguments of a function call before they are validated.
#[derive(Debug, Clone, PartialEq)]
pub enum CallArguments {
    /// JSON as the model wrote it.
    Text(String),
    /// Value set by middleware.
    Value(Value),
}

/// Result of a function call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FunctionValue {
    /// A value for the model (`MW-8`).
    Output(Output),
    /// Description of a failure for the model; the call counts as failed (`LOOP-17`).
    Error(Output),
    /// A finished result (`LOOP-28`).
    Finished(FunctionResult),
}

impl MiddlewareStage for AgentContext {
    type Signal = Signal<Response>;
}

impl MiddlewareStage for ChatContext {
    type Signal = Signal<Reply>;
}

impl MiddlewareStage for FunctionContext {
    type Signal = FunctionSignal;
}

impl CallArguments {
    /// Returns the arguments as a JSON string.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Value(value) => value.to_string(),
        }
    }
}

impl FunctionValue {
    /// Returns the text that the model sees (`MW-8`).
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Output(output) | Self::Error(output) => output.text(),
            Self::Finished(result) => result.result.clone(),
        }
    }
}

impl From<Value> for FunctionValue {
    fn from(value: Value) -> Self {
        Self::Output(Output::Value(value))
    }
}

impl From<&str> for FunctionValue {
    fn from(text: &str) -> Self {
        Value::from(text).into()
    }
}
