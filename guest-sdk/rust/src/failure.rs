//! Failures of tools: the errors that a model sees.

use std::error::Error;
use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// Failure that the tool reports with a message, so that the model can correct itself.
///
/// Every standard error converts to a failure, so `?` works in a function that returns
/// `Result<_, ToolFailure>`. (Therefore this type cannot implement [`std::error::Error`] itself.)
///
/// ```
/// # use cofferdam_sdk::ToolFailure;
/// fn parse(text: &str) -> Result<u32, ToolFailure> {
///     if text.is_empty() {
///         return Err(ToolFailure::new("`text` is empty").suggestion("pass a number").permanent());
///     }
///     Ok(text.parse()?)
/// }
/// assert_eq!(parse("").unwrap_err().to_string(), "`text` is empty; pass a number");
/// assert_eq!(parse("x").unwrap_err().message(), "invalid digit found in string");
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

    /// Returns the message.
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

/// Makes a message of the error and its causes: `error: cause: cause of the cause`.
impl<E: Error> From<E> for ToolFailure {
    fn from(error: E) -> Self {
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
        Self::new(message)
    }
}
