//! Models and tools together.
//!
//! A [`ChatClient`] speaks to a model; everything that can be called is a [`ToolSource`](cofferdam_tool::ToolSource) in a
//! [`Toolset`](cofferdam_tool::Toolset).
//!
//! The behaviour is fixed by numbered rules, cited in the code: `LOOP-7` (loop, approvals, budgets), `CHOICE-3`, `MW-12`
//! (middleware) and `SES-6` (sessions and history).

mod chat;
mod message;
mod provider;

pub use chat::{
    ChatClient, ChatError, ChatErrorKind, ChatOptions, ChatRequest, Delta, FinishReason, Reply, ReplyBuilder,
    ReplyStream, ToolMode, Update,
};
pub use message::{
    ApprovalAnswer, ApprovalRequest, Content, Data, FunctionCall, FunctionResult, Message, Reasoning, Role,
    Text, TokenUsage,
};
pub use provider::{
    Provider, ProviderClient, ProviderRetries, ProviderSettings, ProviderTimeouts, ReplyLimits,
    UnknownProvider,
};
