//! Property tests: invariants of every declaration in every dialect.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{Dialect, DialectSchema, tests::faults};
use crate::InputSchema;
use crate::arguments::properties::{
    Dice, declaration, declaration_and_arguments, decode, dice, library, sample_object,
};

/// Maximum number of forms of one value that are considered.
const WAYS_MAX: usize = 32;

/// Returns the forms in which a strict mode can write a value: missing keys are null if the schema
/// accepts null, alternatives are any that fit, and undeclared keys do not exist.
fn writable_forms(root: &Value, schema: &Value, value: &Value) -> Vec<Value> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return writable_forms(root, target, value);
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let all = branches.iter().flat_map(|branch| writable_forms(root, branch, value));
        return all.take(WAYS_MAX).collect();
    }
    let is_of = |name: &Value| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    };
    let fits = match &schema["type"] {
        Value::Array(names) => names.iter().any(is_of),
        name => is_of(name),
    };
    let is_member = schema["enum"].as_array().is_none_or(|members| members.contains(value));
    match value {
        _ if !fits || !is_member => vec![],
        Value::Array(items) => {
            let mut lists = vec![vec![]];
            for item in items {
                lists =
                    product(lists, &writable_forms(root, &schema["items"], item), |list, item| {
                        list.push(item)
                    });
            }
            lists.into_iter().map(Value::Array).collect()
        }
        Value::Object(members) => object_ways(root, schema, members),
        plain => vec![plain.clone()],
    }
}

fn object_ways(root: &Value, schema: &Value, members: &Map<String, Value>) -> Vec<Value> {
    let properties = schema["properties"].as_object().unwrap();
    if members.keys().any(|name| !properties.contains_key(name)) {
        return vec![];
    }
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name))
    };
    let mut objects = vec![Map::new()];
    for (name, property) in properties {
        if !members.contains_key(name) && !is_required(name) {
            continue;
        }
        let written = writable_forms(root, property, members.get(name).unwrap_or(&Value::Null));
        objects = product(objects, &written, |object, value| {
            object.insert(name.clone(), value);
        });
    }
    objects.into_iter().map(Value::Object).collect()
}

fn product<T: Clone>(all: Vec<T>, ways: &[Value], mut add: impl FnMut(&mut T, Value)) -> Vec<T> {
    let mut more = Vec::new();
    for one in all {
        for way in ways {
            let mut one = one.clone();
            add(&mut one, way.clone());
            more.push(one);
        }
    }
    more.truncate(WAYS_MAX);
    more
}

/// Returns a declaration without the parts that no strict mode can express: maps, and values of any
/// type.
fn strict_subset(schema: &Value) -> Value {
    match schema {
        Value::Object(members) if members.keys().all(|name| name == "default") => {
            json!({"type": "string"})
        }
        Value::Object(members) => {
            let mut tame: Map<String, Value> = members
                .iter()
                .filter(|(name, value)| *name != "additionalProperties" || **value == false)
                .map(|(name, value)| match name.as_str() {
                    "default" | "enum" | "required" => (name.clone(), value.clone()),
                    _ => (name.clone(), strict_subset(value)),
                })
                .collect();
            if schema["type"] == "object" && members.get("properties").is_none() {
                tame.insert(
                    "properties".to_owned(),
                    json!({"zz": strict_subset(&members["additionalProperties"])}),
                );
            }
            Value::Object(tame)
        }
        Value::Array(items) => items.iter().map(strict_subset).collect(),
        plain => plain.clone(),
    }
}

/// Returns the same declaration with one property declared by another schema that also applies.
fn split(mut declared: Value, into_all_of: bool) -> Value {
    if !into_all_of || declared.get("additionalProperties").is_some() {
        return declared;
    }
    let properties = declared["properties"].as_object_mut().unwrap();
    if let Some((name, property)) = properties.iter().next().map(|(n, p)| (n.clone(), p.clone())) {
        properties.shift_remove(&name);
        declared["$defs"]["base"] = json!({"type": "object", "properties": {name: property}});
        declared["allOf"] = json!([{"$ref": "#/$defs/base"}]);
    }
    declared
}

fn strict_declaration_and_arguments() -> impl Strategy<Value = (Value, Value)> {
    (declaration(), dice(), any::<bool>()).prop_map(|(declared, dice, into_all_of)| {
        let declared = strict_subset(&declared);
        let arguments = sample_object(&declared, &mut Dice(dice));
        (split(declared, into_all_of), arguments)
    })
}

fn takes_no_other_keys(shown: &DialectSchema) -> bool {
    shown.losses.iter().any(|loss| loss.what.contains("other keys"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// A dialect follows its own rules for every declaration.
    #[test]
    fn every_dialect_keeps_its_rules((declared, _) in declaration_and_arguments()) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        for dialect in Dialect::ALL {
            let shown = schema.in_dialect(dialect);
            prop_assert_eq!(faults(&shown, dialect), Vec::<String>::new(), "{} {}", dialect, shown.schema);
        }
    }

    /// The situation that the test below needs occurs: a declaration without maps can be strict.
    #[test]
    fn a_tame_declaration_can_be_strict((declared, _) in strict_declaration_and_arguments()) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let shown = schema.in_dialect(Dialect::OpenAiStrict);
        prop_assert!(shown.strict, "{:?} {}", shown.losses, declared);
    }

    /// ARG-6: what a strict mode sends, with nulls for everything missing, decodes to the same
    /// arguments.
    #[test]
    fn what_a_strict_mode_sends_decodes_to_the_same(
        (declared, value) in prop_oneof![declaration_and_arguments(), strict_declaration_and_arguments()]
    ) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let Some(decoded) = decode(&schema, &value) else { return Ok(()) };
        let object = decoded.clone().into_value();
        // Of open alternatives, the first may accept the value that a later one has produced
        // (`ARG-21`, `ARG-24`). That happens in every dialect, so such values are skipped.
        if decode(&schema, &object).is_none_or(|again| again.value() != decoded.value()) {
            return Ok(());
        }
        for dialect in [Dialect::OpenAiStrict, Dialect::Anthropic] {
            let shown = schema.in_dialect(dialect);
            if !shown.strict || takes_no_other_keys(&shown) {
                continue;
            }
            let ways = writable_forms(&shown.schema, &shown.schema, &object);
            let same = |sent: &Value| decode(&schema, sent).is_some_and(|again| again.value() == decoded.value());
            prop_assert!(ways.iter().any(same), "{} by {} is {:?}", object, shown.schema, ways);
            let has_alternatives = declared.to_string().contains("anyOf");
            prop_assert!(has_alternatives || ways.iter().all(same), "{} by {}", object, shown.schema);
        }
    }

    /// No dialect rejects a value that the declaration accepts.
    #[test]
    fn a_dialect_is_never_narrower(
        (declared, value) in prop_oneof![declaration_and_arguments(), strict_declaration_and_arguments()]
    ) {
        let Ok(schema) = InputSchema::compile("t", &declared.to_string()) else { return Ok(()) };
        let Some(decoded) = decode(&schema, &value) else { return Ok(()) };
        let object = decoded.into_value();
        for dialect in [Dialect::Mcp, Dialect::Portable, Dialect::OpenAi] {
            let shown = schema.in_dialect(dialect).schema;
            prop_assert!(library(&shown).is_valid(&object), "{} in {}: {}", object, dialect, shown);
        }
    }
}
