//! Formats of numbers, written as bounds.
//!
//! OpenAPI has these formats and JSON Schema does not: some validators print a warning for each, others refuse the tool.

use serde_json::{Map, Value, json};

use crate::json::Object;

/// Returns true for a format that is about the width of a number.
pub(super) fn is_format(name: &str) -> bool {
    matches!(
        name,
        "int8" | "int16" | "int32" | "int64" | "uint8" | "uint16" | "uint32" | "uint64" | "float" | "double"
    )
}

/// Adds the bounds that a format implies to the schema that is being written. Bounds that are declared stay. Numbers of 64 bits
/// get no bound that other programs could not represent exactly.
pub(super) fn bound(written: &mut Map<String, Value>, declared: &Object<'_>, format: &str) {
    let (least, most) = match format {
        "int8" => (Some(i64::from(i8::MIN)), Some(i64::from(i8::MAX))),
        "int16" => (Some(i64::from(i16::MIN)), Some(i64::from(i16::MAX))),
        "int32" => (Some(i64::from(i32::MIN)), Some(i64::from(i32::MAX))),
        "uint8" => (Some(0), Some(i64::from(u8::MAX))),
        "uint16" => (Some(0), Some(i64::from(u16::MAX))),
        "uint32" => (Some(0), Some(i64::from(u32::MAX))),
        "uint64" => (Some(0), None),
        _ => (None, None),
    };
    if !is_integer(declared) {
        return;
    }
    let is_open = |keywords: [&str; 2]| keywords.iter().all(|keyword| declared.get(keyword).is_none());
    if let Some(least) = least.filter(|_| is_open(["minimum", "exclusiveMinimum"])) {
        written.insert("minimum".to_owned(), json!(least));
    }
    if let Some(most) = most.filter(|_| is_open(["maximum", "exclusiveMaximum"])) {
        written.insert("maximum".to_owned(), json!(most));
    }
}

/// Returns true if the numbers that a schema takes are integers. Only for them is the width enforced.
fn is_integer(declared: &Object<'_>) -> bool {
    let Some(kind) = declared.get("type") else { return false };
    let names = |name: &str| match kind.as_array() {
        Some(kinds) => kinds.iter().any(|kind| kind.as_str() == Some(name)),
        None => kind.as_str() == Some(name),
    };
    names("integer") && !names("number")
}
