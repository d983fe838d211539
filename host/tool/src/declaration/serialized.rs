//! Serialized form of accepted tools, which a host caches from one start to the next.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Declaration;
use crate::schema::SerializedSchema;
use crate::{Annotations, InputSchema, OutputSchema, ToolDefinition, ToolName};

/// Version of the rules by which declarations are accepted and published. Raised with every change
/// of them: a tool cached under another version has to be declared again.
pub const DECLARATION_RULES: u32 = 2;

/// Serialized form of an accepted tool. It turns into a definition without checking or compiling
/// anything, so a cache of it must be protected from changes by others and must be discarded when
/// [`DECLARATION_RULES`] changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerializedTool {
    name: String,
    title: Option<String>,
    description: String,
    input: SerializedSchema,
    output: Option<SerializedSchema>,
    annotations: Annotations,
    group: Option<String>,
}

impl SerializedTool {
    /// Returns the serialized form of `definition`, which was compiled from `declaration`.
    #[must_use]
    pub fn new(declaration: &Declaration, definition: &ToolDefinition) -> Self {
        let output = declaration.output_schema.as_deref().zip(definition.output.as_deref());
        Self {
            name: definition.name.to_string(),
            title: definition.title.clone(),
            description: definition.description.clone(),
            input: SerializedSchema::new(&declaration.input_schema, definition.input.published()),
            output: output
                .map(|(declared, schema)| SerializedSchema::new(declared, schema.published())),
            annotations: definition.annotations,
            group: definition.group.clone(),
        }
    }

    /// Returns the definition, or `None` if the name is invalid, which an accepted tool's never is.
    #[must_use]
    pub fn into_definition(self) -> Option<ToolDefinition> {
        Some(ToolDefinition {
            name: ToolName::new(self.name).ok()?,
            title: self.title,
            description: self.description,
            input: Arc::new(InputSchema::from_serialized(self.input)),
            output: self.output.map(|output| Arc::new(OutputSchema::from_serialized(output))),
            annotations: self.annotations,
            group: self.group,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::DecodeOptions;
    use crate::declaration::check_declarations;

    fn restored(declaration: &Declaration) -> (ToolDefinition, ToolDefinition) {
        let compiled = declaration.compile().unwrap();
        let serialized = SerializedTool::new(declaration, &compiled);
        let text = serde_json::to_string(&serialized).unwrap();
        assert_eq!(serialized, serde_json::from_str(&text).unwrap());
        (compiled, serialized.into_definition().unwrap())
    }

    fn shown(definition: &ToolDefinition) -> String {
        let output = definition.output.as_ref().map(|output| output.published().to_string());
        let input = definition.input.published();
        let (name, description) = (&definition.name, &definition.description);
        format!(
            "{name} {:?} {description} {input} {output:?} {:?}",
            definition.title, definition.annotations
        )
    }

    #[test]
    fn what_was_restored_is_published_and_decodes_as_before() {
        for schema in [
            r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"default":0.1}},"required":["a","b"]}"#,
            r#"{ "properties" : {"x": {"type": "string", "pattern": "^a+$"}}, "required": ["x"] }"#,
            r#"{"type":"object","properties":{"n":{"maximum":1e21,"minimum":-0.30000000000000004}}}"#,
            "{}",
        ] {
            let mut declaration = Declaration::new("t", "Does.", schema);
            declaration.output_schema = Some(r#"{"type":"integer","maximum":3}"#.to_owned());
            let (before, after) = restored(&declaration);
            assert_eq!(shown(&before), shown(&after));
            assert_eq!(before.input.notes(), after.input.notes());
            for arguments in
                [json!({}), json!({"a": "7", "x": "aa", "n": 1}), json!({"a": [], "x": "b"})]
            {
                let text = arguments.to_string();
                let decode = |d: &ToolDefinition| {
                    let decoded =
                        d.input.decode("t", Some(text.as_bytes()), &DecodeOptions::default());
                    format!("{decoded:?}")
                };
                assert_eq!(decode(&before), decode(&after), "{schema} {text}");
            }
            let (before, after) = (before.output.unwrap(), after.output.unwrap());
            for value in [json!(2), json!(4), json!("2")] {
                assert_eq!(before.validate(&value), after.validate(&value));
            }
        }
    }

    #[test]
    fn what_was_never_accepted_accepts_nothing() {
        let refused = Declaration::new("t", "Does.", r#"{"type":"array"}"#);
        assert!(check_declarations(std::slice::from_ref(&refused)).is_err());
        let forged = SerializedTool {
            name: "t".to_owned(),
            title: None,
            description: String::new(),
            input: SerializedSchema::new(&refused.input_schema, &json!([])),
            output: Some(SerializedSchema::new("no JSON", &json!(1))),
            annotations: Annotations::default(),
            group: None,
        };
        let definition = forged.clone().into_definition().unwrap();
        for text in ["{}", "[]", "null", ""] {
            assert!(
                definition
                    .input
                    .decode("t", Some(text.as_bytes()), &DecodeOptions::default())
                    .is_err()
            );
        }
        assert!(definition.output.unwrap().validate(&json!(1)).is_err());
        assert!(
            SerializedTool { name: "no name".to_owned(), ..forged }.into_definition().is_none()
        );
    }
}
