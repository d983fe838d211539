//! Forms of agents' answers.

use std::fmt;

use cofferdam_agent::ResponseFormat;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::OutputDefinition;

/// Maximum number of characters in the name of a response format.
const NAME_CHARS_MAX: usize = 64;

impl OutputDefinition {
    /// Returns the response format of an agent. `read` returns the content of the file with the
    /// schema, if there is one.
    ///
    /// # Errors
    /// The error of `read`, or a description of the mistake in the schema.
    pub fn response_format(
        &self,
        agent: &str,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<ResponseFormat, String> {
        let schema = match self {
            Self::Schema(schema) => schema.to_string(),
            Self::File(path) => read(path)?,
        };
        let is_char = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name = agent.chars().map(|c| if is_char(&c) { c } else { '_' });
        let name: String = name.take(NAME_CHARS_MAX).collect();
        ResponseFormat::new(&name, &schema).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for OutputDefinition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct SchemaOrFile;
        impl<'de> Visitor<'de> for SchemaOrFile {
            type Value = OutputDefinition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON Schema or `@FILE`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                let path = text.strip_prefix('@').filter(|path| !path.is_empty());
                let path = path.ok_or_else(|| {
                    E::custom(format!("expected a JSON Schema or `@FILE`, found `{text}`"))
                })?;
                Ok(OutputDefinition::File(path.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                Value::deserialize(MapAccessDeserializer::new(map)).map(OutputDefinition::Schema)
            }
        }
        from.deserialize_any(SchemaOrFile)
    }
}

#[cfg(test)]
mod tests {
    use super::super::WorkflowDefinition;
    use super::*;

    fn output(yaml: &str) -> Result<OutputDefinition, String> {
        let text = format!("agents:\n  a b:\n    output: {yaml}\n");
        let parsed = WorkflowDefinition::parse(&text).map_err(|error| error.to_string())?;
        Ok(parsed.agents.get("a b").unwrap().output.as_ref().unwrap().value.clone())
    }

    #[test]
    fn a_schema_is_written_out_or_in_a_file() {
        let none = |_: &str| Err("unused".to_owned());
        let schema =
            output("{type: object, properties: {n: {type: integer, minimum: 1}}}").unwrap();
        let format = schema.response_format("a b", none).unwrap();
        assert_eq!(format.name(), "a_b");
        assert_eq!(format.schema().published()["properties"]["n"]["minimum"], 1);
        let file = output("'@s.json'").unwrap();
        assert_eq!(file, OutputDefinition::File("s.json".to_owned()));
        let read = |path: &str| Ok(format!(r#"{{"type":"object","description":"{path}"}}"#));
        let format = file.response_format("a", read).unwrap();
        assert_eq!(format.schema().published()["description"], "s.json");
    }

    #[test]
    fn what_is_no_form_is_refused() {
        assert!(output("s.json").unwrap_err().contains("expected a JSON Schema or `@FILE`"));
        assert!(output("[a]").unwrap_err().contains("a JSON Schema or `@FILE`"));
        let list = output("{type: array}").unwrap();
        assert!(list.response_format("a", |_| Err(String::new())).is_err());
        let file = output("'@s.json'").unwrap();
        let error = file.response_format("a", |_| Err("no such file".to_owned())).unwrap_err();
        assert_eq!(error, "no such file");
    }
}
