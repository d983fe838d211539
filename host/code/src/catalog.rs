//! Tools that a program can call, as the interpreter and the model see them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use cofferdam_tool::search::{SHOWN, ToolQuery};
use cofferdam_tool::{ToolDefinition, ToolName, Toolset};
use serde::Serialize;
use serde_json::{Value, json};

use crate::declarations::declaration;
use crate::identifier::identifiers;
use crate::types::Type;
use crate::{CodeError, Language};

/// Maximum bytes of the declarations in the description. Beyond that it lists names.
const INLINE_BYTES_MAX: usize = 8 * 1024;
/// Maximum bytes of the list of names in the description.
const NAMES_BYTES_MAX: usize = 3 * 1024;

/// Tools that a program can call.
pub(crate) struct Catalog {
    language: Language,
    tools: Vec<(String, Arc<ToolDefinition>)>,
    /// The tools in the form that interpreters read.
    json: Arc<str>,
}

/// Tool as the interpreter sees it, for the checks before a program runs.
#[derive(Serialize)]
struct CheckedTool<'t> {
    name: &'t str,
    id: &'t str,
    properties: Vec<&'t str>,
    required: Vec<&'t str>,
    closed: bool,
}

impl Catalog {
    /// Creates the catalog of a toolset.
    ///
    /// # Errors
    /// [`CodeError::SameIdentifier`].
    pub(crate) fn new(language: Language, toolset: &Toolset) -> Result<Self, CodeError> {
        let ids = identifiers(language, toolset.definitions().map(|tool| &tool.name))?;
        let tools: Vec<_> = ids.into_iter().zip(toolset.definitions().cloned()).collect();
        let checked: Vec<_> = tools.iter().map(|(id, tool)| checked(id, tool)).collect();
        let json = json!({"tools": checked}).to_string().into();
        Ok(Self { language, tools, json })
    }

    /// Returns the form that interpreters read.
    pub(crate) fn json(&self) -> &Arc<str> {
        &self.json
    }

    /// Returns the part of the description that lists the tools: their declarations, or only their
    /// names if there are too many.
    pub(crate) fn description(&self, observed: &BTreeMap<String, Type>) -> String {
        if self.tools.is_empty() {
            return "There are no tools.".to_owned();
        }
        let mut text = String::from("Tools (methods of `tools`):\n\n");
        for tool in &self.tools {
            text.push_str(&self.declaration(tool, observed));
            if text.len() > INLINE_BYTES_MAX {
                return self.names();
            }
        }
        text
    }

    /// Returns the names of the tools and how to look at their declarations.
    fn names(&self) -> String {
        let (search, describe) = match self.language {
            Language::JavaScript => ("tools.$search", "tools.$describe"),
            Language::Python => ("search_tools", "describe_tool"),
        };
        let mut text = format!(
            "There are {} tools. In a program, `await {search}(\"words\")` returns the \
             declarations of the best matches, and `await {describe}(\"name\")` that of one tool. \
             Look at a declaration before you call the tool. Names:",
            self.tools.len()
        );
        let mut separator = ' ';
        for (index, (id, _)) in self.tools.iter().enumerate() {
            if text.len() + id.len() > NAMES_BYTES_MAX {
                let _ = write!(text, " and {} more", self.tools.len() - index);
                break;
            }
            let _ = write!(text, "{separator}{id}");
            separator = ',';
        }
        text
    }

    /// Returns the declarations of the tools that match a query, the best first.
    pub(crate) fn search(&self, query: &str, observed: &BTreeMap<String, Type>) -> Value {
        let query = ToolQuery::new(query);
        let ranked = query.map(|query| query.ranked(&self.tools, |(_, tool)| tool));
        let found = ranked.into_iter().flatten().take(SHOWN);
        found.map(|tool| Value::String(self.declaration(tool, observed))).collect()
    }

    /// Returns the declaration of the tool with this name or identifier.
    ///
    /// # Errors
    /// A message for the model if there is none.
    pub(crate) fn describe(
        &self,
        name: &str,
        observed: &BTreeMap<String, Type>,
    ) -> Result<Value, String> {
        let is_named =
            |(id, tool): &&(String, Arc<ToolDefinition>)| id == name || tool.name.as_str() == name;
        let tool = self.tools.iter().find(is_named);
        tool.map(|tool| self.declaration(tool, observed).into())
            .ok_or_else(|| format!("there is no tool called '{name}'; search for it by words"))
    }

    /// Returns whether a tool of the catalog declares no type of its results.
    pub(crate) fn lacks_output(&self, name: &ToolName) -> bool {
        self.tools.iter().any(|(_, tool)| tool.name == *name && tool.output.is_none())
    }

    fn declaration(
        &self,
        (id, tool): &(String, Arc<ToolDefinition>),
        observed: &BTreeMap<String, Type>,
    ) -> String {
        declaration(self.language, id, tool, observed.get(tool.name.as_str()))
    }
}

fn checked<'t>(id: &'t str, tool: &'t ToolDefinition) -> CheckedTool<'t> {
    let schema = tool.input.published();
    let names = |value: Option<&'t Value>| -> Vec<&'t str> {
        match value {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::Object(members)) => members.keys().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    };
    CheckedTool {
        name: tool.name.as_str(),
        id,
        properties: names(schema.get("properties")),
        required: names(schema.get("required")),
        closed: schema.get("additionalProperties") == Some(&Value::Bool(false)),
    }
}
