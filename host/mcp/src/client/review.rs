//! Review of what a server states about its tools.
//!
//! A server can change its statements after the user has reviewed them. So everything that a model
//! would read is passed to a [`Review`] each time the lists are loaded, and statements that it does
//! not accept are left out.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_tool::ToolDefinition;
use serde_json::{Map, Value, json};

/// Statements of a server that a model reads, in a form that can be stored and compared. Secrets
/// are removed.
///
/// The `_meta` of a tool is not included: it goes back to the server with each call, and no model
/// reads it. Labels in it count as stated by a third party.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statements {
    /// Instructions for all tools of the server.
    pub instructions: Option<String>,
    /// Definitions of the admitted tools, by their remote names.
    pub tools: BTreeMap<String, Value>,
    /// Definitions of the prompts that are offered as tools, by their remote names.
    pub prompts: BTreeMap<String, Value>,
    /// Titles and descriptions of resources and templates, by address, for those that have any.
    /// Addresses and names are not included, because they come and go with the server's data.
    pub resources: BTreeMap<String, Value>,
}

/// Statements that are not used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredStatements {
    /// True if the instructions are left out.
    pub instructions: bool,
    /// Tools that are left out, by their remote names.
    pub tools: BTreeSet<String>,
    /// Prompts that are left out, by their remote names.
    pub prompts: BTreeSet<String>,
    /// Addresses of the resources and templates that are passed through without title and
    /// description.
    pub resources: BTreeSet<String>,
}

/// Decides which statements of one server are used.
pub trait Review: Send + Sync {
    /// Returns the part of `statements` that is not used. Called whenever the server has listed
    /// what it offers.
    fn left_out(&self, statements: &Statements) -> IgnoredStatements;
}

impl IgnoredStatements {
    /// Returns whether everything is used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.instructions
            && self.tools.is_empty()
            && self.prompts.is_empty()
            && self.resources.is_empty()
    }
}

/// Returns the JSON form of a definition without its local name.
pub(super) fn statement(definition: &ToolDefinition) -> Value {
    let mut members = Map::new();
    members.insert("description".to_owned(), definition.description.as_str().into());
    if let Some(title) = &definition.title {
        members.insert("title".to_owned(), title.as_str().into());
    }
    members.insert("input_schema".to_owned(), definition.input.published().clone());
    if let Some(output) = &definition.output {
        members.insert("output_schema".to_owned(), Value::Object(output.published_object()));
    }
    let hints = definition.annotations;
    let hints = [
        ("read_only", hints.read_only),
        ("destructive", hints.destructive),
        ("idempotent", hints.idempotent),
        ("open_world", hints.open_world),
        ("long_running", hints.long_running),
    ];
    let stated: Map<_, _> = hints
        .into_iter()
        .filter_map(|(name, hint)| Some((name.to_owned(), json!(hint?))))
        .collect();
    if !stated.is_empty() {
        members.insert("annotations".to_owned(), Value::Object(stated));
    }
    Value::Object(members)
}
