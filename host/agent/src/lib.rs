//! Models and tools together.
//!
//! A [`ChatClient`] speaks to a model; everything that can be called is a [`ToolSource`](cofferdam_tool::ToolSource) in a
//! [`Toolset`](cofferdam_tool::Toolset).
//!
//! The behaviour is fixed by numbered rules, cited in the code: `LOOP-7` (loop, approvals, budgets), `CHOICE-3`, `MW-12`
//! (middleware) and `SES-6` (sessions and history).

mod budget;
mod chat;
mod context;
mod error;
mod live;
mod message;
pub mod middleware;
mod response;
mod script;
mod session;
mod stream;

pub use budget::{BudgetExceeded, BudgetLimits, TokenBudget};
pub use chat::{
    ChatClient, ChatError, ChatErrorKind, ChatOptions, ChatRequest, Delta, FinishReason, Reply, ReplyBuilder,
    ReplyStream, ToolMode, Update,
};
pub use context::{AfterRun, BeforeRun, BoxError, ContextProvider};
pub use error::{CallFailure, RunError};
pub use live::LiveTools;
pub use message::{
    ApprovalAnswer, ApprovalRequest, Content, Data, FunctionCall, FunctionResult, Message, Reasoning, Role,
    Text, TokenUsage,
};
pub use response::Response;
pub use script::{AfterScript, SCRIPT_BYTES_MAX, ScriptError, ScriptedClient, ScriptedReply};
pub use session::Session;
pub use stream::RunStream;
