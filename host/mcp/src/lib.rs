//! The rules for tools of remote MCP servers that need no connection: what they are called, which are admitted, whose approval
//! they need, and which arguments reach the server.
//!
//! The behaviour is fixed by numbered rules, cited as `MCP-1`. A server is not trusted: what it says about its tools selects no
//! value of the host (`MCP-2`), and it cannot take the name of another tool (`MCP-12`).

mod admission;
mod approval;
mod extras;
mod forward;
mod http;
mod meta;
mod name;
mod schema;
mod server;
mod task;
mod web;

pub use admission::{Admission, Admitted, DuplicateName};
pub use approval::{Always, ApprovalMode};
pub use extras::Extras;
pub use forward::{Forwarded, ToolTable};
pub use http::{
    Access, HttpOptions, InvalidAccess, NewToken, OAuth, PATH, Rate, SubjectAccess, TokenAccess,
    TokenFileError, digest, is_local, read_or_create,
};
pub use meta::{MetaError, joined_meta};
pub use name::{local_name, prefixed_name};
pub use schema::{PromptArgument, input_schema, prompt_schema};
pub use server::{
    Agent, AgentTool, InvalidAgent, ListedResource, Offer, Principal, PromptOffer, ResourceOffer,
    ResourceSource, ServeError, Server, ServerOptions, SourceFacts, renamed,
};
pub use task::{TaskOptions, TaskOptionsError, poll_delay};
