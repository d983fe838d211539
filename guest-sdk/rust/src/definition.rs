//! Definitions of a plugin's tools.

use serde_json::Value;

use crate::{Arguments, Content, ToolFailure};

/// A tool that a model can call. `#[tool]` implements this trait. Implement it by hand if the
/// schema is not known from types.
pub trait Tool {
    /// Name of the tool: 1 to 128 characters from `A-Z a-z 0-9 _ . -`, unique within the plugin.
    const NAME: &'static str;

    /// Returns the definition, which the host reads when the plugin is installed. It must always be
    /// the same.
    fn definition() -> Definition;

    /// Runs the tool.
    ///
    /// # Errors
    /// A failure that the tool reports to the model, also for arguments that do not match
    /// [`Self::definition`].
    fn call(arguments: Arguments) -> Result<Vec<Content>, ToolFailure>;
}

/// Published definition of a tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// Name of the tool, from [`Tool::NAME`].
    pub name: &'static str,
    /// Display name for users.
    pub title: Option<&'static str>,
    /// Purpose of the tool and when to use it, for the model.
    pub description: &'static str,
    /// JSON Schema 2020-12 object schema of the arguments.
    pub input_schema: Value,
    /// Schema of the value of a success, if it is published.
    pub output_schema: Option<Value>,
    /// Hints for approvals and model choice.
    pub annotations: Annotations,
}

impl Definition {
    /// Creates a definition with only the required parts.
    #[must_use]
    pub fn new(name: &'static str, description: &'static str, input_schema: Value) -> Self {
        Self {
            name,
            title: None,
            description,
            input_schema,
            output_schema: None,
            annotations: Annotations::default(),
        }
    }
}

/// Hints about the effects of a call, as in MCP. They grant nothing, and `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations {
    /// True if the tool changes nothing.
    pub read_only: Option<bool>,
    /// True if the tool may destroy something: delete, overwrite, send.
    pub destructive: Option<bool>,
    /// True if a second call with the same arguments has no further effect.
    pub idempotent: Option<bool>,
    /// True if the tool accesses systems outside the host, such as the network.
    pub open_world: Option<bool>,
    /// True if the tool may take minutes.
    pub long_running: Option<bool>,
}
