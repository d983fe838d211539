//! Fast path for schemas that are portable once their number formats are bounds. Most tools declare
//! such schemas, and a client may list hundreds of them at startup, so they skip
//! [`SchemaWriter`](super::writer::SchemaWriter), which gives the same result.

use serde_json::Value;

use super::numbers;
use super::rules::JSON_SCHEMA_FORMATS;

/// Maximum nesting of schemas. Deeper ones are left to the writer.
const LEVELS_MAX: usize = 32;

/// Keywords that are copied unchanged. At the top level they are fewer, see [`write()`].
const COPIED: &[&str] = &[
    "type",
    "description",
    "required",
    "default",
    "enum",
    "minimum",
    "maximum",
    "title",
    "const",
    "contentEncoding",
    "contentMediaType",
    "deprecated",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "minItems",
    "minLength",
    "minProperties",
    "multipleOf",
    "pattern",
    "readOnly",
    "uniqueItems",
    "writeOnly",
];

/// Returns the portable form of a schema, or `None` if it has keywords that must be rewritten.
pub(super) fn write(published: &Value) -> Option<Value> {
    let root = published.as_object()?;
    let is_object =
        root.get("type").is_some_and(|kind| kind == "object") && root.contains_key("properties");
    let has_alternatives =
        ["anyOf", "oneOf", "enum", "const"].iter().any(|keyword| root.contains_key(*keyword));
    if !is_object || has_alternatives {
        return None;
    }
    let mut schema = published.clone();
    rewrite(&mut schema, LEVELS_MAX).then_some(schema)
}

/// Rewrites one schema in place. Returns false if it is not plain.
fn rewrite(schema: &mut Value, levels: usize) -> bool {
    let (Some(levels), Some(members)) = (levels.checked_sub(1), schema.as_object_mut()) else {
        return false;
    };
    numbers::bound(members);
    members.iter_mut().all(|(keyword, value)| match (keyword.as_str(), value) {
        ("additionalProperties", Value::Bool(_)) => true,
        ("items" | "additionalProperties", value) => rewrite(value, levels),
        ("properties", Value::Object(schemas)) => {
            schemas.values_mut().all(|schema| rewrite(schema, levels))
        }
        ("anyOf" | "oneOf", Value::Array(schemas)) => {
            schemas.iter_mut().all(|schema| rewrite(schema, levels))
        }
        ("format", Value::String(format)) => JSON_SCHEMA_FORMATS.contains(&format.as_str()),
        ("format", _) => false,
        (keyword, _) => COPIED.contains(&keyword),
    })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;
    use serde_json::json;

    use super::super::{Dialect, write_by_rules};
    use super::*;

    /// Generates keywords with values, of which only the last few are not plain.
    fn keywords() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
        let formats = [
            "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float",
            "double", "date",
        ];
        let types = [
            json!("integer"),
            json!("number"),
            json!("string"),
            json!(["integer", "null"]),
            json!(["integer", "number"]),
        ];
        let keyword = prop_oneof![
            30 => select(formats.to_vec()).prop_map(|format| ("format", json!(format))),
            30 => select(types.to_vec()).prop_map(|kind| ("type", kind)),
            20 => (select(vec!["minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"]), -300_i64..300)
                .prop_map(|(keyword, value)| (keyword, json!(value))),
            10 => select(vec!["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"])
                .prop_map(|keyword| (keyword, json!(3))),
            5 => select(vec!["title", "description", "contentEncoding", "contentMediaType"])
                .prop_map(|keyword| (keyword, json!("what it is"))),
            5 => select(vec!["deprecated", "readOnly", "writeOnly", "uniqueItems"]).prop_map(|keyword| (keyword, json!(true))),
            3 => Just(("multipleOf", json!(0.5))),
            3 => Just(("pattern", json!("^a+$"))),
            3 => Just(("enum", json!([1, "a", null, 1.0, [{"b": 1e300}]]))),
            3 => Just(("const", json!({"a": 1}))),
            3 => Just(("default", json!(5))),
            3 => Just(("examples", json!([5, 6]))),
            1 => Just(("$comment", json!("for authors"))),
            1 => Just(("x-own", json!({"a": 1}))),
            1 => Just(("prefixItems", json!([{"type": "integer"}]))),
            1 => Just(("unevaluatedProperties", json!(false))),
            1 => Just(("allOf", json!([{"minimum": 1}, {"maximum": 2}]))),
        ];
        vec(keyword, 0..5)
    }

    fn schema() -> impl Strategy<Value = Value> {
        let object = |keywords: Vec<(&str, Value)>| -> Value {
            keywords.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let part = keywords().prop_map(object).prop_recursive(3, 16, 4, move |inner| {
            let list = (select(vec!["anyOf", "oneOf"]), vec(inner.clone(), 1..4))
                .prop_map(|(keyword, parts)| (keyword, json!(parts)));
            let part = prop_oneof![
                inner.clone().prop_map(|items| ("items", items)),
                prop_oneof![any::<bool>().prop_map(Value::Bool), inner.clone()]
                    .prop_map(|others| ("additionalProperties", others)),
                vec(inner, 0..3).prop_map(|parts| {
                    let named: serde_json::Map<_, _> =
                        ["a", "b/~", "c"].map(str::to_owned).into_iter().zip(parts).collect();
                    ("properties", Value::Object(named))
                }),
                list,
            ];
            (keywords(), part).prop_map(move |(mut keywords, part)| {
                keywords.push(part);
                object(keywords)
            })
        });
        (part.clone(), part, 0..10).prop_map(|(first, second, root)| match root {
            0 => first,
            1 => json!({"type": "object", "properties": {"a": first}, "anyOf": [{"required": ["a"]}]}),
            _ => json!({"type": "object", "properties": {"a": first, "b": second}, "required": ["b"]}),
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_writer_gives_the_same(schema in schema()) {
            let Some(plain) = write(&schema) else { return Ok(()) };
            let written = write_by_rules(&schema, Dialect::Portable);
            prop_assert_eq!(plain.to_string(), written.schema.to_string(), "{}", schema);
            prop_assert_eq!(written.losses, vec![]);
        }
    }

    #[test]
    fn schemas_of_most_tools_are_plain() {
        let schema = json!({
            "type": "object",
            "properties": {
                "file": { "type": "string", "description": "A path." },
                "limit": { "type": ["integer", "null"], "format": "uint32", "default": 10 },
                "rows": { "type": "array", "items": { "anyOf": [{ "type": "number", "format": "double" }, { "type": "null" }] } },
            },
            "required": ["file"],
            "additionalProperties": false,
        });
        let written = write(&schema).unwrap();
        let limit = json!({ "type": ["integer", "null"], "default": 10, "minimum": 0, "maximum": 4_294_967_295_u32 });
        assert_eq!(written["properties"]["limit"], limit);
        for keyword in [
            "$ref",
            "$defs",
            "allOf",
            "prefixItems",
            "$comment",
            "patternProperties",
            "dependentRequired",
        ] {
            let mut other = schema.clone();
            other["properties"]["file"][keyword] = json!({});
            assert_eq!(write(&other), None, "{keyword}");
        }
    }
}
