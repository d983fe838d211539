//! Servers in a JSON file: an object by name under one key, as most hosts have them. Every other byte stays.

use std::fmt;
use std::ops::Range;

use anyhow::Context;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::host::Entry;
use crate::exit::UsageError;

/// The file with the server in it, under `key`. `keys` are what the host has to be told; what else its entry says stays.
pub(super) fn with_entry(
    text: &str,
    key: &str,
    entry: &Entry,
    keys: Map<String, Value>,
) -> anyhow::Result<String> {
    let name = &entry.name;
    if text.trim().is_empty() {
        let servers = Map::from_iter([(name.clone(), Value::Object(keys))]);
        let file = Map::from_iter([(key.to_owned(), Value::Object(servers))]);
        return Ok(pretty(&Value::Object(file), "  ")? + "\n");
    }
    let document = Object::parse(text)?;
    let unit = indentation(text);
    let Some(servers) = document.get(key)? else {
        let servers = Map::from_iter([(name.clone(), Value::Object(keys))]);
        return document.with_member(text, 1, key, &Value::Object(servers), unit);
    };
    let servers = Object::parse_at(servers, text)?;
    let Some(known) = servers.get(name)? else {
        return servers.with_member(text, 2, name, &Value::Object(keys), unit);
    };
    let there: Value = serde_json::from_str(known.get()).map_err(not_json)?;
    entry.check_is_ours(there.get("command").and_then(Value::as_str))?;
    let mut merged = there.clone();
    if let Some(merged) = merged.as_object_mut() {
        merged.extend(keys);
    }
    if merged == there {
        return Ok(text.to_owned());
    }
    let place = place(text, known.get())?;
    spliced(text, place, &at_depth(&pretty(&merged, unit)?, 2, unit))
}

/// An object in a text, with the place of each value.
struct Object<'t> {
    place: Range<usize>,
    members: Members<'t>,
}

struct Members<'t>(Vec<(String, &'t RawValue)>);

impl<'t> Object<'t> {
    /// The object that `text` is.
    fn parse(text: &'t str) -> anyhow::Result<Self> {
        let value: &RawValue = serde_json::from_str(text).map_err(not_json)?;
        Self::parse_at(value, text)
    }

    /// The object that `value` is, a part of `text`.
    fn parse_at(value: &'t RawValue, text: &'t str) -> anyhow::Result<Self> {
        let members = serde_json::from_str(value.get()).map_err(not_json)?;
        Ok(Self { place: place(text, value.get())?, members })
    }

    fn get(&self, name: &str) -> anyhow::Result<Option<&'t RawValue>> {
        let mut found = self.members.0.iter().filter(|(key, _)| key == name).map(|(_, value)| *value);
        let first = found.next();
        // Programs do not agree on which of two counts.
        if found.next().is_some() {
            return Err(UsageError(format!("it has `{name}` twice; remove one of them")).into());
        }
        Ok(first)
    }

    /// `text` with a member behind the last one of this object, which is `depth` objects deep.
    fn with_member(
        &self,
        text: &str,
        depth: usize,
        name: &str,
        value: &Value,
        unit: &str,
    ) -> anyhow::Result<String> {
        let line = format!("\n{}", unit.repeat(depth));
        let name = serde_json::to_string(name)?;
        let member = format!("{line}{name}: {}", at_depth(&pretty(value, unit)?, depth, unit));
        match self.members.0.last() {
            Some((_, last)) => {
                let end = place(text, last.get())?.end;
                spliced(text, end..end, &format!(",{member}"))
            }
            None => {
                let outer = unit.repeat(depth.saturating_sub(1));
                spliced(text, self.place.clone(), &format!("{{{member}\n{outer}}}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Where `part` is in `text`, which it was borrowed from.
fn place(text: &str, part: &str) -> anyhow::Result<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(text.as_ptr().addr());
    let start = start.filter(|start| start.saturating_add(part.len()) <= text.len());
    let start = start.context("a part of a text lies in it")?;
    Ok(start..start + part.len())
}

fn spliced(text: &str, place: Range<usize>, with: &str) -> anyhow::Result<String> {
    let parts = text.get(..place.start).zip(text.get(place.end..));
    let (before, after) = parts.context("a part of a text lies in it")?;
    Ok(format!("{before}{with}{after}"))
}

/// What the lines of a text are indented by, one level.
fn indentation(text: &str) -> &str {
    let indented = text.lines().filter(|line| line.trim_start().starts_with('"'));
    let spaces = indented.filter_map(|line| line.split('"').next()).find(|spaces| !spaces.is_empty());
    spaces.unwrap_or("  ")
}

fn at_depth(text: &str, depth: usize, unit: &str) -> String {
    text.replace('\n', &format!("\n{}", unit.repeat(depth)))
}

fn pretty(value: &Value, unit: &str) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    value.serialize(&mut Serializer::with_formatter(&mut bytes, formatter))?;
    Ok(String::from_utf8(bytes)?)
}

fn not_json(error: serde_json::Error) -> anyhow::Error {
    UsageError(format!(
        "it is not plain JSON ({error}); comments and trailing commas would be lost, so put the entry there yourself: run the \
         same command without --write"
    ))
    .into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(text: &str) -> anyhow::Result<String> {
        let entry =
            Entry { name: "tools".into(), command: "/bin/cofferdam".into(), arguments: vec!["serve".into()] };
        let keys = [("command".to_owned(), json!("/bin/cofferdam")), ("args".to_owned(), json!(["serve"]))];
        with_entry(text, "mcpServers", &entry, Map::from_iter(keys))
    }

    const NEW: &str = r#"{
  "mcpServers": {
    "tools": {
      "command": "/bin/cofferdam",
      "args": [
        "serve"
      ]
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
        let added = "\"npx\"},\n\t\t\"tools\": {\n\t\t\t\"command\": \"/bin/cofferdam\",\n\t\t\t\"args\": [\n\t\t\t\t\"serve\"\n\t\t\t]\n\t\t}\n\t}, \"z\"";
        assert_eq!(after, before.replace("\"npx\"}\n\t}, \"z\"", added));
        let before = "{\n    \"theme\": \"dark\"\n}\n";
        let after = with(before).unwrap();
        assert!(
            after.starts_with("{\n    \"theme\": \"dark\",\n    \"mcpServers\": {\n        \"tools\""),
            "{after}"
        );
    }

    #[test]
    fn a_server_that_is_there_keeps_what_a_person_added() {
        let before =
            r#"{"mcpServers":{"tools":{"env":{"A":"1"},"command":"/old/cofferdam","args":[]},"b":{}}}"#;
        let after = with(before).unwrap();
        let value: Value = serde_json::from_str(&after).unwrap();
        let tools = json!({"env": {"A": "1"}, "command": "/bin/cofferdam", "args": ["serve"]});
        assert_eq!(value, json!({"mcpServers": {"tools": tools, "b": {}}}));
        assert_eq!(with(&after).unwrap(), after);
    }

    #[test]
    fn what_would_be_lost_is_refused() {
        for (bad, words) in [
            ("{\n  // mine\n  \"mcpServers\": {}\n}", "not plain JSON"),
            ("{\"mcpServers\": {},}", "not plain JSON"),
            ("[]", "not plain JSON"),
            ("{\"mcpServers\": []}", "not plain JSON"),
            ("{\"mcpServers\": {}, \"mcpServers\": {}}", "twice"),
            ("{\"mcpServers\": {\"tools\": {\"command\": \"npx\"}}}", "another server there (npx)"),
            ("{\"mcpServers\": {\"tools\": {\"url\": \"https://a.example\"}}}", "another server there"),
            ("{\"mcpServers\": {\"tools\": 5}}", "another server there"),
        ] {
            let error = with(bad).unwrap_err();
            assert!(error.is::<UsageError>() && error.to_string().contains(words), "{bad}: {error}");
        }
    }
}
