//! MCP in both directions: serves tools to clients, and uses the tools of remote servers as a
//! source of tools.
//!
//! Numbered rules, cited as `MCP-1`, define the behavior. [`Server`] offers a toolset over standard
//! input and output or over HTTP. [`client`] connects to servers, which are not trusted. Both use
//! the SDK `rmcp`; none of its types is part of this crate's interface.

pub mod client;
mod http;
mod level;
mod monitoring;
mod seal;
mod server;
mod web;

pub use http::{
    Access, HttpOptions, InvalidAccess, NewToken, OAuth, PATH, Rate, SharedSessions, SubjectAccess,
    TokenAccess, TokenFileError, digest, is_local, new_token, read_or_create,
};
pub use monitoring::{MonitoringPage, MonitoringPages, serve_monitoring};
pub use seal::{SealError, StateSeal};
pub use server::{
    Agent, AgentTool, CallRules, GrantDecision, Grantor, InvalidAgent, ListedResource,
    MissingGrant, Offer, OfferVariant, PolicyDigest, Principal, PromptOffer, Receipts,
    ResourceOffer, ResourceSource, RuleDecision, ServeError, Server, ServerOptions, SharedTasks,
    SourceFacts, TakenTask, renamed, standard_streams,
};
