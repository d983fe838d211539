//! Property tests: invariants of every declaration and every input, checked on generated ones.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

use crate::{Arguments, DecodeOptions, InputSchema, OutputSchema};

const NAMES: [&str; 4] = ["a", "b", "n1", "é x"];

/// Generates any value over a few names and near the bounds of the kinds.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..6).prop_map(Value::from),
        select(vec![
            json!(0.5),
            json!(2.0),
            json!(-1.5),
            json!(18_446_744_073_709_551_615_u64),
            json!(1e20)
        ]),
        select(vec![
            "",
            "a",
            "A",
            "bb",
            "ccc",
            "1",
            "2.5",
            " true ",
            "null",
            "2026-05-05",
            "PT1H",
            "1:2:3",
            "[1]"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let members = vec((select(NAMES.to_vec()), inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::Array),
            members.prop_map(|members| members
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

/// Generates a schema of a value without parts.
fn plain_schema() -> impl Strategy<Value = Value> {
    let nullable = |name: &'static str| select(vec![json!(name), json!([name, "null"])]);
    prop_oneof![
        (nullable("integer"), -2_i64..3)
            .prop_map(|(name, least)| json!({"type": name, "minimum": least})),
        (nullable("number"), 0_i64..4)
            .prop_map(|(name, most)| json!({"type": name, "maximum": most})),
        (nullable("string"), 0_u64..3)
            .prop_map(|(name, length)| json!({"type": name, "maxLength": length})),
        nullable("boolean").prop_map(|name| json!({"type": name})),
        select(vec!["uuid", "date-time", "date", "time", "duration", "email"])
            .prop_map(|format| json!({"type": "string", "format": format})),
        Just(json!({"enum": ["a", "bb", "ccc"]})),
        Just(json!({"type": ["integer", "string", "boolean"]})),
        Just(json!({"$ref": "#/$defs/node"})),
        Just(json!({})),
    ]
}

/// Generates an object schema: some names, some of them required, and a rule for the others.
fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let additional =
        select(vec![None, Some(json!(true)), Some(json!(false)), Some(json!({"type": "integer"}))]);
    let required = subsequence(NAMES.to_vec(), 0..=NAMES.len());
    (vec(inner, 1..4), required, additional).prop_map(|(schemas, required, additional)| {
        let properties: Map<String, Value> =
            NAMES.iter().zip(schemas).map(|(name, schema)| ((*name).to_owned(), schema)).collect();
        let required: Vec<&str> =
            required.into_iter().filter(|name| properties.contains_key(*name)).collect();
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if let Some(additional) = additional {
            schema["additionalProperties"] = additional;
        }
        schema
    })
}

fn with_default(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (inner, prop::option::weighted(0.2, dice())).prop_map(|(mut schema, dice)| {
        if let Some(dice) = dice {
            schema["default"] = sample(&schema, &mut Dice(dice));
        }
        schema
    })
}

/// Generates declarations of arguments. The tests skip those that are rejected, such as ones with a
/// default that does not fit.
pub(crate) fn declaration() -> impl Strategy<Value = Value> {
    let schema = with_default(plain_schema()).prop_recursive(3, 24, 4, |inner| {
        let inner = with_default(inner).boxed();
        prop_oneof![
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            inner
                .clone()
                .prop_map(|values| json!({"type": "object", "additionalProperties": values})),
            vec(inner.clone(), 1..4).prop_map(|branches| json!({"anyOf": branches})),
            object_of(inner),
        ]
    });
    object_of(schema).prop_map(|mut declaration| {
        declaration["$defs"] = json!({"node": {"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}
        }, "required": ["a", "b"]}});
        declaration
    })
}

/// Generates schemas with every validation keyword, for a comparison with a library.
fn any_schema() -> impl Strategy<Value = Value> {
    let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        subsequence(kinds.to_vec(), 1..4).prop_map(|types| json!({"type": types})),
        vec(value(), 1..4).prop_map(|members| json!({"enum": members})),
        value().prop_map(|value| json!({"const": value})),
        (-2_i64..3, 1_i64..4)
            .prop_map(|(least, more)| json!({"minimum": least, "exclusiveMaximum": least + more})),
        (1_i64..4).prop_map(|divisor| json!({"multipleOf": divisor})),
        (0_u64..3).prop_map(
            |count| json!({"minLength": count, "minItems": count, "minProperties": count})
        ),
        (0_u64..3).prop_map(
            |count| json!({"maxLength": count, "maxItems": count, "maxProperties": count})
        ),
        select(vec!["^[a-c]+$", r"\d", "b|^$"]).prop_map(|pattern| json!({"pattern": pattern})),
        Just(json!({"uniqueItems": true})),
        subsequence(NAMES.to_vec(), 1..3).prop_map(|names| json!({"required": names})),
        Just(json!({"dependentRequired": {"a": ["b"]}})),
    ];
    leaf.prop_recursive(3, 32, 4, |inner| {
        let list = |keyword: &'static str| vec(inner.clone(), 1..4).prop_map(move |parts| json!({keyword: parts}));
        prop_oneof![
            list("allOf"),
            list("anyOf"),
            list("oneOf"),
            inner.clone().prop_map(|schema| json!({"not": schema})),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(test, then, otherwise)| json!({"if": test, "then": then, "else": otherwise})),
            (inner.clone(), 0_u64..3).prop_map(|(schema, least)| json!({"contains": schema, "minContains": least})),
            (inner.clone(), inner.clone()).prop_map(|(first, rest)| json!({"prefixItems": [first], "items": rest})),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(named, matched, rest)| json!({
                "properties": {"a": named}, "patternProperties": {"^n": matched}, "additionalProperties": rest
            })),
            inner.clone().prop_map(|names| json!({"propertyNames": names})),
            inner.clone().prop_map(|schema| json!({"dependentSchemas": {"a": schema}})),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(named, part, rest)| json!({
                "properties": {"a": named}, "anyOf": [part, {"properties": {"b": true}}], "unevaluatedProperties": rest
            })),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(first, part, rest)| json!({
                "prefixItems": [first], "allOf": [part], "unevaluatedItems": rest
            })),
            (inner.clone(), inner).prop_map(|(target, beside)| json!({
                "$defs": {"t": {"anyOf": [target, {"items": {"$ref": "#/$defs/t"}}]}}, "items": {"$ref": "#/$defs/t"}, "allOf": [beside]
            })),
        ]
    })
}

/// Decisions of [`sample`], one after another.
pub(crate) struct Dice(pub(crate) Vec<u8>);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        usize::from(self.0.pop().unwrap_or(1)) % limit
    }

    fn one_of(&mut self, values: &[Value]) -> Value {
        values[self.below(values.len())].clone()
    }
}

pub(crate) fn dice() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 40)
}

/// Returns a value that a schema probably accepts, with or without tolerance, and occasionally one
/// that it does not.
fn sample(schema: &Value, dice: &mut Dice) -> Value {
    if dice.below(24) == 0 {
        return dice.one_of(&[
            json!(null),
            json!("x"),
            json!(7),
            json!([]),
            json!({"zz": 1}),
            json!(""),
        ]);
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        return sample(&branches[dice.below(branches.len())].clone(), dice);
    }
    if schema.get("$ref").is_some() {
        return dice
            .one_of(&[json!({"a": 1}), json!({"a": "2", "b": {"a": 3, "b": null, "c": 4}})]);
    }
    if schema.get("enum").is_some() {
        return dice.one_of(&[json!("a"), json!("BB"), json!("ccc")]);
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or_default();
    match schema["format"].as_str().unwrap_or(kind) {
        "uuid" => json!("D2719B96-4D6E-4F1C-9BFF-3A8D6F1C2E7A"),
        "date-time" => dice.one_of(&[
            json!("2026-05-05"),
            json!("2026-05-05T18:30"),
            json!("2026-05-05T18:30:00Z"),
        ]),
        "date" => json!("2024-02-29"),
        "time" => dice.one_of(&[json!("18:30"), json!("18:30:01.5+02:00")]),
        "duration" => dice.one_of(&[json!("PT1H"), json!(" 1.2:3:4.50 ")]),
        "integer" => dice.one_of(&[json!(2), json!("3"), json!(" +4")]),
        "number" => dice.one_of(&[json!(0), json!(-0.5), json!("-.5e1"), json!(-0.0)]),
        "boolean" => dice.one_of(&[json!(true), json!(" False")]),
        "array" => (0..dice.below(3)).map(|_| sample(&schema["items"], dice)).collect(),
        "object" => sample_object(schema, dice),
        _ => dice.one_of(&[json!(""), json!(1), json!("a")]),
    }
}

pub(crate) fn sample_object(schema: &Value, dice: &mut Dice) -> Value {
    let mut members = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if dice.below(8) > 0 {
            members.insert(name.clone(), sample(property, dice));
        }
    }
    if dice.below(4) == 0 {
        members.insert("zz".to_owned(), dice.one_of(&[json!(1), json!(null), json!("x")]));
    }
    Value::Object(members)
}

/// Generates a declaration and arguments for it.
pub(crate) fn declaration_and_arguments() -> impl Strategy<Value = (Value, Value)> {
    (declaration(), dice()).prop_map(|(declared, dice)| {
        let arguments = sample_object(&declared, &mut Dice(dice));
        (declared, arguments)
    })
}

pub(crate) fn library(schema: &Value) -> jsonschema::Validator {
    jsonschema::options()
        .with_draft(jsonschema::Draft::Draft202012)
        .should_validate_formats(false)
        .with_pattern_options(jsonschema::PatternOptions::regex())
        .build(schema)
        .unwrap()
}

pub(crate) fn decode(schema: &InputSchema, value: &Value) -> Option<Arguments> {
    schema.decode_value("t", value, &DecodeOptions::default()).ok()
}

fn without(value: &Value, name: &str) -> Value {
    let members = value.as_object().into_iter().flatten().filter(|(member, _)| *member != name);
    members.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns whether a schema has a choice in which two or more branches accept a value with parts.
fn chooses_between_parts(schema: &Value) -> bool {
    let has_parts = |branch: &&Value| {
        let kind = branch["type"].as_str().or(branch["type"][0].as_str());
        !matches!(kind, Some("null" | "boolean" | "integer" | "number" | "string"))
            && branch.get("enum").is_none()
    };
    let branches = schema["anyOf"].as_array();
    let here = branches.is_some_and(|branches| branches.iter().filter(has_parts).count() > 1);
    here || match schema {
        Value::Object(members) => members.values().any(chooses_between_parts),
        Value::Array(elements) => elements.iter().any(chooses_between_parts),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    /// ARG-37: a property is required if and only if decoding fails without it.
    #[test]
    fn required_is_what_decoding_asks_for((declared, value) in declaration_and_arguments()) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let required = schema.published()["required"].as_array().cloned().unwrap_or_default();
        let missing = match schema.decode("t", Some(b"{}"), &DecodeOptions::default()) {
            Ok(_) => vec![],
            Err(error) => error.problems().iter().map(|p| { assert_eq!(p.code.as_str(), "required"); json!(p.path) }).collect(),
        };
        let shown: Vec<Value> = required.iter().map(|name| match name.as_str() {
            Some("é x") => json!("[\"é x\"]"),
            _ => name.clone(),
        }).collect();
        prop_assert_eq!(shown.iter().all(|name| missing.contains(name)), true);
        prop_assert_eq!(missing.len(), shown.len());
        if decode(&schema, &value).is_some() {
            for name in NAMES {
                let fails = decode(&schema, &without(&value, name)).is_none();
                prop_assert_eq!(fails, required.contains(&json!(name)), "{}", name);
            }
        }
    }

    /// Decoded arguments are valid by the published schema, also according to a library, and can be
    /// decoded again. They decode to themselves, except with a choice between two schemas of values
    /// with parts: there `ARG-21` chooses again, and the first branch may accept without tolerance
    /// what another branch has left after dropping a key (`ARG-24`).
    #[test]
    fn decoded_arguments_are_valid_and_decode_to_themselves((declared, value) in declaration_and_arguments()) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let Some(decoded) = decode(&schema, &value) else { return Ok(()) };
        let object = decoded.clone().into_value();
        prop_assert!(library(schema.published()).is_valid(&object), "{} is not valid", object);
        let again = schema.decode("t", Some(decoded.to_json().as_bytes()), &DecodeOptions::default()).unwrap();
        if !chooses_between_parts(&declared) {
            prop_assert_eq!(again.dropped(), &[] as &[String]);
            prop_assert_eq!(again.value(), decoded.value());
        }
    }

    /// ARG-6: omitting a value and giving null for it are equivalent.
    #[test]
    fn absent_and_null_are_the_same((declared, value) in declaration_and_arguments()) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let mut nulls = value.clone();
        for name in declared["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
            if value.get(name).is_none() {
                nulls[name] = Value::Null;
            }
        }
        let options = DecodeOptions::default();
        prop_assert_eq!(schema.decode_value("t", &value, &options), schema.decode_value("t", &nulls, &options));
    }

    /// Strict decoding accepts nothing that tolerant decoding does not.
    #[test]
    fn strictness_only_refuses_more((declared, value) in declaration_and_arguments()) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let strict = DecodeOptions { strict: true, ..DecodeOptions::default() };
        if let Ok(strictly) = schema.decode_value("t", &value, &strict) {
            prop_assert_eq!(Some(strictly), decode(&schema, &value));
        }
    }

    /// Results are valid if and only if a library says so.
    #[test]
    fn validation_agrees_with_a_library(declared in any_schema(), values in vec(value(), 1..6)) {
        let Ok(schema) = OutputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let library = library(&declared);
        for value in values {
            prop_assert_eq!(schema.validate(&value).is_ok(), library.is_valid(&value), "{}", value);
        }
    }

    /// Compiling any schema of the dialect and decoding anything by it ends without a panic.
    #[test]
    fn any_schema_decodes_anything(declared in any_schema(), value in value()) {
        let declared = json!({"properties": {"a": declared, "b": {"allOf": [declared]}}, "additionalProperties": declared});
        if let Ok(schema) = InputSchema::compile("t", &declared.to_string()) {
            let _ = decode(&schema, &value);
        }
    }

    /// The reader agrees with a library on all JSON that it reads.
    #[test]
    fn any_text_is_read_or_refused(text in r#"[ \[\]{}":,\\utrfalsn0-9.eE+-]{0,24}"#) {
        let ours = crate::json::read(text.as_bytes(), 128).ok().and_then(|json| json.to_value());
        // They may differ on duplicate keys and on numbers beyond a float.
        let theirs: Option<Value> = serde_json::from_str(&text).ok();
        prop_assert_eq!(ours, theirs);
    }

    /// Arbitrary bytes as arguments and as a declaration.
    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in vec(any::<u8>(), 0..64), text in ".{0,64}") {
        let schema = InputSchema::compile("t", r#"{"properties":{"a":{"type":"string"}},"additionalProperties":true}"#).unwrap();
        let _ = schema.decode("t", Some(&bytes), &DecodeOptions::default());
        let _ = schema.decode("t", Some(format!("{{\"a\":{text}}}").as_bytes()), &DecodeOptions::default());
        let _ = InputSchema::compile("t", &text);
        let _ = InputSchema::compile(&text, &String::from_utf8_lossy(&bytes));
        let _ = InputSchema::compile("t", &format!("{{\"pattern\":{}}}", Value::from(text)));
    }
}
