//! Selection of the arguments that reach a server (`MCP-1` to `MCP-6`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::client::Extras;

/// Argument names with a meaning for hosts. They are never forwarded, even if a server declares
/// them (`MCP-4`).
const DENIED: [&str; 9] = [
    "chat_options",
    "tools",
    "tool_choice",
    "session",
    "thread",
    "conversation_id",
    "options",
    "response_format",
    META,
];
/// Name that is never forwarded, not even as an extra argument.
const META: &str = "_meta";

/// Arguments that the tools of one server declare. It is rebuilt whenever the server lists its
/// tools (`MCP-6`).
#[derive(Debug, Clone, Default)]
pub struct ToolTable {
    declared: BTreeMap<String, BTreeSet<String>>,
}

/// Result of [`ToolTable::forward`]: arguments to send, and names of dropped arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForwardedArguments {
    /// Arguments of the request, exactly as the model wrote them: nothing is converted or filled in
    /// (`MCP-3`).
    pub arguments: Map<String, Value>,
    /// Names of the model's arguments that are not sent, for the record.
    pub dropped: Vec<String>,
}

impl ToolTable {
    /// Records the arguments that a tool declares, and replaces earlier ones.
    pub fn set(&mut self, tool: &str, input_schema: &Value) {
        let properties = input_schema.get("properties").and_then(Value::as_object);
        let declared =
            properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default();
        self.declared.insert(tool.to_owned(), declared);
    }

    /// Selects the arguments of the model, and the values of the host, that go to `tool`. The two
    /// are separate: the declarations of a server never select a value of the host (`MCP-2`).
    #[must_use]
    pub fn forward(
        &self,
        tool: &str,
        extras: &Extras,
        model_arguments: Map<String, Value>,
        host_values: &Map<String, Value>,
    ) -> ForwardedArguments {
        let is_declared =
            |name: &str| self.declared.get(tool).is_some_and(|names| names.contains(name));
        let is_extra = |name: &str| name != META && extras.has(tool, name);
        let mut forwarded = ForwardedArguments::default();
        for (name, value) in model_arguments {
            if is_extra(&name) || (is_declared(&name) && !DENIED.contains(&name.as_str())) {
                forwarded.arguments.insert(name, value);
            } else {
                forwarded.dropped.push(name);
            }
        }
        for (name, value) in host_values {
            if is_extra(name) && !forwarded.arguments.contains_key(name) {
                forwarded.arguments.insert(name.clone(), value.clone());
            }
        }
        forwarded
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn null_is_forwarded_and_what_is_dropped_is_named() {
        let mut table = ToolTable::default();
        table.set(
            "t",
            &json!({"properties": {"a": {}, "session": {}}, "additionalProperties": true}),
        );
        let model = map(json!({"a": null, "session": 1, "other": 2, "_meta": {}}));
        let forwarded = table.forward("t", &Extras::default(), model, &map(json!({"a": 1})));
        assert_eq!(forwarded.arguments, map(json!({"a": null})));
        assert_eq!(forwarded.dropped, ["session", "other", "_meta"]);
    }

    #[test]
    fn a_schema_of_any_form_declares_nothing_or_properties() {
        let mut table = ToolTable::default();
        for schema in [json!(null), json!(true), json!([]), json!({"properties": []}), json!("x")] {
            table.set("t", &schema);
            let forwarded =
                table.forward("t", &Extras::default(), map(json!({"a": 1})), &Map::new());
            assert!(forwarded.arguments.is_empty(), "{schema}");
        }
    }
}
