//! Definitions of a plugin's tools.

use serde_json::Value;

use crate::{Arguments, Content, ToolFailure};

/// Something a model can call. `#[tool]` implements it; by hand it is worth it for a schema that is
/// not known from types.
pub trait Tool {
    /// 1 to 128 characters out of `A-Z a-z 0-9 _ . -`, unique within the plugin.
    const NAME: &'static str;

    /// Returns the definition that the host reads when the plugin is installed. Always the same
    /// answer.
    fn definition() -> Definition;

    /// Runs the tool.
    ///
    /// # Errors
    ///
    /// What the tool reports to the model, and arguments that do not fit [`Self::definition`].
    fn call(arguments: Arguments) -> Result<Vec<Content>, ToolFailure>;
}

/// A tool as it is published.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Definition {
    /// The name of [`Tool::NAME`].
    pub name: &'static str,
    /// A short name for users.
    pub title: Option<&'static str>,
    /// Purpose of the tool and when to use it, for the model.
    pub description: &'static str,
    /// A JSON Schema 2020-12 object schema.
    pub input_schema: Value,
    /// The schema of the value of a success, if it is published.
    pub output_schema: Option<Value>,
    /// Hints for approvals and model choice.
    pub annotations: Annotations,
}

impl Definition {
    /// A definition with nothing but what is required.
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

/// Hints about what a call does, as in MCP. They grant nothing, and `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only: Option<bool>,
    /// The tool may destroy something: delete, overwrite, send.
    pub destructive: Option<bool>,
    /// Calling twice with the same arguments changes nothing more.
    pub idempotent: Option<bool>,
    /// The tool reaches things outside the host, such as the network.
    pub open_world: Option<bool>,
    /// The tool may take minutes.
    pub long_running: Option<bool>,
}
