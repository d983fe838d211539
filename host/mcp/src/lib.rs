//! MCP in both directions: tools served to clients, and tools of remote servers as a source of
//! tools.
//!
//! The behaviour is fixed by numbered rules, cited as `MCP-1`. [`Server`] offers a toolset over
//! standard input and output or over HTTP. [`client`] connects to servers, which are not trusted.
//! The SDK behind both is `rmcp`; no type of it is part of this crate's interface.

pub mod client;
mod http;
mod level;
mod server;
mod web;

pub use http::{
    Access, HttpOptions, InvalidAccess, NewToken, OAuth, PATH, Rate, SubjectAccess, TokenAccess,
    TokenFileError, digest, is_local, new_token, read_or_create,
};
pub use server::{
    Agent, AgentTool, Decision, Grantor, InvalidAgent, InvalidToolPattern, ListedResource,
    MissingGrant, Offer, PolicyDigest, Principal, PromptOffer, Receipts, ResourceOffer,
    ResourceSource, ServeError, Server, ServerOptions, SourceFacts, ToolPattern, renamed,
};
