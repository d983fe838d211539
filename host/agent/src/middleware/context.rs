//! What middleware sees and changes.

use std::sync::Arc;

use cofferdam_tool::invoke::HostValues;
use cofferdam_tool::{CallRecord, Output, ToolDefinition};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{FunctionSignal, Signal, Stage};
use crate::{
    ChatOptions, ChatRequest, FunctionResult, LiveTools, Message, Reply, ReplyStream, Response,
    RunStream, Session,
};

/// A run, as agent middleware sees it.
#[derive(Debug)]
pub struct AgentContext {
    /// The messages that the caller gave.
    pub messages: Vec<Arc<Message>>,
    /// How the model is to answer in this run.
    pub options: ChatOptions,
    /// The session, if there is one.
    pub session: Option<Session>,
    /// Values of the run, for tools of remote servers and for middleware.
    pub host: Option<Arc<HostValues>>,
    /// Whether the caller takes the run piece by piece.
    pub is_streaming: bool,
    /// Cancelled when the run is.
    pub cancellation: CancellationToken,
    /// What came of the run. Set by the rest of the chain, or by middleware instead (`MW-14`).
    pub result: Option<AgentResult>,
}

/// What came of a run.
#[derive(Debug)]
pub enum AgentResult {
    /// The whole response.
    Response(Response),
    /// The response as it comes. The run goes on while it is read (`MW-5`).
    Stream(RunStream),
}

/// A model call, as chat middleware sees it (`MW-20`).
#[derive(Debug)]
pub struct ChatContext {
    /// What the model is sent. Changes count for this call.
    pub request: ChatRequest,
    /// The session, if there is one.
    pub session: Option<Session>,
    /// Values of the run.
    pub host: Option<Arc<HostValues>>,
    /// Whether the reply comes piece by piece.
    pub is_streaming: bool,
    /// The reply. Set by the rest of the chain, or by middleware instead (`MW-14`).
    pub result: Option<ChatResult>,
}

/// What a model call gave.
#[derive(Debug)]
pub enum ChatResult {
    /// The whole reply.
    Reply(Reply),
    /// The reply as it comes (`MW-5`).
    Stream(ReplyStream),
}

/// A function call, as function middleware sees it (`MW-6`).
#[derive(Debug)]
#[non_exhaustive]
pub struct FunctionContext {
    /// The tool.
    pub tool: Arc<ToolDefinition>,
    /// The arguments, not checked yet. Changes count for what runs inside (`MW-7`).
    pub arguments: CallArguments,
    /// The model's id of the call.
    pub call_id: String,
    /// The session, if there is one.
    pub session: Option<Session>,
    /// Values of the run.
    pub host: Option<Arc<HostValues>>,
    /// The tools of the run, to be changed from the next iteration on (`MW-16`).
    pub tools: LiveTools,
    /// Cancelled when the run is.
    pub cancellation: CancellationToken,
    /// What the last attempt left behind, for the host alone. It states the true outcome.
    pub record: Option<CallRecord>,
    /// The result. Set by the rest of the chain, or by middleware instead (`MW-8`).
    pub result: Option<FunctionValue>,
}

/// The arguments of a function call before anybody has checked them.
#[derive(Debug, Clone, PartialEq)]
pub enum CallArguments {
    /// As the model wrote them.
    Text(String),
    /// As middleware wants them.
    Value(Value),
}

/// What a function call gave.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FunctionValue {
    /// A value for the model (`MW-8`).
    Output(Output),
    /// What the model is told about a failure; it counts as one (`LOOP-17`).
    Error(Output),
    /// A finished result (`LOOP-28`).
    Finished(FunctionResult),
}

impl Stage for AgentContext {
    type Signal = Signal<Response>;
}

impl Stage for ChatContext {
    type Signal = Signal<Reply>;
}

impl Stage for FunctionContext {
    type Signal = FunctionSignal;
}

impl CallArguments {
    /// The arguments as JSON text.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Value(value) => value.to_string(),
        }
    }
}

impl FunctionValue {
    /// The text that the model sees (`MW-8`).
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
