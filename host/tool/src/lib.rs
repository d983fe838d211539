//! Vocabulary of Cofferdam and the rules that need no I/O and no runtime.
//!
//! A *tool* has a [`ToolDefinition`]; a [`ToolSource`] lists definitions and invokes them; a
//! [`Toolset`] joins several sources under unique names. It is the one path that every edge
//! (command line, MCP server, agent loop) takes: look up, decode the arguments ([`InputSchema`]),
//! invoke, and return an [`Outcome`] with its [`CallRecord`].
//!
//! The behavior is fixed by numbered rules, cited in the code as `ARG-7` (arguments) and `RES-5`
//! (results). Nothing here opens a file, a socket or a Wasm module, and nothing here may panic on
//! any input.

// Code that `#[tool]` generates names this crate, in the tests here as well.
#[cfg(test)]
extern crate self as cofferdam_tool;

pub mod arguments;
pub mod ask;
pub mod cut;
pub mod declaration;
mod definition;
mod error;
mod failure;
pub mod functions;
pub mod handover;
pub mod invoke;
mod json;
pub mod label;
mod limits;
mod name;
pub mod origin;
pub mod outcome;
pub mod output;
pub mod pattern;
pub mod permission;
pub mod prompt;
pub mod record;
pub mod recording;
pub mod redact;
pub mod retry;
pub mod schema;
pub mod search;
pub mod sink;
pub mod text;
mod toolset;
pub mod trace;
pub mod usage;

pub use arguments::{Arguments, DecodeOptions, InvalidArguments};
pub use definition::{Annotations, ToolDefinition};
pub use error::{ErrorType, ToolError};
pub use failure::ToolFailure;
pub use functions::Functions;
pub use invoke::{CallContext, ToolCall, ToolSource};
pub use limits::Limits;
pub use name::{InvalidName, PluginName, ToolName};
pub use outcome::{Completion, Outcome};
pub use output::{Content, Output};
pub use permission::{FileAccess, MountName, Permission, Policy};
pub use record::CallRecord;
pub use schema::{InputSchema, OutputSchema};
pub use toolset::{DuplicateTool, RefusedCall, Toolset};
