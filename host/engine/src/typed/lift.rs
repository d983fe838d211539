//! Conversion of a function's result to the outcome of the call.
//!
//! At the top, `result<T, E>` determines the outcome. `ok` is the value of `T`, or null without
//! one. An error is a failure that the tool reports itself (`RES-2`): a string is its message; a
//! record with `message`, and optionally `suggestion` and `transient`, is split into its fields;
//! the model sees any other `E` unchanged.
//!
//! Integers keep all their digits. A 32-bit float is written as the shortest decimal that reads
//! back as the same float, so `0.1` comes back as `0.1`. A float that is not finite has no JSON
//! form: the result is then not valid JSON, which is `InvalidResult`; null would be a value that
//! was never computed.
//!
//! The fuel of host calls has already bounded the copy of the value before this runs
//! ([`copied_bytes_max`]). The output limit bounds the result that is built here, counted as
//! compact JSON.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cofferdam_tool::{ErrorType, Outcome, Output, ToolError, ToolFailure};
use serde_json::{Map, Number, Value};
use wasmtime::component::Val;

use super::shape::{Field, ValueShape, VariantCase, is_flat};
use crate::guest::lift::check_size;

/// Additional bytes that may be copied: values that JSON leaves out still take some space in the
/// host.
const COPIED_BYTES_MORE: u64 = 2 << 20;

/// Returns the maximum number of bytes that are copied of a result of at most `output_bytes_max`. A
/// `list<u8>` takes the most for its length: each byte is a value of the engine, and three of them
/// are four characters of base64 in the result.
pub(crate) fn copied_bytes_max(output_bytes_max: u64) -> u64 {
    let values = output_bytes_max.saturating_mul(3) / 4;
    values.saturating_mul(length(size_of::<Val>())).saturating_add(COPIED_BYTES_MORE)
}

/// Returns the number of bytes that a value takes in the host. Types have a bounded depth, which
/// bounds the recursion.
pub(crate) fn value_bytes(value: &Val) -> u64 {
    let all = |values: &[Val]| values.iter().map(value_bytes).sum();
    let boxed = |value: Option<&Val>| value.map_or(0, value_bytes);
    let inner = match value {
        Val::String(text) | Val::Enum(text) => length(text.len()),
        Val::List(values) | Val::Tuple(values) | Val::FixedLengthList(values) => all(values),
        Val::Map(entries) => {
            entries.iter().map(|(key, value)| value_bytes(key) + value_bytes(value)).sum()
        }
        Val::Record(fields) => {
            fields.iter().map(|(name, value)| length(name.len()) + value_bytes(value)).sum()
        }
        Val::Variant(name, value) => length(name.len()) + boxed(value.as_deref()),
        Val::Option(value) | Val::Result(Ok(value) | Err(value)) => boxed(value.as_deref()),
        Val::Flags(names) => {
            names.iter().map(|name| length(name.len() + size_of::<String>())).sum()
        }
        _ => 0,
    };
    length(size_of::<Val>()).saturating_add(inner)
}

/// Returns the outcome of a call that returned `value`, a value of `shape`.
pub(super) fn outcome(
    shape: Option<&ValueShape>,
    value: Option<Val>,
    output_bytes_max: u64,
) -> Outcome {
    let mut lifting = Lifter { bytes_left: output_bytes_max, output_bytes_max };
    let outcome = match (shape, value) {
        (Some(ValueShape::Result { ok, .. }), Some(Val::Result(Ok(value)))) => {
            lifting.output(ok.as_deref(), value.map(|value| *value)).map(Outcome::Ok)
        }
        (Some(ValueShape::Result { error, .. }), Some(Val::Result(Err(value)))) => {
            lifting.failure(error.as_deref(), value.map(|value| *value)).map(Outcome::Failure)
        }
        (shape, value) => lifting.output(shape, value).map(Outcome::Ok),
    };
    outcome.unwrap_or_else(Outcome::Error)
}

struct Lifter {
    /// Number of bytes that the result may still take. Lifting subtracts only a lower bound of each
    /// length, so that it stops early; the exact length is counted at the end.
    bytes_left: u64,
    output_bytes_max: u64,
}

impl Lifter {
    fn output(
        &mut self,
        shape: Option<&ValueShape>,
        value: Option<Val>,
    ) -> Result<Output, ToolError> {
        let value = self.json(shape, value)?;
        let bytes = match &value {
            // As with declared tools, text counts with its own length and not with that of its
            // JSON.
            Value::String(text) => length(text.len()),
            value => json_bytes(value, self.output_bytes_max),
        };
        check_size(bytes, self.output_bytes_max)?;
        Ok(Output::Value(value))
    }

    fn failure(
        &mut self,
        shape: Option<&ValueShape>,
        value: Option<Val>,
    ) -> Result<ToolFailure, ToolError> {
        let value = self.json(shape, value)?;
        check_size(json_bytes(&value, self.output_bytes_max), self.output_bytes_max)?;
        Ok(match (shape, value) {
            (None, _) => ToolFailure::default(),
            (_, Value::String(message)) => ToolFailure::new(message),
            (Some(ValueShape::Record(fields)), Value::Object(members)) if is_failure(fields) => {
                let text = |key| members.get(key).and_then(Value::as_str).map(str::to_owned);
                ToolFailure {
                    message: text("message").unwrap_or_default(),
                    suggestion: text("suggestion"),
                    transient: members.get("transient").and_then(Value::as_bool),
                    ..ToolFailure::default()
                }
            }
            (_, value) => {
                let message = value.get("message").and_then(Value::as_str).map(str::to_owned);
                let message = message.unwrap_or_else(|| value.to_string());
                ToolFailure { value: Some(value), ..ToolFailure::new(message) }
            }
        })
    }

    fn json(&mut self, shape: Option<&ValueShape>, value: Option<Val>) -> Result<Value, ToolError> {
        match (shape, value) {
            (Some(shape), Some(value)) => self.lift(shape, value),
            (None, None) => Ok(Value::Null),
            _ => Err(mismatch()),
        }
    }

    /// Converts a value of a shape. Recurses as deep as the shape.
    fn lift(&mut self, shape: &ValueShape, value: Val) -> Result<Value, ToolError> {
        Ok(match (shape, value) {
            (ValueShape::Bool, Val::Bool(value)) => value.into(),
            (ValueShape::Integer(_), value) => integer(&value).ok_or_else(mismatch)?.into(),
            (ValueShape::Float32, Val::Float32(value)) => Value::Number(float(shortest(value))?),
            (ValueShape::Float64, Val::Float64(value)) => Value::Number(float(value)?),
            (ValueShape::Char, Val::Char(value)) => value.to_string().into(),
            (ValueShape::Text, Val::String(text)) => {
                self.charge(text.len())?;
                text.into()
            }
            (ValueShape::Bytes, Val::List(items)) => self.bytes(&items)?.into(),
            (ValueShape::List(element), Val::List(items)) => {
                self.charge(items.len())?;
                self.items(std::iter::repeat(&**element), items)?
            }
            (ValueShape::Tuple(shapes), Val::Tuple(items)) => self.items(shapes.iter(), items)?,
            (ValueShape::Record(fields), Val::Record(values)) => self.record(fields, values)?,
            (ValueShape::Enum(_), Val::Enum(name)) => self.name(name)?,
            (ValueShape::Flags(_), Val::Flags(names)) => {
                names.into_iter().map(|name| self.name(name)).collect::<Result<Vec<_>, _>>()?.into()
            }
            (ValueShape::Variant(cases), Val::Variant(kind, payload)) => {
                self.variant(cases, kind, payload)?
            }
            (ValueShape::Option(inner), Val::Option(value)) => self.option(inner, value)?,
            (ValueShape::Result { ok, .. }, Val::Result(Ok(payload))) => {
                self.case("ok", ok.as_deref(), payload)?
            }
            (ValueShape::Result { error, .. }, Val::Result(Err(payload))) => {
                self.case("error", error.as_deref(), payload)?
            }
            _ => return Err(mismatch()),
        })
    }

    fn items<'s>(
        &mut self,
        shapes: impl Iterator<Item = &'s ValueShape>,
        items: Vec<Val>,
    ) -> Result<Value, ToolError> {
        let lifted = shapes.zip(items).map(|(shape, item)| {
            // The shortest item has one byte. Text at the top has no quotes, so nothing more can be
            // assumed.
            self.charge(1)?;
            self.lift(shape, item)
        });
        lifted.collect::<Result<Vec<_>, _>>().map(Value::Array)
    }

    fn bytes(&mut self, items: &[Val]) -> Result<String, ToolError> {
        self.charge(items.len())?;
        let byte = |item: &Val| if let Val::U8(byte) = item { Some(*byte) } else { None };
        let bytes: Vec<u8> = items.iter().map(byte).collect::<Option<_>>().ok_or_else(mismatch)?;
        Ok(BASE64.encode(bytes))
    }

    fn record(&mut self, fields: &[Field], values: Vec<(String, Val)>) -> Result<Value, ToolError> {
        let mut members = Map::with_capacity(fields.len());
        for (field, (_, value)) in fields.iter().zip(values) {
            self.charge(field.key.len())?;
            members.insert(field.key.clone(), self.lift(&field.shape, value)?);
        }
        Ok(Value::Object(members))
    }

    fn variant(
        &mut self,
        cases: &[VariantCase],
        kind: String,
        payload: Option<Box<Val>>,
    ) -> Result<Value, ToolError> {
        if is_flat(cases) {
            return self.name(kind);
        }
        let shape =
            cases.iter().find(|case| case.name == kind).and_then(|case| case.payload.as_ref());
        let mut members = Map::new();
        members.insert("kind".to_owned(), self.name(kind)?);
        if let (Some(shape), Some(payload)) = (shape, payload) {
            members.insert("value".to_owned(), self.lift(shape, *payload)?);
        }
        Ok(Value::Object(members))
    }

    fn option(&mut self, inner: &ValueShape, value: Option<Box<Val>>) -> Result<Value, ToolError> {
        match value {
            None => Ok(Value::Null),
            Some(value) if inner.accepts_null() => self.case("some", Some(inner), Some(value)),
            Some(value) => self.lift(inner, *value),
        }
    }

    fn case(
        &mut self,
        key: &str,
        shape: Option<&ValueShape>,
        payload: Option<Box<Val>>,
    ) -> Result<Value, ToolError> {
        let value = self.json(shape, payload.map(|payload| *payload))?;
        Ok(Value::Object(Map::from_iter([(key.to_owned(), value)])))
    }

    fn name(&mut self, name: String) -> Result<Value, ToolError> {
        self.charge(name.len())?;
        Ok(name.into())
    }

    fn charge(&mut self, bytes: usize) -> Result<(), ToolError> {
        match self.bytes_left.checked_sub(length(bytes)) {
            Some(left) => {
                self.bytes_left = left;
                Ok(())
            }
            None => Err(ToolError::new(ErrorType::OutputLimit)
                .with_detail(format!("the result is longer than {} bytes", self.output_bytes_max))),
        }
    }
}

/// Returns true if an error record has the fields of a failure and no others (`RES-2`, `RES-4`).
fn is_failure(fields: &[Field]) -> bool {
    let is = |shape: &ValueShape, wanted: &ValueShape| match shape {
        ValueShape::Option(inner) => **inner == *wanted,
        shape => shape == wanted,
    };
    let fits = |field: &Field| match field.key.as_str() {
        "message" => field.shape == ValueShape::Text,
        "suggestion" => is(&field.shape, &ValueShape::Text),
        "transient" => is(&field.shape, &ValueShape::Bool),
        _ => false,
    };
    fields.iter().any(|field| field.key == "message") && fields.iter().all(fits)
}

fn integer(value: &Val) -> Option<Number> {
    Some(match value {
        Val::S8(value) => (*value).into(),
        Val::U8(value) => (*value).into(),
        Val::S16(value) => (*value).into(),
        Val::U16(value) => (*value).into(),
        Val::S32(value) => (*value).into(),
        Val::U32(value) => (*value).into(),
        Val::S64(value) => (*value).into(),
        Val::U64(value) => (*value).into(),
        _ => return None,
    })
}

/// Returns the 64-bit float with the same shortest decimal as the 32-bit one.
fn shortest(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_else(|_| f64::from(value))
}

fn float(value: f64) -> Result<Number, ToolError> {
    Number::from_f64(value).ok_or_else(|| {
        ToolError::new(ErrorType::InvalidResult)
            .with_detail(format!("the result holds {value}, which has no JSON form"))
    })
}

/// Returns the error for a value that does not have its type. The engine has already checked that.
fn mismatch() -> ToolError {
    ToolError::new(ErrorType::InvalidResult).with_detail("the result is not of the function's type")
}

fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Returns the length of a value as compact JSON. Counting stops at the first write that exceeds
/// `bytes_max`.
fn json_bytes(value: &Value, bytes_max: u64) -> u64 {
    struct Counter {
        bytes: u64,
        bytes_max: u64,
    }
    impl io::Write for Counter {
        fn write(&mut self, written: &[u8]) -> io::Result<usize> {
            self.bytes = self.bytes.saturating_add(length(written.len()));
            if self.bytes > self.bytes_max {
                Err(io::ErrorKind::FileTooLarge.into())
            } else {
                Ok(written.len())
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter { bytes: 0, bytes_max };
    // The only error is that of the counter, which has already exceeded its limit in that case.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.bytes
}
