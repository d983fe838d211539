//! Tools whose schemas the suite compares exactly.

use cofferdam_sdk::{Arguments, Content, Definition, Tool, ToolFailure, json};

/// Tool whose schema has every keyword that a host might lose.
#[derive(Debug)]
pub struct JsonSchema202012;

impl Tool for JsonSchema202012 {
    const NAME: &'static str = "json_schema_2020_12_tool";

    fn definition() -> Definition {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                },
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": false,
        });
        Definition::new(Self::NAME, "Tool with JSON Schema 2020-12 features", schema)
    }

    fn call(_: Arguments) -> Result<Vec<Content>, ToolFailure> {
        Ok(vec![Content::text("The arguments fit the schema.")])
    }
}

/// Tool with a parameter that a client repeats in a header.
#[derive(Debug)]
pub struct CustomHeader;

impl Tool for CustomHeader {
    const NAME: &'static str = "test_custom_header";

    fn definition() -> Definition {
        let schema = json!({
            "type": "object",
            "properties": {"value": {"type": "string", "x-mcp-header": "Value"}},
            "required": ["value"],
        });
        Definition::new(Self::NAME, "Takes a parameter that is repeated in a header", schema)
    }

    fn call(_: Arguments) -> Result<Vec<Content>, ToolFailure> {
        Ok(vec![Content::text("The header was right.")])
    }
}
