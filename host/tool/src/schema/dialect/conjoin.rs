//! Merges two schemas that apply to the same value.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::words;

/// Merges `from` into `into`. A keyword in both becomes the narrower of the two. Returns sentences
/// for constraints that cannot be merged.
///
/// # Errors
/// The name of a property that both declare differently, if `merges_properties` is false.
pub(super) fn conjoin(
    into: &mut Map<String, Value>,
    mut from: Map<String, Value>,
    merges_properties: bool,
) -> Result<Vec<String>, String> {
    let (into_names, from_names) = (names(into), names(&from));
    forbid(&mut from, is_closed(into), &into_names);
    forbid(into, is_closed(&from), &from_names);
    let mut said = Vec::new();
    for (keyword, value) in from {
        match into.get_mut(&keyword) {
            None => {
                into.insert(keyword, value);
            }
            Some(known) if *known == value => {}
            Some(Value::Object(known)) if keyword == "properties" => {
                add_properties(known, value, merges_properties)?;
            }
            Some(known) => {
                if let Err(value) = narrow(known, &keyword, value) {
                    said.extend(words::sentence(&keyword, &value));
                }
            }
        }
    }
    Ok(said)
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
        && !schema.contains_key("patternProperties")
}

fn names(schema: &Map<String, Value>) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.map(|properties| properties.keys().cloned().collect()).unwrap_or_default()
}

/// Removes properties that the other schema does not name, if that schema is closed: they cannot be
/// given.
fn forbid(schema: &mut Map<String, Value>, is_closed: bool, names: &[String]) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties").filter(|_| is_closed) {
        let names: HashSet<&str> = names.iter().map(String::as_str).collect();
        properties.retain(|name, _| names.contains(name.as_str()));
    }
}

fn add_properties(known: &mut Map<String, Value>, more: Value, merges: bool) -> Result<(), String> {
    let Value::Object(more) = more else { return Ok(()) };
    for (name, schema) in more {
        match known.get_mut(&name) {
            None => {
                known.insert(name, schema);
            }
            Some(known) if *known == schema || is_unrestricted(&schema) => {}
            Some(known) if is_unrestricted(known) => *known = schema,
            Some(_) if !merges => return Err(name),
            Some(known) => *known = json!({"allOf": [known.take(), schema]}),
        }
    }
    Ok(())
}

pub(super) fn is_unrestricted(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

/// Narrows the value of a keyword by another one. Returns the other value as an error if no single
/// value expresses both.
fn narrow(known: &mut Value, keyword: &str, value: Value) -> Result<(), Value> {
    match keyword {
        "description" | "title" | "default" | "examples" => Ok(()),
        "required" => {
            let both = known.as_array_mut().zip(value.as_array());
            if let Some((known, more)) = both {
                let new: Vec<_> =
                    more.iter().filter(|name| !known.contains(name)).cloned().collect();
                known.extend(new);
            }
            Ok(())
        }
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            keep_if(known, value, |known, value| value > known)
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            keep_if(known, value, |known, value| value < known)
        }
        "uniqueItems" | "additionalProperties" if known.is_boolean() || value.is_boolean() => {
            let narrowest = json!(keyword == "uniqueItems");
            if *known == narrowest || (value.is_boolean() && value != narrowest) {
                return Ok(());
            }
            *known = value;
            Ok(())
        }
        "enum" => {
            let others = list(&value);
            let members: Vec<_> =
                list(known).into_iter().filter(|member| others.contains(member)).collect();
            if members.is_empty() {
                return Err(value);
            }
            *known = Value::Array(members);
            Ok(())
        }
        "type" => {
            let others = list(&value);
            let types: Vec<_> =
                list(known).into_iter().filter_map(|name| common(name, &others)).collect();
            match <[Value; 1]>::try_from(types) {
                Ok([only]) => *known = only,
                Err(types) if types.is_empty() => return Err(value),
                Err(types) => *known = Value::Array(types),
            }
            Ok(())
        }
        _ => Err(value),
    }
}

/// Returns the type that `name` has in common with `others`. An integer is also a number.
fn common(name: Value, others: &[Value]) -> Option<Value> {
    let has = |name: &str| others.iter().any(|other| other == name);
    match name.as_str() {
        Some("integer") if has("number") => Some(name),
        Some("number") if !has("number") && has("integer") => Some(json!("integer")),
        _ => others.contains(&name).then_some(name),
    }
}

fn keep_if(
    known: &mut Value,
    value: Value,
    is_narrower: fn(f64, f64) -> bool,
) -> Result<(), Value> {
    let both = known.as_f64().zip(value.as_f64());
    if both.is_some_and(|(known, value)| is_narrower(known, value)) {
        *known = value;
    }
    Ok(())
}

fn list(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(values) => values.clone(),
        other => vec![other.clone()],
    }
}
