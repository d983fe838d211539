//! The keywords of JSON Schema 2020-12 and what their values look like.
//!
//! A keyword that is not in this table means nothing to a validator and is published as it is. A
//! keyword in the table with a value of the wrong shape is refused at load: otherwise a typing
//! mistake in a declaration would silently check nothing.

use crate::declaration::Reason;
use crate::json::{Json, Shape as Kind, integer, is_integer_literal, number};

/// What the value of a keyword is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Schema,
    SchemaList,
    SchemaMap,
    Number,
    Count,
    Flag,
    Text,
    Names,
    NameLists,
    Types,
    Any,
    /// Means something that this host does not do, so that ignoring it would let values through.
    Unsupported,
}

/// Where a subschema is applied: to the same value, to a part of it, or only when a reference leads
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Same,
    Part,
    Nowhere,
}

/// The table. Sorted by name within each shape.
const KEYWORDS: &[(&str, Shape, Place)] = &[
    ("additionalProperties", Shape::Schema, Place::Part),
    ("contains", Shape::Schema, Place::Part),
    ("else", Shape::Schema, Place::Same),
    ("if", Shape::Schema, Place::Same),
    ("items", Shape::Schema, Place::Part),
    ("not", Shape::Schema, Place::Same),
    ("propertyNames", Shape::Schema, Place::Part),
    ("then", Shape::Schema, Place::Same),
    ("unevaluatedItems", Shape::Schema, Place::Part),
    ("unevaluatedProperties", Shape::Schema, Place::Part),
    ("allOf", Shape::SchemaList, Place::Same),
    ("anyOf", Shape::SchemaList, Place::Same),
    ("oneOf", Shape::SchemaList, Place::Same),
    ("prefixItems", Shape::SchemaList, Place::Part),
    ("$defs", Shape::SchemaMap, Place::Nowhere),
    ("definitions", Shape::SchemaMap, Place::Nowhere),
    ("dependentSchemas", Shape::SchemaMap, Place::Same),
    ("patternProperties", Shape::SchemaMap, Place::Part),
    ("properties", Shape::SchemaMap, Place::Part),
    ("exclusiveMaximum", Shape::Number, Place::Nowhere),
    ("exclusiveMinimum", Shape::Number, Place::Nowhere),
    ("maximum", Shape::Number, Place::Nowhere),
    ("minimum", Shape::Number, Place::Nowhere),
    ("multipleOf", Shape::Number, Place::Nowhere),
    ("maxContains", Shape::Count, Place::Nowhere),
    ("maxItems", Shape::Count, Place::Nowhere),
    ("maxLength", Shape::Count, Place::Nowhere),
    ("maxProperties", Shape::Count, Place::Nowhere),
    ("minContains", Shape::Count, Place::Nowhere),
    ("minItems", Shape::Count, Place::Nowhere),
    ("minLength", Shape::Count, Place::Nowhere),
    ("minProperties", Shape::Count, Place::Nowhere),
    ("uniqueItems", Shape::Flag, Place::Nowhere),
    ("$anchor", Shape::Text, Place::Nowhere),
    ("$id", Shape::Text, Place::Nowhere),
    ("$ref", Shape::Text, Place::Nowhere),
    ("format", Shape::Text, Place::Nowhere),
    ("pattern", Shape::Text, Place::Nowhere),
    ("required", Shape::Names, Place::Nowhere),
    ("dependentRequired", Shape::NameLists, Place::Nowhere),
    ("type", Shape::Types, Place::Nowhere),
    ("const", Shape::Any, Place::Nowhere),
    ("default", Shape::Any, Place::Nowhere),
    ("enum", Shape::Any, Place::Nowhere),
    ("$dynamicRef", Shape::Unsupported, Place::Nowhere),
    ("$recursiveRef", Shape::Unsupported, Place::Nowhere),
];

/// The entry of the table, with the name as a constant.
pub(super) fn keyword(name: &str) -> Option<(&'static str, Shape, Place)> {
    KEYWORDS.iter().find(|(keyword, ..)| *keyword == name).copied()
}

/// Checks that a keyword's value has its shape. Subschemas are checked where they are visited.
pub(super) fn check(shape: Shape, value: &Json<'_>) -> Result<(), Reason> {
    let (fits, expected) = match shape {
        Shape::Schema => (is_schema(value), "a schema"),
        Shape::SchemaList => (is_schema_list(value), "a list of schemas that is not empty"),
        Shape::SchemaMap => (is_map_of(value, is_schema), "an object of schemas"),
        Shape::Number => (as_number(value).is_some(), "a finite number"),
        Shape::Count => (count(value).is_some(), "a whole number that is not negative"),
        Shape::Flag => (matches!(value.shape(), Kind::Bool(_)), "`true` or `false`"),
        Shape::Text => (value.as_str().is_some(), "a string"),
        Shape::Names => (is_names(value), "a list of strings"),
        Shape::NameLists => (is_map_of(value, is_names), "an object of lists of strings"),
        Shape::Types => (is_types(value), "a string or a list of strings that is not empty"),
        Shape::Any => return Ok(()),
        Shape::Unsupported => return Err(Reason::Unsupported),
    };
    if fits { Ok(()) } else { Err(Reason::KeywordShape { expected }) }
}

fn is_schema(value: &Json<'_>) -> bool {
    matches!(value.shape(), Kind::Bool(_) | Kind::Object(_))
}

fn is_schema_list(value: &Json<'_>) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_schema))
}

fn is_map_of(value: &Json<'_>, fits: fn(&Json<'_>) -> bool) -> bool {
    value.as_object().is_some_and(|object| object.members().all(|(_, member)| fits(member)))
}

fn is_names(value: &Json<'_>) -> bool {
    value.as_array().is_some_and(|items| items.iter().all(|item| item.as_str().is_some()))
}

fn is_types(value: &Json<'_>) -> bool {
    value.as_str().is_some()
        || (is_names(value) && value.as_array().is_some_and(|items| !items.is_empty()))
}

/// The number that a keyword's value stands for.
pub(super) fn as_number(value: &Json<'_>) -> Option<serde_json::Number> {
    matches!(value.shape(), Kind::Number).then(|| number(value.raw())).flatten()
}

/// A count: JSON Schema lets it be written as `2` or `2.0`. One that does not fit into 64 bits is
/// never reached, so the largest one does for it.
pub(super) fn count(value: &Json<'_>) -> Option<u64> {
    let text = matches!(value.shape(), Kind::Number).then(|| value.raw())?;
    if is_integer_literal(text) {
        let value = integer(text).unwrap_or(if text.starts_with('-') { -1 } else { i128::MAX });
        return (value >= 0).then(|| u64::try_from(value).unwrap_or(u64::MAX));
    }
    let float = number(text)?.as_f64().filter(|float| *float >= 0.0 && float.fract() == 0.0)?;
    // `as` from a float saturates, which is what is meant here.
    Some(float as u64)
}

/// The strings of a list of strings.
pub(super) fn names(value: &Json<'_>) -> Vec<String> {
    value
        .as_array()
        .unwrap_or_default()
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
