//! Converts number formats to bounds.
//!
//! OpenAPI has these formats and JSON Schema does not: some validators print a warning for each,
//! others reject the tool.

use serde_json::{Map, Value, json};

/// Replaces a format for the width of a number by the bounds that it implies. Declared bounds stay.
/// Numbers of 64 bits get no bound that other programs could not represent exactly.
pub(super) fn bound(schema: &mut Map<String, Value>) {
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("int8") => (Some(i64::from(i8::MIN)), Some(i64::from(i8::MAX))),
        Some("int16") => (Some(i64::from(i16::MIN)), Some(i64::from(i16::MAX))),
        Some("int32") => (Some(i64::from(i32::MIN)), Some(i64::from(i32::MAX))),
        Some("uint8") => (Some(0), Some(i64::from(u8::MAX))),
        Some("uint16") => (Some(0), Some(i64::from(u16::MAX))),
        Some("uint32") => (Some(0), Some(i64::from(u32::MAX))),
        Some("uint64") => (Some(0), None),
        Some(name) if is_number_format(name) => (None, None),
        _ => return,
    };
    schema.shift_remove("format");
    if !is_integer(schema) {
        return;
    }
    let mut bound = |keyword: &str, exclusive: &str, value: Option<i64>| {
        if let Some(value) = value
            && !schema.contains_key(keyword)
            && !schema.contains_key(exclusive)
        {
            schema.insert(keyword.to_owned(), json!(value));
        }
    };
    bound("minimum", "exclusiveMinimum", least);
    bound("maximum", "exclusiveMaximum", most);
}

/// Returns whether a format is for numbers. Those that the decoder does not know have no bounds.
pub(super) fn is_number_format(name: &str) -> bool {
    let width = name.strip_prefix('u').unwrap_or(name).strip_prefix("int");
    width.is_some_and(|width| width.chars().all(|c| c.is_ascii_digit()))
        || matches!(name, "float" | "double" | "decimal")
}

/// Returns true if a schema accepts only integers. The width is enforced only for them.
fn is_integer(schema: &Map<String, Value>) -> bool {
    let Some(kind) = schema.get("type") else { return false };
    let names = |name: &str| match kind.as_array() {
        Some(kinds) => kinds.iter().any(|kind| kind == name),
        None => kind == name,
    };
    names("integer") && !names("number")
}
