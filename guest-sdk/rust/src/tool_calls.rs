//! Calls of granted tools that run side by side.
//!
//! [`start`] starts a call without waiting for its end, and [`wait_any`] waits for started calls.
//! At most 16 calls run at once and further ones wait; one call of a tool can start 256. Otherwise,
//! a call is like one of [`toolbox`](crate::toolbox).
//!
//! A component that does not use this module does not import `cofferdam:plugin/tool-calls`. In a
//! unit test the tools are those of a [`testing::Host`](crate::testing::Host); there, each call
//! ends before `start` returns.
//!
//! ```
//! use cofferdam_sdk::{json, tool_calls};
//!
//! fn count_words(texts: &[&str]) -> Result<i64, cofferdam_sdk::ToolFailure> {
//!     let calls = texts.iter().map(|text| ("word_count", json!({"text": text})));
//!     let mut words = 0;
//!     for counts in tool_calls::call_all(calls) {
//!         words += counts?["words"].as_i64().unwrap_or(0);
//!     }
//!     Ok(words)
//! }
//! ```

use std::fmt;

use serde_json::Value;

use crate::{Content, content};

/// Identifies a call that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(u32);

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EndedCall {
    /// The call.
    pub call: CallId,
    /// Items of the result, or the error.
    pub outcome: Result<Vec<Content>, Error>,
}

/// Error of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Error {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Name of the error type if the tool ended with an error, for example `Trap.Unreachable`.
    pub error_type: Option<String>,
    /// Description for the model.
    pub message: String,
    /// Advice for the model.
    pub suggestion: Option<String>,
    /// Value of a failure that the tool reported.
    pub value: Option<Box<Value>>,
    /// Whether the same call may succeed later.
    pub is_transient: bool,
}

/// Kind of error of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No tool of this name is granted.
    UnknownTool,
    /// The arguments do not match the tool's schema. The message names every problem.
    InvalidArguments,
    /// The tool reported a failure.
    Failed,
    /// The tool ended with an error: a trap or a limit.
    Ended,
    /// The call was denied: by a policy, or by the user who was asked to approve it.
    Denied,
    /// Calls are nested too deeply.
    TooDeep,
    /// The plugin has started too many calls.
    Limit,
    /// An item of the result is declared as JSON but invalid.
    NotJson,
}

impl EndedCall {
    /// Returns the value of the result as a model would see it: null, a string or a JSON value; for
    /// several items, an array.
    ///
    /// # Errors
    /// The error of the call, or [`ErrorKind::NotJson`].
    pub fn value(self) -> Result<Value, Error> {
        content::value(self.outcome?).map_err(|_| {
            Error::new(
                ErrorKind::NotJson,
                "the tool that was called gave a result that is not JSON",
            )
        })
    }
}

impl Error {
    fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            error_type: None,
            message: message.into(),
            suggestion: None,
            value: None,
            is_transient: false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

/// `?` turns the error into a [`ToolFailure`](crate::ToolFailure) with its text.
impl std::error::Error for Error {}

/// Starts a call of a tool. Every error, even that the tool does not exist, is the outcome of the
/// call.
pub fn start(name: &str, arguments: &Value) -> CallId {
    CallId(host::start(name, &arguments.to_string()))
}

/// Waits until a started call has ended, and returns all calls that have ended since the last time,
/// in the order of their ends. Returns an empty list if no call is running.
#[must_use]
pub fn wait_any() -> Vec<EndedCall> {
    host::wait_any()
}

/// Makes several calls side by side and returns their values in the order of the calls. Discards
/// the results of other calls that are running.
pub fn call_all<'n>(
    calls: impl IntoIterator<Item = (&'n str, Value)>,
) -> Vec<Result<Value, Error>> {
    let ids: Vec<_> = calls.into_iter().map(|(name, arguments)| start(name, &arguments)).collect();
    let mut values: Vec<_> = ids.iter().map(|_| None).collect();
    while values.iter().any(Option::is_none) {
        let ended = wait_any();
        if ended.is_empty() {
            break;
        }
        for call in ended {
            let index = ids.iter().position(|id| *id == call.call);
            if let Some(value) = index.and_then(|index| values.get_mut(index)) {
                *value = Some(call.value());
            }
        }
    }
    // Cannot happen: the host returns every call.
    let missing = || Err(Error::new(ErrorKind::Ended, "the call did not end"));
    values.into_iter().map(|value| value.unwrap_or_else(missing)).collect()
}

#[cfg(target_arch = "wasm32")]
mod host {
    use super::{CallId, EndedCall, Error, ErrorKind};
    use crate::guest::bindings::cofferdam::plugin::tool_calls;

    pub(super) fn start(name: &str, arguments_json: &str) -> u32 {
        tool_calls::start(name, arguments_json)
    }

    pub(super) fn wait_any() -> Vec<EndedCall> {
        tool_calls::wait_any().into_iter().map(ended).collect()
    }

    fn ended(ended: tool_calls::EndedCall) -> EndedCall {
        let contents = |contents: Vec<_>| contents.into_iter().map(Into::into).collect();
        EndedCall {
            call: CallId(ended.call),
            outcome: ended.outcome.map(contents).map_err(Into::into),
        }
    }

    impl From<tool_calls::Error> for Error {
        fn from(error: tool_calls::Error) -> Self {
            Self {
                kind: error.kind.into(),
                error_type: error.error_type,
                message: error.message,
                suggestion: error.suggestion,
                value: error.value.and_then(|value| serde_json::from_str(&value).ok()),
                is_transient: error.transient,
            }
        }
    }

    impl From<tool_calls::ErrorKind> for ErrorKind {
        fn from(kind: tool_calls::ErrorKind) -> Self {
            match kind {
                tool_calls::ErrorKind::UnknownTool => Self::UnknownTool,
                tool_calls::ErrorKind::InvalidArguments => Self::InvalidArguments,
                tool_calls::ErrorKind::Failed => Self::Failed,
                tool_calls::ErrorKind::Ended => Self::Ended,
                tool_calls::ErrorKind::Denied => Self::Denied,
                tool_calls::ErrorKind::TooDeep => Self::TooDeep,
                tool_calls::ErrorKind::Limit => Self::Limit,
            }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    use super::{CallId, EndedCall, Error, ErrorKind};
    use crate::testing::host;
    use crate::toolbox;

    pub(super) fn start(name: &str, arguments_json: &str) -> u32 {
        let outcome = serde_json::from_str(arguments_json)
            .map_err(|_| toolbox::Error::NotJson)
            .and_then(|arguments| host::call_tool(name, &arguments))
            .map_err(|error| error_of(name, error));
        host::add_ended(outcome)
    }

    pub(super) fn wait_any() -> Vec<EndedCall> {
        let ended = |(call, outcome)| EndedCall { call: CallId(call), outcome };
        host::take_ended().into_iter().map(ended).collect()
    }

    fn error_of(name: &str, error: toolbox::Error) -> Error {
        let message = error.to_string();
        match error {
            toolbox::Error::UnknownTool => {
                Error::new(ErrorKind::UnknownTool, format!("there is no tool called '{name}'"))
            }
            toolbox::Error::InvalidArguments(_) => Error::new(ErrorKind::InvalidArguments, message),
            toolbox::Error::Failed(failure) => Error {
                suggestion: failure.suggested().map(str::to_owned),
                value: failure.error_value().cloned().map(Box::new),
                is_transient: failure.is_transient().unwrap_or(false),
                ..Error::new(ErrorKind::Failed, failure.message())
            },
            toolbox::Error::Ended(error_type) => {
                Error { error_type: Some(error_type), ..Error::new(ErrorKind::Ended, message) }
            }
            toolbox::Error::TooDeep => Error::new(ErrorKind::TooDeep, message),
            toolbox::Error::NotJson => Error::new(ErrorKind::NotJson, message),
        }
    }
}
