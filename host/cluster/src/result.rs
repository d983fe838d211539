//! Results of calls on the bus: the end of a call with the part of its record that leaves the
//! worker.
//!
//! Details for the operator (messages of the engine, call stacks, output of the guest, failures of
//! stores) stay in the records of the worker. A result that is larger than one message travels in
//! parts. Values are texts of their own in it, so that they may be nested as deeply as those of
//! local calls.

mod content;
mod parts;
mod record;

use cofferdam_tool::{
    CallContext, Completion, ErrorType, Outcome, Output, RefusedCall, ToolError, ToolFailure,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use self::content::ContentEntry;
pub(crate) use self::parts::{ResultParts, split};
use self::record::RecordEntry;
use crate::DispatchError;

/// Error type of a result that a worker cannot send.
const RESULT_TOO_LARGE: &str = "ResultTooLarge";
/// Text of this error for a model.
const TOO_LARGE_SHOWN: &str =
    "The tool ran, and its result is too large to be sent. Ask for less; do not repeat the call.";

/// End of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResultEntry {
    end: EndEntry,
    record: RecordEntry,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
enum EndEntry {
    Value { value: Box<RawValue> },
    Contents { contents: Vec<ContentEntry> },
    Failure { failure: FailureEntry },
    Error { type_name: String, value: Option<Box<RawValue>> },
    Cancelled {},
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FailureEntry {
    message: String,
    suggestion: Option<String>,
    transient: Option<bool>,
    value: Option<Box<RawValue>>,
    is_bare: bool,
}

/// Returns the bytes of a result.
pub(crate) fn encode(ended: Result<Completion, RefusedCall>) -> Vec<u8> {
    let (end, record) = match ended {
        Ok(Completion { outcome, record }) => (end_entry(outcome), RecordEntry::new(&record)),
        Err(refused) => {
            let failure = Outcome::Failure(ToolFailure::new(refused.to_string()));
            (end_entry(failure), RecordEntry::default())
        }
    };
    let written = serde_json::to_vec(&ResultEntry { end, record }).unwrap_or_default();
    if written.len() <= parts::RESULT_BYTES_MAX { written } else { too_large() }
}

/// Returns the bytes of the result of a call whose task has panicked.
pub(crate) fn panicked() -> Vec<u8> {
    ended(EndEntry::Error { type_name: "Panic".to_owned(), value: None })
}

/// Returns the bytes of the end of a call that was canceled.
pub(crate) fn canceled() -> Vec<u8> {
    ended(EndEntry::Cancelled {})
}

/// Returns the bytes of the end of a call that the gateway could not bring to its result.
pub(crate) fn failed(error: DispatchError) -> Vec<u8> {
    ended(end_entry(Outcome::Error(error.into_tool_error())))
}

fn too_large() -> Vec<u8> {
    let value = json!({"message": TOO_LARGE_SHOWN, "type": RESULT_TOO_LARGE});
    ended(EndEntry::Error { type_name: RESULT_TOO_LARGE.to_owned(), value: Some(to_raw(&value)) })
}

fn ended(end: EndEntry) -> Vec<u8> {
    let result = ResultEntry { end, record: RecordEntry::default() };
    serde_json::to_vec(&result).unwrap_or_default()
}

/// Reads a result.
///
/// # Errors
/// What is wrong with the bytes, for the operator.
pub(crate) fn decode(bytes: &[u8], context: &CallContext) -> Result<Completion, String> {
    let read = serde_json::from_slice::<ResultEntry>(bytes).map_err(|error| error.to_string())?;
    let outcome = match read.end {
        EndEntry::Value { value } => Outcome::Ok(Output::Value(read_raw(&value)?)),
        EndEntry::Contents { contents } => {
            let contents = contents.into_iter().map(ContentEntry::into_content);
            Outcome::Ok(Output::Contents(contents.collect::<Result<_, _>>()?))
        }
        EndEntry::Failure { failure } => Outcome::Failure(failure.into_failure()?),
        EndEntry::Error { type_name, value } => {
            let value = value.as_deref().map(read_raw).transpose()?;
            Outcome::Error(tool_error(&type_name, value))
        }
        EndEntry::Cancelled {} => Outcome::Cancelled,
    };
    let mut completion = Completion::ended(outcome, context);
    read.record.apply_to(&mut completion.record);
    Ok(completion)
}

/// Returns whether a result stands for all further calls with the same idempotency key. A call that
/// was canceled, or that can succeed when it is made again, may run again. One whose result cannot
/// be read has run.
pub(crate) fn is_final(bytes: &[u8]) -> bool {
    decode(bytes, &CallContext::default()).map_or(true, |Completion { outcome, .. }| {
        outcome != Outcome::Cancelled && outcome.transient() != Some(true)
    })
}

/// Returns the text of a value.
fn to_raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Reads the text of a value.
///
/// # Errors
/// If it is nested too deeply.
fn read_raw(text: &RawValue) -> Result<Value, String> {
    serde_json::from_str(text.get()).map_err(|error| error.to_string())
}

impl FailureEntry {
    fn new(failure: ToolFailure) -> Self {
        let ToolFailure { message, suggestion, transient, value, is_bare } = failure;
        Self { message, suggestion, transient, value: value.as_ref().map(to_raw), is_bare }
    }

    fn into_failure(self) -> Result<ToolFailure, String> {
        let Self { message, suggestion, transient, value, is_bare } = self;
        let value = value.as_deref().map(read_raw).transpose()?;
        Ok(ToolFailure { message, suggestion, transient, value, is_bare })
    }
}

fn end_entry(outcome: Outcome) -> EndEntry {
    match outcome {
        Outcome::Ok(Output::Value(value)) => EndEntry::Value { value: to_raw(&value) },
        Outcome::Ok(Output::Contents(contents)) => {
            EndEntry::Contents { contents: contents.into_iter().map(ContentEntry::new).collect() }
        }
        Outcome::Failure(failure) => EndEntry::Failure { failure: FailureEntry::new(failure) },
        Outcome::Error(error) => EndEntry::Error {
            type_name: error.type_name().to_owned(),
            value: error.has_own_value().then(|| to_raw(&error.error_value())),
        },
        Outcome::Cancelled => EndEntry::Cancelled {},
        // The enum may grow; what a gateway does not know is an error without details.
        _ => EndEntry::Error { type_name: "Unknown".to_owned(), value: None },
    }
}

fn tool_error(type_name: &str, value: Option<Value>) -> ToolError {
    let error = match ErrorType::named(type_name) {
        Some(known) => ToolError::new(known),
        None => ToolError::host(type_name),
    };
    match value {
        Some(value) => error.with_error_value(|_| value),
        None => error,
    }
}

#[cfg(test)]
mod tests;
