//! Models and tools together.
//!
//! A [`ChatClient`] speaks to a model; everything that can be called is a [`ToolSource`](cofferdam_tool::ToolSource) in a
//! [`Toolset`](cofferdam_tool::Toolset).
//!
//! The behaviour is fixed by numbered rules, cited in the code: `LOOP-7` (loop, approvals, budgets), `CHOICE-3`, `MW-12`
//! (middleware), `SES-6` (sessions and history), `LBL-9` (information-flow labels), `SKILL-7` (skills) and `WF-5` (workflows).

mod agent;
mod approvals;
mod budget;
mod chat;
pub mod choice;
mod clock;
mod compaction;
mod context;
mod error;
pub mod history;
mod hook;
mod hooks;
pub mod labels;
mod live;
mod message;
pub mod middleware;
mod provider;
mod response;
mod run;
mod script;
mod session;
mod settings;
pub mod skills;
mod stream;
pub mod workflow;

pub use agent::{Agent, AgentBuilder, InvalidAgent};
pub use approvals::{ApprovalMode, Approvals, Scope, allow_always, forbid_again, standing_rules};
pub use budget::{BudgetExceeded, BudgetLimits, TokenBudget};
pub use chat::{
    ChatClient, ChatError, ChatErrorKind, ChatOptions, ChatRequest, Delta, FinishReason, Reply, ReplyBuilder,
    ReplyStream, ToolMode, Update,
};
pub use choice::ChoiceBehavior;
pub use clock::{Clock, SystemClock};
pub use compaction::Compaction;
pub use context::{AfterRun, BeforeRun, BoxError, ContextProvider};
pub use error::{CallFailure, RunError};
pub use history::History;
pub use hook::{IterationContext, IterationHook};
pub use live::LiveTools;
pub use message::{
    ApprovalAnswer, ApprovalRequest, Content, Data, FunctionCall, FunctionResult, Message, Reasoning, Role,
    Text, TokenUsage,
};
pub use middleware::{Layer, LayerKind, Middleware, MiddlewareRefused, Next};
pub use provider::{
    Provider, ProviderClient, ProviderRetries, ProviderSettings, ProviderTimeouts, ReplyLimits,
    UnknownProvider,
};
pub use response::Response;
pub use run::{IntoMessages, Run};
pub use script::{AfterScript, SCRIPT_BYTES_MAX, ScriptError, ScriptedClient, ScriptedReply};
pub use session::Session;
pub use settings::{InvalidSetting, LoopSettings, OnErrorLimit};
pub use stream::RunStream;
