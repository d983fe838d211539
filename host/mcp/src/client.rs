//! Remote MCP servers as a source of tools.
//!
//! A server is not trusted. Nothing that it says about its tools selects a value of the host
//! (`MCP-2`), and it cannot take the name of another tool (`MCP-12`). Everything that a server can
//! make grow has a limit in `limits.rs`, which is checked before anything is stored. References in
//! schemas are never fetched. Its questions only reach the caller of the call that the server is
//! working on.
//!
//! The rules for one call (`plain.rs`, `task.rs`) see a connection only as a [`Remote`], which
//! answers JSON with JSON, so that the same code runs against a script and against a server.

mod admission;
mod answer;
mod approval;
mod call;
mod call_error;
mod connect_error;
mod connection;
mod extras;
mod forward;
mod handler;
mod http;
mod inbound;
mod item;
mod limits;
mod listing;
mod meta;
mod name;
mod oauth;
mod offer;
mod origin;
mod plain;
mod question;
mod raw;
mod remote;
mod remote_items;
mod review;
mod rounds;
mod running;
mod sampling;
mod schema;
mod server;
mod settings;
mod stdio;
mod task;
mod task_options;
mod task_state;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod unread;

pub use crate::web::ClientError;
pub use admission::{Admission, AdmittedTool, DuplicateName};
pub use answer::CallAnswer;
pub use approval::{Always, ApprovalMode};
pub use call::{Calls, TaskSupport};
pub use call_error::CallError;
pub use connect_error::{AuthorizationError, ConnectError, HandshakeError};
pub use extras::Extras;
pub use forward::{ForwardedArguments, ToolTable};
pub use item::{Item, ItemKind, SelectionMode, into_output};
pub use listing::{ListingError, PromptListed, ServerListing, ToolListed};
pub use meta::{MetaError, joined_meta};
pub use name::{local_name, prefixed_name};
pub use oauth::{
    Browser, CredentialFiles, CredentialStore, Loopback, MemoryCredentials, OAuthClient,
    OAuthSettings,
};
pub use plain::Resend;
pub use question::Questions;
pub use remote::{ReconnectFailed, Remote, RequestError};
pub use remote_items::RemoteItems;
pub use review::{IgnoredStatements, Review, Statements};
pub use sampling::{SamplingHandler, SamplingLimits, SamplingRefused};
pub use schema::{PromptArgument, input_schema, prompt_schema};
pub use server::RemoteServer;
pub use settings::{Generation, HttpEndpoint, InvalidEndpoint, ServerEndpoint, ServerSettings};
pub use stdio::{INHERITED, StdioCommand};
pub use task_options::{TaskOptions, TaskOptionsError, poll_delay};

#[cfg(test)]
mod tests;
