//! Definitions of tools.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{ErrorType, InputSchema, Output, OutputSchema, ToolError, ToolName};

/// A tool as offered to a model.
#[derive(Debug, Clone)]
pub struct ToolDefinition {
    /// Name within its source.
    pub name: ToolName,
    /// Short display name.
    pub title: Option<String>,
    /// Description of the tool, for the model.
    pub description: String,
    /// Schema that declares and decodes the arguments.
    pub input: Arc<InputSchema>,
    /// Schema of successful results, if declared (`RES-22`).
    pub output: Option<Arc<OutputSchema>>,
    /// Hints about the effects of a call.
    pub annotations: Annotations,
    /// Group in which its author has put the tool.
    pub group: Option<String>,
}

impl ToolDefinition {
    /// Checks the output of a successful call against the declared schema, if there is one
    /// (`RES-22`).
    ///
    /// # Errors
    /// [`ErrorType::InvalidResult`], with the parts that violate the schema as its detail.
    pub fn check_output(&self, output: &Output) -> Result<(), ToolError> {
        let Some(schema) = &self.output else { return Ok(()) };
        let checked = match output {
            Output::Value(value) => schema.validate(value),
            Output::Contents(_) => {
                Err("the result is a list of contents and not one value".to_owned())
            }
        };
        checked.map_err(|detail| ToolError::new(ErrorType::InvalidResult).with_detail(detail))
    }
}

/// Hints about a tool, as in MCP. They come from the tool's author and are never the basis of a
/// permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Annotations {
    /// True if the tool changes nothing.
    pub read_only: Option<bool>,
    /// True if the tool may destroy something.
    pub destructive: Option<bool>,
    /// True if a repeated call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// True if the tool interacts with the world outside the host.
    pub open_world: Option<bool>,
    /// True if a call may take minutes.
    pub long_running: Option<bool>,
}
