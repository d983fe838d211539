//! Schemas of remote tools, and of prompts that become tools (`MCP-14`, `MCP-15`).

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Argument of a prompt, as a server lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PromptArgument {
    /// Name of the argument.
    pub name: String,
    /// Description of the argument.
    pub description: Option<String>,
    /// True if the argument is required.
    pub required: Option<bool>,
}

/// Returns the input schema of a tool as the host uses it: a missing schema becomes `{}`, and an
/// object schema always has `properties` (`MCP-14`).
#[must_use]
pub fn input_schema(listed: Option<&Value>) -> Value {
    let mut schema = match listed {
        None | Some(Value::Null) => return json!({}),
        Some(schema) => schema.clone(),
    };
    if let Value::Object(members) = &mut schema
        && members.get("type") == Some(&json!("object"))
    {
        members.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Returns the schema of a prompt that becomes a tool: every argument is a string (`MCP-15`).
#[must_use]
pub fn prompt_schema(arguments: &[PromptArgument]) -> Value {
    let property = |argument: &PromptArgument| {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "string".into());
        if let Some(description) = &argument.description {
            schema.insert("description".to_owned(), description.as_str().into());
        }
        (argument.name.clone(), Value::Object(schema))
    };
    let properties: Map<_, _> = arguments.iter().map(property).collect();
    let mut schema = json!({"type": "object", "properties": properties});
    let required = arguments.iter().filter(|argument| argument.required == Some(true));
    let required: Vec<_> = required.map(|argument| argument.name.as_str()).collect();
    if !required.is_empty()
        && let Value::Object(members) = &mut schema
    {
        members.insert("required".to_owned(), json!(required));
    }
    schema
}
