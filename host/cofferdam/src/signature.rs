//! Signatures of tools for users: `outline(file: string, depth?: integer = 3)`.

use cofferdam_tool::ToolDefinition;
use serde_json::{Map, Value};

use crate::text::beginning;

/// Maximum characters of a default, an enumeration or a list of alternatives.
const CHARS_MAX: usize = 60;

/// Maximum number of references that are followed to the type of one parameter.
const REFERENCES_MAX: u32 = 8;

/// One parameter of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// Type, such as `string`, `integer[]` or `"a" | "b"`.
    pub type_name: String,
    /// True if a call must pass it.
    pub is_required: bool,
    /// Default as JSON, if the schema declares one.
    pub default: Option<String>,
    /// Description of the parameter.
    pub description: Option<String>,
}

impl std::fmt::Display for Parameter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.is_required { "" } else { "?" };
        write!(f, "{}{mark}: {}", self.name, self.type_name)?;
        match &self.default {
            Some(default) => write!(f, " = {default}"),
            None => Ok(()),
        }
    }
}

/// Returns the signature of a tool. Required parameters come first.
#[must_use]
pub fn signature(tool: &ToolDefinition) -> String {
    let parameters: Vec<_> = parameters(tool).iter().map(ToString::to_string).collect();
    format!("{}({})", tool.name, parameters.join(", "))
}

/// Returns the parameters of a tool, the required ones first.
#[must_use]
pub fn parameters(tool: &ToolDefinition) -> Vec<Parameter> {
    parameters_of(tool.input.published())
}

fn parameters_of(schema: &Value) -> Vec<Parameter> {
    let nothing = Map::new();
    let required: Vec<_> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&nothing);
    let mut parameters: Vec<_> = properties
        .iter()
        .map(|(name, declared)| Parameter {
            name: name.clone(),
            type_name: type_name(declared, schema, REFERENCES_MAX),
            is_required: required.iter().any(|one| one.as_str() == Some(name)),
            default: declared.get("default").map(|default| short(&default.to_string())),
            description: declared
                .get("description")
                .and_then(Value::as_str)
                .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
        })
        .collect();
    parameters.sort_by_key(|parameter| !parameter.is_required);
    parameters
}

/// Returns the type of the values that `schema` accepts. References point into `root`.
fn type_name(schema: &Value, root: &Value, references_left: u32) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        return match (target, references_left.checked_sub(1)) {
            (Some(target), Some(left)) => type_name(target, root, left),
            _ => "any".to_owned(),
        };
    }
    if let Some(value) = schema.get("const") {
        return short(&value.to_string());
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return alternatives(values.iter().map(Value::to_string));
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema.get(keyword).and_then(Value::as_array) {
            let Some(left) = references_left.checked_sub(1) else { return "any".to_owned() };
            return alternatives(schemas.iter().map(|one| type_name(one, root, left)));
        }
    }
    match schema.get("type") {
        Some(Value::String(name)) => named(name, schema, root, references_left),
        Some(Value::Array(names)) => alternatives(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| named(name, schema, root, references_left)),
        ),
        _ if schema.get("properties").is_some() => "object".to_owned(),
        _ => "any".to_owned(),
    }
}

fn named(name: &str, schema: &Value, root: &Value, references_left: u32) -> String {
    match (name, schema.get("items"), references_left.checked_sub(1)) {
        ("array", Some(items), Some(left)) => {
            let items = type_name(items, root, left);
            if items.contains(' ') { format!("({items})[]") } else { format!("{items}[]") }
        }
        ("array", ..) => "any[]".to_owned(),
        _ => name.to_owned(),
    }
}

/// Joins different alternatives, as many as fit.
fn alternatives(names: impl Iterator<Item = String>) -> String {
    let mut joined = String::new();
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            continue;
        }
        if !joined.is_empty() {
            joined.push_str(" | ");
        }
        if joined.chars().count() + name.chars().count() > CHARS_MAX {
            joined.push('…');
            break;
        }
        joined.push_str(&name);
        seen.push(name);
    }
    if joined.is_empty() { "any".to_owned() } else { joined }
}

fn short(text: &str) -> String {
    beginning(text, CHARS_MAX).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_short_and_required_parameters_come_first() {
        let schema = json!({
            "properties": {
                "depth": {"type": "integer", "default": 3},
                "file": {"type": "string", "description": "A\n  path."},
                "tags": {"type": "array", "items": {"type": ["string", "null"]}},
                "kind": {"enum": ["a", "b", "a"]},
                "node": {"$ref": "#/$defs/node"},
                "self": {"$ref": "#/$defs/self"},
                "either": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
                "free": true,
                "long": {"enum": ["x".repeat(70)]},
            },
            "required": ["file"],
            "$defs": {"node": {"properties": {}}, "self": {"$ref": "#/$defs/self"}},
        });
        let parameters = parameters_of(&schema);
        let shown: Vec<_> = parameters.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "file: string",
                "depth?: integer = 3",
                "tags?: (string | null)[]",
                "kind?: \"a\" | \"b\"",
                "node?: object",
                "self?: any",
                "either?: number[] | null",
                "free?: any",
                "long?: …",
            ]
        );
        assert_eq!(parameters[0].description.as_deref(), Some("A path."));
        assert_eq!(parameters_of(&json!({})), []);
    }
}
