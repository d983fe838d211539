//! Keywords of JSON Schema 2020-12 and the form of their values.
//!
//! A keyword outside this table has no effect on validation and is published unchanged. A keyword
//! in the table with a value of the wrong form is rejected at load: otherwise a typo in a
//! declaration would silently check nothing.

use crate::declaration::Reason;
use crate::json::{Json, JsonShape as Kind, integer, is_integer_literal, number};

/// Form of a keyword's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeywordShape {
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
    /// A keyword that this host does not implement. Ignoring it would accept invalid values.
    Unsupported,
}

/// Target of a subschema: the same value, a part of it, or nothing unless a reference leads there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplicationSite {
    Same,
    Part,
    Nowhere,
}

/// All keywords, sorted by name within each shape.
const KEYWORDS: &[(&str, KeywordShape, ApplicationSite)] = &[
    ("additionalProperties", KeywordShape::Schema, ApplicationSite::Part),
    ("contains", KeywordShape::Schema, ApplicationSite::Part),
    ("else", KeywordShape::Schema, ApplicationSite::Same),
    ("if", KeywordShape::Schema, ApplicationSite::Same),
    ("items", KeywordShape::Schema, ApplicationSite::Part),
    ("not", KeywordShape::Schema, ApplicationSite::Same),
    ("propertyNames", KeywordShape::Schema, ApplicationSite::Part),
    ("then", KeywordShape::Schema, ApplicationSite::Same),
    ("unevaluatedItems", KeywordShape::Schema, ApplicationSite::Part),
    ("unevaluatedProperties", KeywordShape::Schema, ApplicationSite::Part),
    ("allOf", KeywordShape::SchemaList, ApplicationSite::Same),
    ("anyOf", KeywordShape::SchemaList, ApplicationSite::Same),
    ("oneOf", KeywordShape::SchemaList, ApplicationSite::Same),
    ("prefixItems", KeywordShape::SchemaList, ApplicationSite::Part),
    ("$defs", KeywordShape::SchemaMap, ApplicationSite::Nowhere),
    ("definitions", KeywordShape::SchemaMap, ApplicationSite::Nowhere),
    ("dependentSchemas", KeywordShape::SchemaMap, ApplicationSite::Same),
    ("patternProperties", KeywordShape::SchemaMap, ApplicationSite::Part),
    ("properties", KeywordShape::SchemaMap, ApplicationSite::Part),
    ("exclusiveMaximum", KeywordShape::Number, ApplicationSite::Nowhere),
    ("exclusiveMinimum", KeywordShape::Number, ApplicationSite::Nowhere),
    ("maximum", KeywordShape::Number, ApplicationSite::Nowhere),
    ("minimum", KeywordShape::Number, ApplicationSite::Nowhere),
    ("multipleOf", KeywordShape::Number, ApplicationSite::Nowhere),
    ("maxContains", KeywordShape::Count, ApplicationSite::Nowhere),
    ("maxItems", KeywordShape::Count, ApplicationSite::Nowhere),
    ("maxLength", KeywordShape::Count, ApplicationSite::Nowhere),
    ("maxProperties", KeywordShape::Count, ApplicationSite::Nowhere),
    ("minContains", KeywordShape::Count, ApplicationSite::Nowhere),
    ("minItems", KeywordShape::Count, ApplicationSite::Nowhere),
    ("minLength", KeywordShape::Count, ApplicationSite::Nowhere),
    ("minProperties", KeywordShape::Count, ApplicationSite::Nowhere),
    ("uniqueItems", KeywordShape::Flag, ApplicationSite::Nowhere),
    ("$anchor", KeywordShape::Text, ApplicationSite::Nowhere),
    ("$id", KeywordShape::Text, ApplicationSite::Nowhere),
    ("$ref", KeywordShape::Text, ApplicationSite::Nowhere),
    ("format", KeywordShape::Text, ApplicationSite::Nowhere),
    ("pattern", KeywordShape::Text, ApplicationSite::Nowhere),
    ("required", KeywordShape::Names, ApplicationSite::Nowhere),
    ("dependentRequired", KeywordShape::NameLists, ApplicationSite::Nowhere),
    ("type", KeywordShape::Types, ApplicationSite::Nowhere),
    ("const", KeywordShape::Any, ApplicationSite::Nowhere),
    ("default", KeywordShape::Any, ApplicationSite::Nowhere),
    ("enum", KeywordShape::Any, ApplicationSite::Nowhere),
    ("$dynamicRef", KeywordShape::Unsupported, ApplicationSite::Nowhere),
    ("$recursiveRef", KeywordShape::Unsupported, ApplicationSite::Nowhere),
];

/// Returns the entry of a keyword, with the name as a constant.
pub(super) fn keyword(name: &str) -> Option<(&'static str, KeywordShape, ApplicationSite)> {
    KEYWORDS.iter().find(|(keyword, ..)| *keyword == name).copied()
}

/// Checks that a keyword's value has the right form. Subschemas are checked where they are visited.
pub(super) fn check(shape: KeywordShape, value: &Json<'_>) -> Result<(), Reason> {
    let (fits, expected) = match shape {
        KeywordShape::Schema => (is_schema(value), "a schema"),
        KeywordShape::SchemaList => (is_schema_list(value), "a list of schemas that is not empty"),
        KeywordShape::SchemaMap => (is_map_of(value, is_schema), "an object of schemas"),
        KeywordShape::Number => (as_number(value).is_some(), "a finite number"),
        KeywordShape::Count => (count(value).is_some(), "a whole number that is not negative"),
        KeywordShape::Flag => (matches!(value.shape(), Kind::Bool(_)), "`true` or `false`"),
        KeywordShape::Text => (value.as_str().is_some(), "a string"),
        KeywordShape::Names => (is_names(value), "a list of strings"),
        KeywordShape::NameLists => (is_map_of(value, is_names), "an object of lists of strings"),
        KeywordShape::Types => (is_types(value), "a string or a list of strings that is not empty"),
        KeywordShape::Any => return Ok(()),
        KeywordShape::Unsupported => return Err(Reason::Unsupported),
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

/// Returns the numeric value of a keyword.
pub(super) fn as_number(value: &Json<'_>) -> Option<serde_json::Number> {
    matches!(value.shape(), Kind::Number).then(|| number(value.raw())).flatten()
}

/// Returns a count, which JSON Schema allows to be written as `2` or `2.0`. One that does not fit
/// into 64 bits can never be reached, so the largest one replaces it.
pub(super) fn count(value: &Json<'_>) -> Option<u64> {
    let text = matches!(value.shape(), Kind::Number).then(|| value.raw())?;
    if is_integer_literal(text) {
        let value = integer(text).unwrap_or(if text.starts_with('-') { -1 } else { i128::MAX });
        return (value >= 0).then(|| u64::try_from(value).unwrap_or(u64::MAX));
    }
    let float = number(text)?.as_f64().filter(|float| *float >= 0.0 && float.fract() == 0.0)?;
    // `as` from a float saturates, as intended here.
    Some(float as u64)
}

/// Returns the strings of a list of strings.
pub(super) fn names(value: &Json<'_>) -> Vec<String> {
    value
        .as_array()
        .unwrap_or_default()
        .iter()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
