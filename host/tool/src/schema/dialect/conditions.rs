//! Classifies alternatives and conditions by what they add to the schema that contains them.

use crate::json::{Json, JsonObject};

/// Returns whether a schema declares properties of its own.
pub(super) fn has_properties(schema: &JsonObject<'_>) -> bool {
    let declared = schema.get("properties").and_then(Json::as_object);
    declared.is_some_and(|properties| properties.members().len() > 0)
}

/// Returns whether alternatives belong to a typed schema and only restrict its values, without
/// declaring their parts.
pub(super) fn restricts_only(schema: &JsonObject<'_>, branches: &Json<'_>) -> bool {
    const PLAIN: [&str; 18] = [
        "required",
        "minProperties",
        "maxProperties",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
        "not",
        "title",
        "description",
    ];
    let is_plain = |branch: &Json<'_>| {
        branch
            .as_object()
            .is_some_and(|branch| branch.members().all(|(name, _)| PLAIN.contains(&name.as_ref())))
    };
    let is_typed = schema.get("type").is_some() || schema.get("properties").is_some();
    is_typed && branches.as_array().is_some_and(|branches| branches.iter().all(is_plain))
}

/// Returns whether a conditional part declares properties that the containing schema does not.
pub(super) fn declares_more(schema: &JsonObject<'_>, value: &Json<'_>, keyword: &str) -> bool {
    let own = schema.get("properties").and_then(Json::as_object);
    let is_new = |name: &str| own.is_none_or(|own| own.get(name).is_none());
    let more = |part: &Json<'_>| {
        let Some(part) = part.as_object() else { return false };
        let named = part.get("properties").and_then(Json::as_object);
        let indirect = ["$ref", "allOf", "anyOf", "oneOf", "if"]
            .into_iter()
            .any(|name| part.get(name).is_some());
        indirect || named.into_iter().flat_map(JsonObject::members).any(|(name, _)| is_new(name))
    };
    match value.as_object().filter(|_| keyword == "dependentSchemas") {
        Some(parts) => parts.members().any(|(_, part)| more(part)),
        None => more(value),
    }
}
