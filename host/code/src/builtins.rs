//! Functions that every program has: the search for tools, and stored values. Interpreters call
//! them as tools.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::declaration::{Declaration, DeclarationError};
use cofferdam_tool::label::{StatedBy, StatedLabels};
use cofferdam_tool::{
    CallContext, Completion, Outcome, ToolCall, ToolDefinition, ToolFailure, ToolName, ToolSource,
};

/// Returns declarations of tools that match a query.
pub(crate) const SEARCH: &str = "cofferdam_code_search";
/// Returns the declaration of a tool.
pub(crate) const DESCRIBE: &str = "cofferdam_code_describe";
/// Stores a value for later programs.
pub(crate) const STORE: &str = "cofferdam_code_store";
/// Loads a stored value.
pub(crate) const LOAD: &str = "cofferdam_code_load";

/// Name of the source.
const SOURCE: &str = "cofferdam_code";

/// Source of these functions. The run answers their calls.
pub(crate) struct Builtins(Arc<[Arc<ToolDefinition>]>);

impl Builtins {
    /// Creates the source.
    pub(crate) fn new() -> Result<Self, DeclarationError> {
        let object = |properties: &str, required: &str| {
            format!(
                r#"{{"type":"object","properties":{{{properties}}},"required":[{required}],"additionalProperties":false}}"#
            )
        };
        let declared = [
            (SEARCH, "Searches tools.", object(r#""query":{"type":"string"}"#, r#""query""#)),
            (DESCRIBE, "Declares a tool.", object(r#""name":{"type":"string"}"#, r#""name""#)),
            (STORE, "Stores a value.", object(r#""key":{"type":"string"},"value":{}"#, r#""key""#)),
            (LOAD, "Loads a value.", object(r#""key":{"type":"string"}"#, r#""key""#)),
        ];
        let definitions = declared.into_iter().map(|(name, description, schema)| {
            Declaration::new(name, description, schema).compile().map(Arc::new)
        });
        Ok(Self(definitions.collect::<Result<_, _>>()?))
    }
}

#[async_trait]
impl ToolSource for Builtins {
    fn name(&self) -> &str {
        SOURCE
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.0)
    }

    fn labels(&self, _tool: &ToolName) -> StatedLabels {
        StatedLabels { accepts_untrusted: Some(true), ..StatedLabels::default() }
    }

    fn states_for(&self) -> StatedBy {
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let message = format!("'{}' can be called by programs only", call.tool.name);
        Completion::ended(Outcome::Failure(ToolFailure::new(message)), context)
    }
}
