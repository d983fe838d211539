//! From a model's JSON to the values that a tool receives.
//!
//! Decoding has three steps. The text is read within its limits (`ARG-28` to `ARG-30`). The value
//! is converted by the plan: what is not supplied is filled in or reported, what is nearly right is
//! made right, what is not declared is dropped (`ARG-1` to `ARG-27`). The result is validated by
//! all keywords of the schema (`ARG-34`). Problems of all steps are reported together, one for a
//! path (`ARG-31`); when there is one, nothing reaches the tool.
//!
//! A declaration is written by a stranger and the arguments by a model that a stranger may talk to,
//! so the work for one decoding is limited: alternatives that contain each other can be made to
//! take time that doubles with every level of a value. Such a decoding ends with a `limit` problem.
//! No text that is not built for it comes near.

mod check;
mod choice;
mod convert;
mod date_time;
mod decoder;
mod draft;
mod duration;
mod evaluated;
mod hint;
#[cfg(test)]
mod hostile;
mod list;
mod meter;
mod object;
mod path;
mod problem;
#[cfg(test)]
pub(crate) mod properties;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::json::{self, Json, Shape};
use crate::schema::{Plan, SchemaId};
use decoder::Decoder;
use draft::Draft;
use meter::Meter;
use path::Path;

pub(crate) use draft::weight;
pub use problem::{InvalidArguments, Problem, ProblemCode};

/// Deepest nesting of arguments; the argument object is level 1 (`ARG-30`).
const LEVELS_MAX: usize = 128;

/// How arguments are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Takes values of the declared type alone (`ARG-23`).
    pub strict: bool,
    /// Longest text of arguments in bytes (`ARG-30`).
    pub text_bytes_max: usize,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { strict: false, text_bytes_max: 1_048_576 }
    }
}

/// Decoded arguments: a value of the declared schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments {
    value: Map<String, Value>,
    dropped: Vec<String>,
}

impl Arguments {
    /// The arguments by name. Declared properties come in the order of their declaration.
    #[must_use]
    pub fn value(&self) -> &Map<String, Value> {
        &self.value
    }

    /// Paths of keys that are not declared and were not forwarded, sorted (`ARG-24`).
    #[must_use]
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// The arguments as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.value).unwrap_or_default()
    }

    /// The arguments as an object.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.value)
    }
}

/// Whether a value counts as supplied (`ARG-1`): its key is there (`Some`) and it is not null.
#[must_use]
pub fn is_supplied(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Decodes the text of arguments; an absent text is empty.
pub(crate) fn decode(
    plan: &Plan,
    tool: &str,
    text: &[u8],
    options: &DecodeOptions,
) -> Result<Arguments, InvalidArguments> {
    let json = read(tool, text, options)?;
    Decoder::new(plan, tool, options.strict).run(&json)
}

/// Reads the text of arguments that go on as they are; an absent text is empty.
pub(crate) fn as_written(
    tool: &str,
    text: &[u8],
    options: &DecodeOptions,
) -> Result<Arguments, InvalidArguments> {
    match read(tool, text, options)?.to_value() {
        Some(Value::Object(value)) => Ok(Arguments { value, dropped: Vec::new() }),
        _ => Err(problem::malformed(tool)),
    }
}

/// The object in the text of arguments, within their limits.
fn read<'a>(
    tool: &str,
    text: &'a [u8],
    options: &DecodeOptions,
) -> Result<Json<'a>, InvalidArguments> {
    if text.len() > options.text_bytes_max {
        return Err(problem::too_large(tool, options.text_bytes_max));
    }
    if json::levels(text) > LEVELS_MAX {
        return Err(problem::too_deep(tool, LEVELS_MAX));
    }
    let text = if is_blank(text) { b"{}" } else { text };
    let json = json::read(text, LEVELS_MAX).map_err(|_| problem::malformed(tool))?;
    match json.shape() {
        Shape::Object(_) => Ok(json),
        Shape::Null => Ok(Json::empty_object()),
        _ => Err(problem::malformed(tool)),
    }
}

/// The compact text of arguments that are a value already.
pub(crate) fn text_of(tool: &str, value: &Value) -> Result<String, InvalidArguments> {
    // Writing a value recurses, so its nesting is looked at first.
    if json::value_levels(value) > LEVELS_MAX {
        return Err(problem::too_deep(tool, LEVELS_MAX));
    }
    Ok(value.to_string())
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

/// Why a default cannot be one.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// It does not decode; the text says why.
    Problem(String),
    /// Completing it takes more work than a declaration is worth.
    TooMuchWork,
}

/// Decodes a default by its schema, without tolerance, and completes it (`ARG-7`, `ARG-38`).
/// `texts` are the defaults of all schemas, because those that complete this one may not be decoded
/// yet.
pub(crate) fn complete<'a>(
    plan: &'a Plan,
    id: SchemaId,
    text: &'a Json<'a>,
    texts: &'a HashMap<SchemaId, &'a Json<'a>>,
    steps_left: &mut u64,
) -> Result<Value, Unfit> {
    let mut decoder = Decoder::for_default(plan, texts, Meter::with_steps(*steps_left));
    let decoded = decoder.default_value(id, Draft::Text(text));
    *steps_left = decoder.steps_left();
    decoded
}

/// Validates a result by JSON Schema alone (`RES-22`).
pub(crate) fn validate(plan: &Plan, value: &Value) -> Result<(), String> {
    let mut meter = Meter::new();
    // Validation recurses with the value, so its nesting is looked at first.
    if json::value_levels(value) > LEVELS_MAX {
        return Err(format!("the value is nested deeper than {LEVELS_MAX} levels"));
    }
    let violations = check::violations(plan, value, &mut meter);
    if meter.is_exhausted() {
        return Err("the value takes too much work to validate".to_owned());
    }
    if violations.is_empty() { Ok(()) } else { Err(violations.join(", ")) }
}

/// The path of the argument object itself, which is empty.
const TOP: Path<'static> = Path::Root;
