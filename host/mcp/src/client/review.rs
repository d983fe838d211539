//! Consent to what a server says about its tools.
//!
//! A server can change its words after a user has looked at them. So everything that a model would
//! read is shown to a [`Review`] first, at each load of the lists, and what that does not accept is
//! left out.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_tool::ToolDefinition;
use serde_json::{Map, Value, json};

/// Statements of a server that a model reads, in a form that can be kept and compared. Secrets are
/// taken out.
///
/// The `_meta` of a tool is not among them: it goes back to the server with each call, and no model
/// reads it. Labels that it states count as those of a third party.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statements {
    /// Instructions for all its tools together.
    pub instructions: Option<String>,
    /// Definitions of the tools that are admitted, by the server's own names.
    pub tools: BTreeMap<String, Value>,
    /// Definitions of the prompts that are offered as tools, by the server's own names.
    pub prompts: BTreeMap<String, Value>,
    /// Titles and descriptions of its resources and templates, by their addresses, of those that
    /// have any. Addresses and names are not among the statements: they come and go with the data
    /// of a server.
    pub resources: BTreeMap<String, Value>,
}

/// Statements that are not used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// True if the instructions are left out.
    pub instructions: bool,
    /// Tools that are left out, by the server's own names.
    pub tools: BTreeSet<String>,
    /// Prompts that are left out, by the server's own names.
    pub prompts: BTreeSet<String>,
    /// Addresses of the resources and templates that are passed on without title and description.
    pub resources: BTreeSet<String>,
}

/// Decides which statements of one server are used.
pub trait Review: Send + Sync {
    /// Finds what is not used of `statements`. Called whenever the server has listed what it
    /// offers.
    fn left_out(&self, statements: &Statements) -> LeftOut;
}

impl LeftOut {
    /// Returns whether everything is used.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.instructions
            && self.tools.is_empty()
            && self.prompts.is_empty()
            && self.resources.is_empty()
    }
}

/// A definition without the name that it has here.
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
