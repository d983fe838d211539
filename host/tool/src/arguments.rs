//! Decodes a model's JSON into the values that a tool receives.
//!
//! Decoding has three steps. Reading parses the JSON within its limits (`ARG-28` to `ARG-30`).
//! Conversion follows the plan: it fills in or reports missing values, corrects nearly valid ones
//! and drops undeclared ones (`ARG-1` to `ARG-27`). Validation checks the result against all
//! keywords of the schema (`ARG-34`). The problems of all steps are reported together, at most one
//! per path (`ARG-31`); if there is one, nothing reaches the tool.
//!
//! Third parties write declarations, and arguments come from a model that may read untrusted text,
//! so the work of one decoding is limited: alternatives that contain each other can make it double
//! with every level of a value. Such a decoding ends with a `limit` problem. Only input built to do
//! so comes near the limit.

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

use crate::json::{self, Json, JsonShape};
use crate::schema::{SchemaId, SchemaPlan};
use decoder::Decoder;
use draft::ValueDraft;
use meter::Meter;
use path::Path;

pub(crate) use draft::weight;
pub use problem::{InvalidArguments, Problem, ProblemCode};

/// Deepest nesting of arguments. The argument object is level 1 (`ARG-30`).
const LEVELS_MAX: usize = 128;

/// Options for decoding arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeOptions {
    /// Accepts only values of the declared type, without conversion (`ARG-23`).
    pub strict: bool,
    /// Maximum size of the JSON text of arguments in bytes (`ARG-30`).
    pub text_bytes_max: usize,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { strict: false, text_bytes_max: 1_048_576 }
    }
}

/// Decoded arguments: a value that is valid by the declared schema.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments {
    value: Map<String, Value>,
    dropped: Vec<String>,
}

impl Arguments {
    /// Returns the arguments by name. Declared properties come in the order of their declaration.
    #[must_use]
    pub fn value(&self) -> &Map<String, Value> {
        &self.value
    }

    /// Returns the paths of undeclared keys that were dropped, sorted (`ARG-24`).
    #[must_use]
    pub fn dropped(&self) -> &[String] {
        &self.dropped
    }

    /// Returns the arguments as compact JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(&self.value).unwrap_or_default()
    }

    /// Returns the arguments by name, like [`value`](Self::value).
    #[must_use]
    pub fn into_map(self) -> Map<String, Value> {
        self.value
    }

    /// Returns the arguments as a JSON object.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(self.value)
    }
}

/// Returns whether a value counts as supplied (`ARG-1`): its key is present (`Some`) and it is not
/// null.
#[must_use]
pub fn is_supplied(value: Option<&Value>) -> bool {
    value.is_some_and(|value| !value.is_null())
}

/// Decodes the JSON of arguments. A blank input is an empty object.
pub(crate) fn decode(
    plan: &SchemaPlan,
    tool: &str,
    text: &[u8],
    options: &DecodeOptions,
) -> Result<Arguments, InvalidArguments> {
    let json = read(tool, text, options)?;
    Decoder::new(plan, tool, options.strict).run(&json)
}

/// Reads the JSON of arguments that are passed on unconverted. A blank input is an empty object.
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

/// Reads the argument object within its limits.
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
        JsonShape::Object(_) => Ok(json),
        JsonShape::Null => Ok(Json::empty_object()),
        _ => Err(problem::malformed(tool)),
    }
}

/// Returns the compact JSON of arguments that are already a value.
pub(crate) fn text_of(tool: &str, value: &Value) -> Result<String, InvalidArguments> {
    // Serialization recurses, so the nesting is checked first.
    if json::value_levels(value) > LEVELS_MAX {
        return Err(problem::too_deep(tool, LEVELS_MAX));
    }
    Ok(value.to_string())
}

fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
}

/// Reason why a default is unusable.
#[derive(Debug)]
pub(crate) enum UnusableDefault {
    /// It does not decode; the string says why.
    Problem(String),
    /// Completing it takes more work than a declaration may cost.
    TooMuchWork,
}

/// Decodes a default by its schema, without tolerance, and completes it (`ARG-7`, `ARG-38`).
/// `texts` has the defaults of all schemas, because those that complete this one may not be decoded
/// yet.
pub(crate) fn complete<'a>(
    plan: &'a SchemaPlan,
    id: SchemaId,
    text: &'a Json<'a>,
    texts: &'a HashMap<SchemaId, &'a Json<'a>>,
    steps_left: &mut u64,
) -> Result<Value, UnusableDefault> {
    let mut decoder = Decoder::for_default(plan, texts, Meter::with_steps(*steps_left));
    let decoded = decoder.default_value(id, ValueDraft::Text(text));
    *steps_left = decoder.steps_left();
    decoded
}

/// Validates a result by plain JSON Schema (`RES-22`).
pub(crate) fn validate(plan: &SchemaPlan, value: &Value) -> Result<(), String> {
    let mut meter = Meter::new();
    // Validation recurses with the value, so the nesting is checked first.
    if json::value_levels(value) > LEVELS_MAX {
        return Err(format!("the value is nested deeper than {LEVELS_MAX} levels"));
    }
    let violations = check::violations(plan, value, &mut meter);
    if meter.is_exhausted() {
        return Err("the value takes too much work to validate".to_owned());
    }
    if violations.is_empty() { Ok(()) } else { Err(violations.join(", ")) }
}

/// Path of the argument object itself, which is empty.
const TOP: Path<'static> = Path::Root;
