//! Conversion of decoded arguments to component values.
//!
//! After decoding, the arguments are values of the derived schema, so lowering cannot fail on input
//! of a model. If it does, the host is at fault, and the call ends in an error without reaching the
//! guest.

use base64::Engine as _;
use base64::alphabet::STANDARD as ALPHABET;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use cofferdam_tool::ToolError;
use serde_json::{Map, Value};
use wasmtime::component::Val;

use super::shape::{Field, Integer, ValueShape, VariantCase};

/// Base64 that accepts non-zero bits after the last byte: the schema's pattern cannot reject them,
/// and they are not part of the data.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &ALPHABET,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Converts the arguments of a call, in the order of the parameters.
pub(super) fn parameters(
    parameters: &[Field],
    arguments: &Map<String, Value>,
) -> Result<Vec<Val>, ToolError> {
    let lowered = |field: &Field| {
        lower(&field.shape, arguments.get(&field.key)).ok_or_else(|| {
            ToolError::host("InvalidArguments")
                .with_detail(format!("the decoded argument `{}` does not fit its type", field.key))
        })
    };
    parameters.iter().map(lowered).collect()
}

/// Converts a value of a shape. Returns `None` if the value does not have that shape. Recurses as
/// deep as the shape.
pub(super) fn lower(shape: &ValueShape, value: Option<&Value>) -> Option<Val> {
    if let ValueShape::Option(inner) = shape {
        return Some(Val::Option(option(inner, value)?.map(Box::new)));
    }
    let value = value?;
    Some(match shape {
        ValueShape::Bool => Val::Bool(value.as_bool()?),
        ValueShape::Integer(integer) => whole(*integer, value)?,
        ValueShape::Float32 => Val::Float32(single(value.as_f64()?)),
        ValueShape::Float64 => Val::Float64(value.as_f64()?),
        ValueShape::Char => Val::Char(only(value.as_str()?.chars())?),
        ValueShape::Text => Val::String(value.as_str()?.to_owned()),
        ValueShape::Bytes => {
            let bytes = BASE64.decode(value.as_str()?).ok()?;
            Val::List(bytes.into_iter().map(Val::U8).collect())
        }
        ValueShape::List(element) => {
            let items = value.as_array()?.iter();
            Val::List(items.map(|item| lower(element, Some(item))).collect::<Option<_>>()?)
        }
        ValueShape::Tuple(shapes) => Val::Tuple(tuple(shapes, value.as_array()?)?),
        ValueShape::Record(fields) => Val::Record(record(fields, value.as_object()?)?),
        ValueShape::Enum(_) => Val::Enum(value.as_str()?.to_owned()),
        ValueShape::Flags(_) => {
            let names = value.as_array()?.iter();
            Val::Flags(names.map(|name| name.as_str().map(str::to_owned)).collect::<Option<_>>()?)
        }
        ValueShape::Variant(cases) => variant(cases, value)?,
        ValueShape::Result { ok, error } => {
            Val::Result(result(ok.as_deref(), error.as_deref(), value.as_object()?)?)
        }
        ValueShape::Option(_) => return None,
    })
}

fn option(inner: &ValueShape, value: Option<&Value>) -> Option<Option<Val>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(value) if inner.accepts_null() => {
            lower(inner, value.as_object()?.get("some")).map(Some)
        }
        Some(value) => lower(inner, Some(value)).map(Some),
    }
}

fn whole(integer: Integer, value: &Value) -> Option<Val> {
    let (signed, unsigned) = (value.as_i64(), value.as_u64());
    Some(match integer {
        Integer::S8 => Val::S8(signed?.try_into().ok()?),
        Integer::U8 => Val::U8(unsigned?.try_into().ok()?),
        Integer::S16 => Val::S16(signed?.try_into().ok()?),
        Integer::U16 => Val::U16(unsigned?.try_into().ok()?),
        Integer::S32 => Val::S32(signed?.try_into().ok()?),
        Integer::U32 => Val::U32(unsigned?.try_into().ok()?),
        Integer::S64 => Val::S64(signed?),
        Integer::U64 => Val::U64(unsigned?),
    })
}

/// Returns the nearest 32-bit float. Decoding has rejected values that would become infinite
/// (`ARG-13`).
#[expect(
    clippy::cast_possible_truncation,
    reason = "rounding to the nearest is what the type asks for"
)]
fn single(value: f64) -> f32 {
    value as f32
}

fn only(mut characters: std::str::Chars<'_>) -> Option<char> {
    characters.next().filter(|_| characters.next().is_none())
}

fn tuple(shapes: &[ValueShape], items: &[Value]) -> Option<Vec<Val>> {
    if shapes.len() != items.len() {
        return None;
    }
    shapes.iter().zip(items).map(|(shape, item)| lower(shape, Some(item))).collect()
}

fn record(fields: &[Field], members: &Map<String, Value>) -> Option<Vec<(String, Val)>> {
    let lowered =
        |field: &Field| Some((field.name.clone(), lower(&field.shape, members.get(&field.key))?));
    fields.iter().map(lowered).collect()
}

fn variant(cases: &[VariantCase], value: &Value) -> Option<Val> {
    let kind = value.as_str().or_else(|| value.get("kind")?.as_str())?;
    let case = cases.iter().find(|case| case.name == kind)?;
    let payload = match &case.payload {
        Some(shape) => Some(Box::new(lower(shape, value.get("value"))?)),
        None => None,
    };
    Some(Val::Variant(case.name.clone(), payload))
}

type Payload = Option<Box<Val>>;

fn result(
    ok: Option<&ValueShape>,
    error: Option<&ValueShape>,
    members: &Map<String, Value>,
) -> Option<Result<Payload, Payload>> {
    let payload = |shape: Option<&ValueShape>, key: &str| match shape {
        Some(shape) => lower(shape, members.get(key)).map(|value| Some(Box::new(value))),
        None => Some(None),
    };
    if members.contains_key("error") {
        payload(error, "error").map(Err)
    } else {
        payload(ok, "ok").map(Ok)
    }
}
