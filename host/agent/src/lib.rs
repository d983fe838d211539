//! The function-calling loop: calls a model, runs the functions it calls, and repeats until the
//! model answers.
//!
//! A [`ChatClient`] talks to a model; everything that can be called is a
//! [`ToolSource`](cofferdam_tool::ToolSource) in a [`Toolset`](cofferdam_tool::Toolset). The loop
//! supports [middleware], [sessions](Session) with their [history], [choice] of functions,
//! [approvals](Approvals) and [budgets](TokenBudget).
//!
//! This crate's own client is [`ScriptedClient`], which replays a script. `cofferdam-models` has
//! clients for the APIs of OpenAI and Anthropic, and `cofferdam-workflow`, `cofferdam-skills` and
//! `cofferdam-labels` build on the loop.
//!
//! ```
//! use std::sync::Arc;
//!
//! use cofferdam_agent::{Agent, ScriptedClient};
//! use cofferdam_tool::declaration::Declaration;
//! use cofferdam_tool::{Functions, Toolset};
//! use serde_json::json;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Declaration::new("clock", "Tells the time.", r#"{"type":"object","properties":{}}"#);
//! let functions = Functions::new("clock").with(clock, async |_arguments, _context| Ok(json!("noon")))?;
//! let mut tools = Toolset::new();
//! tools.add(Arc::new(functions))?;
//!
//! let script = r#"
//! {"text":"I look.","calls":[{"tool":"clock","arguments":{}}]}
//! {"text":"It is noon."}
//! "#;
//! let model = ScriptedClient::read("script", script.as_bytes())?;
//! let agent = Agent::builder(model).tools(tools).instructions("Answer in one sentence.").build()?;
//! let response = agent.run("What time is it?").await?;
//! assert_eq!(response.text(), "It is noon.");
//! # Ok(())
//! # }
//! ```
//!
//! Numbered rules define the behavior, and the code cites them: `LOOP-7` (loop, approvals,
//! budgets), `CHOICE-3`, `MW-12` (middleware) and `SES-6` (sessions and history).

mod agent;
mod agent_run;
mod agent_tool;
mod answer;
mod approvals;
mod bounded;
mod budget;
mod chat;
pub mod choice;
mod clock;
pub mod compaction;
mod context;
mod error;
pub mod guard;
pub mod history;
mod hook;
mod hooks;
mod live;
mod message;
pub mod middleware;
mod observer;
mod pairing;
mod response;
mod run;
mod script;
mod session;
mod settings;
mod stream;
mod tool_search;

pub use agent::{Agent, AgentBuilder, InvalidAgent};
pub use agent_run::{AGENT_DEPTH_MAX, AgentRequest, AgentRun, RunContext, UsageMeter};
pub use agent_tool::{AgentTool, AgentToolOptions, InvalidAgentTool};
pub use answer::{InvalidAnswer, InvalidAnswerKind};
pub use approvals::{
    ApprovalEffect, ApprovalMode, ApprovalRule, Approvals, ArgumentPattern, InvalidApprovalRule,
    Scope, allow_always, forbid_again, open_requests, standing_rules,
};
pub use bounded::{BoundedLoop, LoopCondition, LoopDecision};
pub use budget::{BudgetExceeded, BudgetLimits, TokenBudget};
pub use chat::{
    ChatClient, ChatError, ChatErrorKind, ChatOptions, ChatRequest, Delta, Effort, FinishReason,
    Reply, ReplyBuilder, ReplyStream, ResponseFormat, ToolMode, UnknownEffort, Update,
    finite_number,
};
pub use choice::ChoiceBehavior;
pub use clock::{Clock, SystemClock};
pub use compaction::Compaction;
pub use context::{
    AfterRun, BeforeRun, BoxError, ContextProvider, InvalidMode, MemoryFiles, Mode, PlanMode,
    TodoItem, TodoList,
};
pub use error::{CallFailure, RunError};
pub use history::History;
pub use hook::{IterationContext, IterationHook};
pub use live::LiveTools;
pub use message::{
    ApprovalAnswer, ApprovalRequest, Data, FunctionCall, FunctionResult, Message, MessageContent,
    Reasoning, Role, TextContent, TokenUsage, UriContent,
};
pub use middleware::{Layer, LayerKind, Middleware, MiddlewareRefused, Next};
pub use observer::{EndedRun, RunObserver};
pub use pairing::{Pairing, Position};
pub use response::Response;
pub use run::{IntoMessages, Run};
pub use script::{AfterScript, SCRIPT_BYTES_MAX, ScriptError, ScriptedClient, ScriptedReply};
pub use session::Session;
pub use settings::{ErrorLimitAction, InvalidSetting, LimitObserver, LoopSettings, ReachedLimit};
pub use stream::RunStream;
pub use tool_search::{LOAD_TOOL, ToolSearch};
