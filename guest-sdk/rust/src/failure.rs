//! Failures of tools: the errors that a model sees.

use std::any::type_name;
use std::error::Error;
use std::fmt;
#[cfg(any(feature = "http", test))]
use std::io;

use serde::Serialize;
use serde_json::Value;

/// Failure that the tool reports with a message, so that the model can correct itself.
///
/// Every standard error converts to a failure, so `?` works in a function that returns
/// `Result<_, ToolFailure>`. (Therefore this type cannot implement [`std::error::Error`] itself.)
/// The author did not write the text of such an error for a model, and it may contain data that the
/// tool has read. The model sees only the name of its type; the text goes into the record of the
/// call. The errors of this crate are meant for the model and keep their text. To show the text of
/// another error, make a failure of it:
///
/// ```
/// # use cofferdam_sdk::ToolFailure;
/// fn parse(text: &str) -> Result<u32, ToolFailure> {
///     if text.is_empty() {
///         return Err(ToolFailure::new("`text` is empty").suggestion("pass a number").permanent());
///     }
///     text.trim().parse().map_err(|error| ToolFailure::new(format!("`text` is no number: {error}")))
/// }
/// assert_eq!(parse("").unwrap_err().to_string(), "`text` is empty; pass a number");
/// assert_eq!(parse("x").unwrap_err().message(), "`text` is no number: invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ToolFailure(Box<Parts>);

/// Boxed to keep the return types of tool functions small.
#[derive(Debug, Clone, PartialEq)]
struct Parts {
    message: String,
    suggestion: Option<String>,
    transient: Option<bool>,
    value: Option<Value>,
    unexpected: Option<UnexpectedError>,
}

/// Error that was not meant for the model.
#[derive(Debug, Clone)]
pub(crate) struct UnexpectedError {
    /// Name of its type, without the path.
    pub(crate) type_name: String,
    /// Its text and that of its causes.
    pub(crate) text: String,
    /// Reports the error to the host and returns the message of the failure. A pointer, so that a
    /// component without such errors does not import the interface.
    #[cfg(target_arch = "wasm32")]
    pub(crate) report: fn(&str, &str) -> String,
}

// Without `report`, which is the same for all errors.
impl PartialEq for UnexpectedError {
    fn eq(&self, other: &Self) -> bool {
        self.type_name == other.type_name && self.text == other.text
    }
}

impl ToolFailure {
    /// Creates a failure from a message, which should name what was expected and what was found.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            message: message.into(),
            suggestion: None,
            transient: None,
            value: None,
            unexpected: None,
        }))
    }

    /// Adds a suggestion for the model.
    #[must_use]
    pub fn suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion = Some(suggestion.into());
        self
    }

    /// Marks the failure as transient: a retry may help, and the host may retry the call by itself.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.0.transient = Some(true);
        self
    }

    /// Marks the failure as permanent: a retry cannot help.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.0.transient = Some(false);
        self
    }

    /// Sets an error value that the model sees instead of message and suggestion. A value that
    /// cannot be serialized as JSON is dropped, so that the model sees the message.
    #[must_use]
    pub fn value(mut self, value: impl Serialize) -> Self {
        self.0.value = serde_json::to_value(value).ok();
        self
    }

    /// Returns the error that was not meant for the model, if the failure was made of one.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn unexpected(&self) -> Option<&UnexpectedError> {
        self.0.unexpected.as_ref()
    }

    /// Returns the message. That of an error which is not meant for the model is `Type: text` here;
    /// the host replaces the text when the call ends.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the suggestion for the model, if there is one.
    #[must_use]
    pub fn suggested(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Returns whether a retry may help, or `None` if unknown.
    #[must_use]
    pub fn is_transient(&self) -> Option<bool> {
        self.0.transient
    }

    /// Returns the error value that replaces message and suggestion, if there is one.
    #[must_use]
    pub fn error_value(&self) -> Option<&Value> {
        self.0.value.as_ref()
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.message)?;
        match &self.0.suggestion {
            Some(suggestion) => write!(formatter, "; {suggestion}"),
            None => Ok(()),
        }
    }
}

/// Keeps the text of an error of this crate. Of any other error, the model sees only the type.
impl<E: Error + 'static> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        if let Some(failure) = meant(&error) {
            return failure;
        }
        let (type_name, text) = (short_name(type_name::<E>()), text_of(&error));
        let mut failure = Self::new(format!("{type_name}: {text}"));
        failure.0.unexpected = Some(UnexpectedError {
            type_name,
            text,
            #[cfg(target_arch = "wasm32")]
            report: crate::guest::report_unexpected,
        });
        failure
    }
}

/// Returns the failure for an error of this crate.
fn meant(error: &(dyn Error + 'static)) -> Option<ToolFailure> {
    #[cfg(feature = "http")]
    {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let http = error
            .downcast_ref::<crate::http::Error>()
            .or_else(|| inner.and_then(|inner| inner.downcast_ref()));
        if let Some(error) = http {
            return Some(error.failure());
        }
    }
    let is_meant = error.is::<crate::files::Error>()
        || error.is::<crate::client::Error>()
        || error.is::<crate::tool_calls::Error>()
        || error.is::<crate::toolbox::Error>();
    is_meant.then(|| ToolFailure::new(text_of(error)))
}

/// Returns the texts of the error and its causes: `error: cause: cause of the cause`.
fn text_of(error: &(dyn Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        // Many errors already contain the message of their cause.
        if !message.contains(&text) {
            message = message + ": " + &text;
        }
        cause = error.source();
    }
    message
}

/// Returns the name of a type without paths, such as `Vec<String>` for
/// `alloc::vec::Vec<alloc::string::String>`.
fn short_name(path: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let mut name = String::new();
    for part in path.split_inclusive(|c| !is_name(c)) {
        name.push_str(part.rsplit("::").next().unwrap_or_default());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_have_no_paths() {
        assert_eq!(short_name("core::num::error::ParseIntError"), "ParseIntError");
        assert_eq!(short_name("a::B<c::D, (e::F, u8)>"), "B<D, (F, u8)>");
        assert_eq!(short_name("u8"), "u8");
    }

    #[test]
    fn an_error_of_another_crate_is_unexpected() {
        let failure = ToolFailure::from("x".parse::<u8>().unwrap_err());
        assert_eq!(failure.message(), "ParseIntError: invalid digit found in string");
        let failure = ToolFailure::from(io::Error::other("the cause"));
        assert_eq!(failure.message(), "Error: the cause");
    }

    #[test]
    fn an_error_of_this_crate_keeps_its_text() {
        let failure = ToolFailure::from(crate::files::Error::Denied("only new files".to_owned()));
        assert_eq!(failure.message(), "only new files");
        assert_eq!(failure.0.unexpected, None);
    }
}
