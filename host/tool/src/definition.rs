//! What a source says about a tool.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{InputSchema, OutputSchema, ToolName};

/// A tool as it is offered to a model.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// The name within its source.
    pub name: ToolName,
    /// A short name for people.
    pub title: Option<String>,
    /// What the tool does, for the model.
    pub description: String,
    /// How arguments are declared and decoded.
    pub input: Arc<InputSchema>,
    /// What a success looks like, if that is declared (`RES-22`).
    pub output: Option<Arc<OutputSchema>>,
    /// Hints about what a call does.
    pub annotations: Annotations,
}

/// Hints about a tool as in MCP. They come from the tool's author and are never the basis of a
/// permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    pub destructive: Option<bool>,
    /// Calling twice with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// The tool reaches things outside the host.
    pub open_world: Option<bool>,
    /// The tool may take minutes.
    pub long_running: Option<bool>,
}
