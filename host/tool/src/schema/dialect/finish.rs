//! The form that strict modes require: every schema has a type, every object is closed and names
//! its properties, every array describes its items, and, if the API demands it, every property is
//! required and optional ones accept null.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::Loss;
use super::conjoin::is_unrestricted;
use super::rules::Rules;
use super::writer::{SchemaDraft, Stop, inexpressible};

/// Completes one schema.
pub(super) fn finish(
    draft: &mut SchemaDraft,
    rules: &Rules,
    at: &str,
    losses: &mut Vec<Loss>,
) -> Result<(), Stop> {
    let schema = &mut draft.schema;
    if schema.contains_key("not") {
        return Err(inexpressible(at, "no value fits the schema"));
    }
    if schema.contains_key("$ref") {
        return Ok(());
    }
    if schema.contains_key("anyOf") {
        // The alternatives state their types.
        schema.shift_remove("type");
        let other =
            schema.keys().find(|name| !matches!(name.as_str(), "anyOf" | "title" | "description"));
        return match other {
            Some(other) => Err(inexpressible(at, &format!("alternatives beside `{other}`"))),
            None => Ok(()),
        };
    }
    let types = types(schema);
    if types.is_empty() {
        return Err(inexpressible(at, "a value of any type"));
    }
    if members(schema).any(|member| member.is_object() || member.is_array()) {
        return Err(inexpressible(at, "a list of allowed values that holds objects or arrays"));
    }
    if types.contains(&"object") {
        object(schema, rules, at, losses)?;
    }
    if types.contains(&"array") && schema.get("items").is_none_or(is_unrestricted) {
        return Err(inexpressible(at, "an array of anything"));
    }
    state_types(schema, &types);
    Ok(())
}

fn object(
    schema: &mut Map<String, Value>,
    rules: &Rules,
    at: &str,
    losses: &mut Vec<Loss>,
) -> Result<(), Stop> {
    let additional = schema.get("additionalProperties");
    let declared = schema.get("properties").and_then(Value::as_object);
    let is_map = match additional {
        Some(Value::Bool(false)) => false,
        Some(Value::Bool(true)) => declared.is_none_or(Map::is_empty),
        Some(_) => true,
        None => declared.is_none() && !at.is_empty(),
    };
    if is_map {
        return Err(inexpressible(at, "an object with keys of the model's choice"));
    }
    if additional == Some(&Value::Bool(true)) {
        losses.push(Loss { pointer: at.to_owned(), what: "other keys are not taken".to_owned() });
    }
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let required: HashSet<&str> = required.iter().filter_map(Value::as_str).collect();
    let mut names = Vec::new();
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    for (name, property) in properties.as_object_mut().into_iter().flatten() {
        let is_required = required.contains(name.as_str());
        if rules.requires_all && !is_required {
            *property = with_null(property.take());
        }
        if rules.requires_all || is_required {
            names.push(name.clone());
        }
    }
    if names.is_empty() && !rules.requires_all {
        schema.shift_remove("required");
    } else {
        schema.insert("required".to_owned(), json!(names));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    Ok(())
}

/// Returns the types that a schema states or implies.
fn types(schema: &Map<String, Value>) -> Vec<&'static str> {
    let mut types = Vec::new();
    let mut add = |name: &'static str| {
        if !types.contains(&name) {
            types.push(name);
        }
    };
    match schema.get("type") {
        Some(Value::String(name)) => add(known(name)),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).for_each(|name| add(known(name)))
        }
        _ if schema.contains_key("properties") || schema.contains_key("additionalProperties") => {
            add("object")
        }
        _ if schema.contains_key("items") => add("array"),
        _ => members(schema).for_each(|member| add(type_of(member))),
    }
    types
}

fn known(name: &str) -> &'static str {
    let names = ["string", "integer", "number", "boolean", "array", "object"];
    names.into_iter().find(|known| *known == name).unwrap_or("null")
}

fn members(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    schema.get("const").into_iter().chain(listed)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Writes the types: one, or one and null. Several become alternatives, each with the keywords that
/// concern it.
fn state_types(schema: &mut Map<String, Value>, types: &[&'static str]) {
    let plain: Vec<_> = types.iter().copied().filter(|name| *name != "null").collect();
    match plain.as_slice() {
        [] => {
            schema.insert("type".to_owned(), json!("null"));
        }
        [only] if types.len() == 1 => {
            schema.insert("type".to_owned(), json!(only));
        }
        [only] => {
            schema.insert("type".to_owned(), json!([only, "null"]));
        }
        _ => split(schema, types),
    }
}

fn split(schema: &mut Map<String, Value>, types: &[&'static str]) {
    let mut branches = Vec::new();
    let listed = schema.get("enum").and_then(Value::as_array);
    let mut left = listed.cloned().unwrap_or_default();
    for name in types {
        let mut branch = Map::new();
        branch.insert("type".to_owned(), json!(name));
        let (own, others): (Vec<Value>, Vec<Value>) =
            left.into_iter().partition(|member| is_member(member, name));
        left = others;
        match (listed.is_some(), own.is_empty()) {
            (true, true) => continue,
            (true, false) => drop(branch.insert("enum".to_owned(), Value::Array(own))),
            (false, _) => {}
        }
        for (keyword, value) in schema.iter().filter(|(keyword, _)| is_about(keyword, name)) {
            branch.insert(keyword.clone(), value.clone());
        }
        branches.push(Value::Object(branch));
    }
    schema.retain(|keyword, _| matches!(keyword.as_str(), "title" | "description"));
    schema.insert("anyOf".to_owned(), Value::Array(branches));
}

fn is_member(value: &Value, name: &str) -> bool {
    let own = type_of(value);
    own == name || (own == "integer" && name == "number")
}

fn is_about(keyword: &str, name: &str) -> bool {
    match keyword {
        "properties" | "required" | "additionalProperties" => name == "object",
        "items" | "minItems" | "maxItems" => name == "array",
        "pattern" | "format" => name == "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            matches!(name, "number" | "integer")
        }
        _ => false,
    }
}

/// Makes the schema of an optional property accept null, for a reader that must provide a value for
/// every property.
fn with_null(property: Value) -> Value {
    let Value::Object(mut schema) = property else { return property };
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        if !branches.iter().any(accepts_null) {
            branches.push(json!({"type": "null"}));
        }
        return Value::Object(schema);
    }
    if let Some(reference) = schema.shift_remove("$ref") {
        schema.insert("anyOf".to_owned(), json!([{"$ref": reference}, {"type": "null"}]));
        return Value::Object(schema);
    }
    if let Some(only) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([only]));
    }
    if let Some(Value::Array(members)) = schema.get_mut("enum")
        && !members.iter().any(Value::is_null)
    {
        members.push(Value::Null);
    }
    let with_null = match schema.get("type") {
        Some(Value::String(name)) if name != "null" => Some(json!([name, "null"])),
        Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => {
            let mut names = names.clone();
            names.push(json!("null"));
            Some(Value::Array(names))
        }
        _ => None,
    };
    if let Some(types) = with_null {
        schema.insert("type".to_owned(), types);
    }
    Value::Object(schema)
}

fn accepts_null(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "null",
        Some(Value::Array(names)) => names.iter().any(|name| name == "null"),
        _ => false,
    }
}
