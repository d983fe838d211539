//! Servers in a JSON file: an object by name under one key, as in most clients. Comments and
//! formatting are preserved.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

use super::ServerEntry;
use crate::{Error, Result};

/// JSON with comments and trailing commas, which VS Code and others accept.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// Returns the content of the file with the server added under `key`. Sets `keys` in its entry and
/// keeps all others.
pub(super) fn with_entry(
    text: &str,
    key: &str,
    entry: &ServerEntry,
    keys: Map<String, Value>,
) -> Result<String> {
    let root = parse(text)?;
    let document = root.object_value_or_create().ok_or_else(|| not_object("it"))?;
    let servers = match member(&document, key)? {
        Some(servers) => {
            servers.object_value().ok_or_else(|| not_object(&format!("`{key}` in it")))?
        }
        None => document.object_value_or_set(key),
    };
    match member(&servers, &entry.name)? {
        Some(known) => {
            let known = known.object_value();
            let command = match &known {
                Some(known) => member(known, "command")?.and_then(|command| value(&command)),
                None => None,
            };
            entry.check_same_program(command.as_ref().and_then(Value::as_str))?;
            // An entry that is not an object has no command, so it was rejected above.
            known.map_or(Ok(()), |known| update(&known, keys))?;
        }
        None => drop(servers.append(&entry.name, object(keys))),
    }
    Ok(root.to_string())
}

/// Returns the commands of the servers under `key`.
pub(super) fn commands(text: &str, key: &str) -> Result<Vec<String>> {
    let document = parse(text)?.object_value();
    let servers = document.and_then(|document| document.object_value(key));
    let servers = servers.map(|servers| servers.properties()).unwrap_or_default();
    let command =
        |server: &CstObjectProp| Some(value(server)?.get("command")?.as_str()?.to_owned());
    Ok(servers.iter().filter_map(command).collect())
}

fn parse(text: &str) -> Result<CstRootNode> {
    CstRootNode::parse(text, &OPTIONS)
        .map_err(|error| Error::invalid(format!("it is not JSON with comments: {error}")))
}

/// Sets the keys whose value differs.
fn update(entry: &CstObject, keys: Map<String, Value>) -> Result<()> {
    for (name, wanted) in keys {
        match member(entry, &name)? {
            Some(known) if value(&known).as_ref() == Some(&wanted) => {}
            Some(known) => known.set_value(input(wanted)),
            None => drop(entry.append(&name, input(wanted))),
        }
    }
    Ok(())
}

/// Returns a member of an object.
fn member(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>> {
    let is_it = |member: &CstObjectProp| member.decoded_name().as_deref() == Some(name);
    let mut found = object.properties().into_iter().filter(is_it);
    let first = found.next();
    // Programs disagree on which of two equal keys counts.
    if found.next().is_some() {
        return Err(Error::invalid(format!("`{name}` occurs twice in it; remove one of them")));
    }
    Ok(first)
}

fn value(member: &CstObjectProp) -> Option<Value> {
    member.value()?.to_serde_value()
}

fn object(keys: Map<String, Value>) -> CstInputValue {
    CstInputValue::Object(keys.into_iter().map(|(key, value)| (key, input(value))).collect())
}

fn input(value: Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(string) => CstInputValue::String(string),
        Value::Array(items) => CstInputValue::Array(items.into_iter().map(input).collect()),
        Value::Object(keys) => object(keys),
    }
}

fn not_object(what: &str) -> Error {
    Error::invalid(format!("{what} is not a JSON object"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(text: &str) -> Result<String> {
        let entry = ServerEntry {
            name: "tools".into(),
            command: "/bin/cofferdam".into(),
            arguments: vec!["serve".into()],
        };
        let keys = [
            ("command".to_owned(), json!("/bin/cofferdam")),
            ("args".to_owned(), json!(["serve"])),
        ];
        with_entry(text, "mcpServers", &entry, Map::from_iter(keys))
    }

    const NEW: &str = r#"{
  "mcpServers": {
    "tools": {
      "command": "/bin/cofferdam",
      "args": ["serve"]
    }
  }
}
"#;

    #[test]
    fn an_empty_file_becomes_one_with_the_server() {
        for empty in ["", " \n", "{}\n", "{ }\n", "{\"mcpServers\":{}}\n"] {
            let after = with(empty).unwrap();
            assert_eq!(with(&after).unwrap(), after, "twice is once");
            let after: Value = serde_json::from_str(&after).unwrap();
            assert_eq!(after, serde_json::from_str::<Value>(NEW).unwrap(), "{empty:?}");
        }
        assert_eq!(with("{}\n").unwrap(), NEW);
    }

    #[test]
    fn every_other_byte_stays() {
        let before = "{\n\t\"big\": 1e400, \"n\": 12345678901234567890123,\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\": \"npx\"}\n\t}, \"z\": []\n}";
        let after = with(before).unwrap();
        let added = "\"npx\"},\n\t\t\"tools\": \
            {\n\t\t\t\"command\": \"/bin/cofferdam\",\n\t\t\t\"args\": [\"serve\"]\n\t\t}\n\t}, \"z\"";
        assert_eq!(after, before.replace("\"npx\"}\n\t}, \"z\"", added));
        let before = "{\n    \"theme\": \"dark\"\n}\n";
        let after = with(before).unwrap();
        assert!(
            after.starts_with(
                "{\n    \"theme\": \"dark\",\n    \"mcpServers\": {\n        \"tools\""
            ),
            "{after}"
        );
    }

    #[test]
    fn a_server_that_is_there_keeps_what_a_person_added() {
        let before = r#"{"mcpServers":{"tools":{"env":{"A":"1"},"command":"/old/cofferdam","args":[]},"b":{}}}"#;
        let after = with(before).unwrap();
        let value: Value = serde_json::from_str(&after).unwrap();
        let tools = json!({"env": {"A": "1"}, "command": "/bin/cofferdam", "args": ["serve"]});
        assert_eq!(value, json!({"mcpServers": {"tools": tools, "b": {}}}));
        assert_eq!(with(&after).unwrap(), after);
    }

    #[test]
    fn comments_and_trailing_commas_stay() {
        let before =
            "{\n  // mine\n  \"mcpServers\": {\n    /* first */ \"b\": {}, // last\n  },\n}\n";
        let after = with(before).unwrap();
        for comment in ["  // mine\n", "/* first */ \"b\": {}", "// last\n"] {
            assert!(after.contains(comment), "{after}");
        }
        let (_, end) = after.split_once("// last").unwrap();
        assert!(end.contains("\"tools\": {\n      \"command\": \"/bin/cofferdam\""), "{after}");
        assert_eq!(with(&after).unwrap(), after);
    }

    #[test]
    fn a_file_that_is_no_object_or_has_another_server_is_refused() {
        let deep = "[".repeat(100_000);
        for (bad, words) in [
            ("{mcpServers: {}}", "not JSON with comments"),
            ("{\"mcpServers\": {", "not JSON with comments"),
            (&*deep, "not JSON with comments"),
            ("[]", "it is not a JSON object"),
            ("{\"mcpServers\": []}", "`mcpServers` in it is not a JSON object"),
            ("{\"mcpServers\": {}, \"mcpServers\": {}}", "twice"),
            ("{\"mcpServers\": {\"tools\": {\"command\": \"npx\"}}}", "another server there (npx)"),
            (
                "{\"mcpServers\": {\"tools\": {\"url\": \"https://a.example\"}}}",
                "another server there",
            ),
            ("{\"mcpServers\": {\"tools\": 5}}", "another server there"),
        ] {
            let error = with(bad).unwrap_err();
            assert!(
                matches!(error, Error::Invalid(_)) && error.to_string().contains(words),
                "{bad}: {error}"
            );
        }
    }
}
