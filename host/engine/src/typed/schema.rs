//! JSON form of every WIT type, as JSON Schema.
//!
//! | WIT | JSON |
//! |---|---|
//! | `bool`, `string` | boolean, string |
//! | `s8` … `u64` | integer with the `format` of its range (`ARG-12`) |
//! | `f32`, `f64` | number, `format` float or double |
//! | `char` | string of exactly one character |
//! | `list<u8>` | string, base64 with padding |
//! | `list<T>`, `tuple<A, B>` | array; of fixed length |
//! | `record` | object, keys in snake case |
//! | `enum`, a variant without payloads | string, the name of the case as in WIT |
//! | `flags` | array of the names that are set |
//! | `variant` | `{"kind": case}`, and `"value"` where the case has a payload |
//! | `result<T, E>` inside a value | `{"ok": T}` or `{"error": E}`; null for a payload that is not there |
//! | `option<T>` | null or `T`; may be left out of an object |
//! | `option<option<T>>` | null, or `{"some": …}` around the inner option: nothing else can tell `none` from `some(none)` |
//!
//! For arguments, only what must be given is required. Results always have all their keys, and
//! their schemas say so.

use serde_json::{Map, Value, json};

use super::shape::{Field, Integer, ValueShape, VariantCase, is_flat};

/// Only padded base64: every match can be decoded, and the model gets an error before the tool
/// runs.
const BASE64: &str = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

/// Direction of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Argument,
    Result,
}

/// Returns the schema of values of a shape.
pub(super) fn of(shape: &ValueShape, direction: Direction) -> Value {
    match shape {
        ValueShape::Bool => json!({"type": "boolean"}),
        ValueShape::Integer(integer) => json!({"type": "integer", "format": format(*integer)}),
        ValueShape::Float32 => json!({"type": "number", "format": "float"}),
        ValueShape::Float64 => json!({"type": "number", "format": "double"}),
        ValueShape::Char => json!({"type": "string", "minLength": 1, "maxLength": 1}),
        ValueShape::Text => json!({"type": "string"}),
        ValueShape::Bytes => match direction {
            Direction::Argument => {
                json!({"type": "string", "contentEncoding": "base64", "pattern": BASE64})
            }
            Direction::Result => json!({"type": "string", "contentEncoding": "base64"}),
        },
        ValueShape::List(element) => json!({"type": "array", "items": of(element, direction)}),
        ValueShape::Tuple(shapes) => {
            let items: Vec<_> = shapes.iter().map(|shape| of(shape, direction)).collect();
            json!({"type": "array", "minItems": items.len(), "maxItems": items.len(), "prefixItems": items})
        }
        ValueShape::Enum(names) => name_of(names),
        ValueShape::Flags(names) => {
            json!({"type": "array", "items": name_of(names), "uniqueItems": true})
        }
        ValueShape::Record(fields) => {
            object(fields.iter().map(|field| (field, of(&field.shape, direction))), |f| {
                is_required(&f.shape, direction)
            })
        }
        ValueShape::Variant(cases) if is_flat(cases) => {
            name_of(&cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>())
        }
        ValueShape::Variant(cases) => {
            json!({"anyOf": cases.iter().map(|case| variant_case(case, direction)).collect::<Vec<_>>()})
        }
        ValueShape::Result { ok, error } => json!({"anyOf": [
            result_case("ok", ok.as_deref(), direction),
            result_case("error", error.as_deref(), direction),
        ]}),
        ValueShape::Option(inner) if inner.accepts_null() => {
            let mut some =
                json!({"type": ["object", "null"], "properties": {"some": of(inner, direction)}});
            if direction == Direction::Result {
                set(&mut some, "required", json!(["some"]));
            }
            some
        }
        ValueShape::Option(inner) => nullable(of(inner, direction)),
    }
}

/// Returns an object schema for fields with their schemas.
pub(super) fn object<'f>(
    fields: impl Iterator<Item = (&'f Field, Value)>,
    is_required: impl Fn(&Field) -> bool,
) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (field, schema) in fields {
        if is_required(field) {
            required.push(Value::from(field.key.as_str()));
        }
        properties.insert(field.key.clone(), schema);
    }
    let mut object = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        set(&mut object, "required", required.into());
    }
    object
}

/// Adds a keyword.
pub(super) fn set(schema: &mut Value, keyword: &str, value: Value) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert(keyword.to_owned(), value);
    }
}

/// Returns true if a key with a value of this shape is required.
pub(super) fn is_required(shape: &ValueShape, direction: Direction) -> bool {
    direction == Direction::Result || !shape.accepts_null()
}

fn format(integer: Integer) -> &'static str {
    match integer {
        Integer::S8 => "int8",
        Integer::U8 => "uint8",
        Integer::S16 => "int16",
        Integer::U16 => "uint16",
        Integer::S32 => "int32",
        Integer::U32 => "uint32",
        Integer::S64 => "int64",
        Integer::U64 => "uint64",
    }
}

fn name_of(names: &[String]) -> Value {
    json!({"type": "string", "enum": names})
}

fn variant_case(case: &VariantCase, direction: Direction) -> Value {
    let mut properties = json!({"kind": {"const": case.name}});
    let mut required = vec!["kind"];
    if let Some(payload) = &case.payload {
        set(&mut properties, "value", of(payload, direction));
        if is_required(payload, direction) {
            required.push("value");
        }
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// Returns the schema of one case of a result. It is closed because a payload that may be null may
/// be left out: with other keys allowed, `{"error": …}` would be accepted as an `ok` without a
/// payload.
fn result_case(key: &str, payload: Option<&ValueShape>, direction: Direction) -> Value {
    let is_required = payload.is_none_or(|shape| is_required(shape, direction));
    let payload = payload.map_or_else(|| json!({"type": "null"}), |shape| of(shape, direction));
    let is_required =
        is_required && (direction == Direction::Result || payload != json!({"type": "null"}));
    let mut case = json!({"type": "object", "properties": {key: payload}});
    if is_required {
        set(&mut case, "required", json!([key]));
    }
    set(&mut case, "additionalProperties", Value::Bool(false));
    case
}

/// Returns the schema with null as an additional value. Where a type can be added, the schema still
/// reports precise problems; a failed alternative only reports that it failed.
fn nullable(mut schema: Value) -> Value {
    let null = json!({"type": "null"});
    if let Some(branches) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        branches.push(null);
        return schema;
    }
    match schema.get("type").cloned() {
        Some(name) if schema.get("enum").is_none() => {
            set(&mut schema, "type", json!([name, "null"]));
            schema
        }
        _ => json!({"anyOf": vec![schema, null]}),
    }
}
