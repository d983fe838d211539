//! Rules for a single schema, independent of the rest of the declaration (`ARG-38`).

use std::cmp::Ordering;

use super::keywords::{as_number, count};
use super::plan::AllowedValues;
use crate::declaration::Reason;
use crate::json::{self, Json, JsonObject};

const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

/// Pairs of lower and upper bounds of a number.
const NUMBER_BOUNDS: [(&str, &str); 4] = [
    ("minimum", "maximum"),
    ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
];

/// Pairs of lower and upper bounds of a count.
const COUNT_BOUNDS: [(&str, &str); 4] = [
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
];

/// Returns the names in `type`, or `None` if it is missing.
pub(super) fn types(schema: &JsonObject<'_>) -> Result<Option<Vec<&'static str>>, Reason> {
    let Some(declared) = schema.get("type") else { return Ok(None) };
    let names = match declared.as_array() {
        Some(items) => items.iter().filter_map(Json::as_str).collect(),
        None => Vec::from_iter(declared.as_str()),
    };
    let mut types = Vec::with_capacity(names.len());
    for name in names {
        let known = TYPES.into_iter().find(|known| *known == name);
        let known = known.ok_or_else(|| Reason::UnknownType { found: name.to_owned() })?;
        if types.contains(&known) {
            return Err(Reason::ListedTwice { name: name.to_owned() });
        }
        types.push(known);
    }
    Ok(Some(types))
}

/// Returns the members of `enum`, or `None` if it is missing.
///
/// A null member beside a `type` without null is not a contradiction: the type overrules it
/// (`ARG-4`).
///
/// # Errors
/// The reason, with the index of the member if a single one is invalid.
pub(super) fn members(
    schema: &JsonObject<'_>,
) -> Result<Option<AllowedValues>, (Option<usize>, Reason)> {
    let Some(declared) = schema.get("enum") else { return Ok(None) };
    let members = declared.as_array().ok_or((None, Reason::KeywordShape { expected: "a list" }))?;
    if members.is_empty() {
        return Err((None, Reason::EmptyEnum));
    }
    let values: Vec<_> = members.iter().filter_map(Json::to_value).collect();
    if json::has_duplicates(&values) {
        return Err((first_duplicate(&values), Reason::DuplicateMember));
    }
    let types = types(schema).unwrap_or_default();
    let rejected = |value: &&serde_json::Value| {
        types
            .as_ref()
            .is_some_and(|types| !value.is_null() && !types.iter().any(|name| is_of(value, name)))
    };
    match values.iter().enumerate().find(|(_, value)| rejected(value)) {
        Some((index, member)) => {
            Err((Some(index), Reason::MemberType { member: member.to_string() }))
        }
        None => Ok(Some(AllowedValues::new(values))),
    }
}

/// Returns the index of the first value that equals an earlier one, in a list with duplicates.
/// Detecting duplicates does not need a comparison of each pair, so this searches for the shortest
/// prefix that has any.
fn first_duplicate(values: &[serde_json::Value]) -> Option<usize> {
    let (mut unique, mut repeated) = (0_usize, values.len());
    while unique.saturating_add(1) < repeated {
        let middle = unique.midpoint(repeated);
        if json::has_duplicates(values.get(..middle)?) {
            repeated = middle;
        } else {
            unique = middle;
        }
    }
    repeated.checked_sub(1)
}

/// Returns whether a value has a type by the rules of JSON Schema: `1.0` is an integer.
pub(crate) fn is_of(value: &serde_json::Value, name: &str) -> bool {
    use serde_json::Value;
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(number) => name == "number" || (name == "integer" && json::is_whole(number)),
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

/// Checks the lower bound `name` against its upper bounds, and that `multipleOf` is positive.
pub(super) fn bounds(schema: &JsonObject<'_>, name: &str) -> Result<(), Reason> {
    if name == "multipleOf" {
        let zero = serde_json::Number::from(0);
        let divisor = schema.get(name).and_then(as_number);
        let positive =
            divisor.is_some_and(|divisor| json::compare(&divisor, &zero) == Ordering::Greater);
        return if positive { Ok(()) } else { Err(Reason::NotPositive) };
    }
    let mut numbers = NUMBER_BOUNDS.into_iter().filter(|(lower, _)| *lower == name);
    let mut counts = COUNT_BOUNDS.into_iter().filter(|(lower, _)| *lower == name);
    let crossed_number = |(lower, upper): &(&str, &str)| {
        let (lower, upper) =
            (schema.get(lower).and_then(as_number), schema.get(upper).and_then(as_number));
        lower
            .zip(upper)
            .is_some_and(|(lower, upper)| json::compare(&lower, &upper) == Ordering::Greater)
    };
    let crossed_count = |(lower, upper): &(&str, &str)| {
        let (lower, upper) = (schema.get(lower).and_then(count), schema.get(upper).and_then(count));
        lower.zip(upper).is_some_and(|(lower, upper)| lower > upper)
    };
    match numbers.find(crossed_number).or_else(|| counts.find(crossed_count)) {
        Some((_, upper)) => Err(Reason::Bounds { upper }),
        None => Ok(()),
    }
}
