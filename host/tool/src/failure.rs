//! Failures that a tool reports itself.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Message for failures without one (`RES-3`).
const NO_MESSAGE: &str = "The tool reported a failure without a message.";

/// A failure reported by a tool (`RES-2` to `RES-4`): the tool finished and reports that it could
/// not do what was asked. It is a value, not a fault: the instance remains usable and the model
/// sees the message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolFailure {
    /// Description of the failure, for the model.
    pub message: String,
    /// Suggestion for the model.
    pub suggestion: Option<String>,
    /// True if a retry may help; `None` if the tool does not know. Never shown to the model.
    pub transient: Option<bool>,
    /// Custom error value, shown instead of message and suggestion.
    pub value: Option<Value>,
    /// True if the model sees only the message, as a string without the envelope around it. For
    /// host tools with fixed messages, such as those of skills; guests cannot set it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_bare: bool,
}

impl ToolFailure {
    /// Returns a failure with only a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// Returns a failure of which the model sees only the message. It still counts as an error.
    pub fn bare(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_bare: true, ..Self::default() }
    }

    /// Returns the error value that the model sees under `error` (`RES-2`, `RES-3`).
    #[must_use]
    pub fn error_value(&self) -> Value {
        if let Some(value) = &self.value {
            return value.clone();
        }
        let message = if self.message.trim().is_empty() { NO_MESSAGE } else { &self.message };
        let mut error = Map::new();
        error.insert("message".to_owned(), message.into());
        if let Some(suggestion) = &self.suggestion {
            error.insert("suggestion".to_owned(), suggestion.as_str().into());
        }
        Value::Object(error)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_suggestion_is_left_out_when_there_is_none() {
        assert_eq!(
            ToolFailure::new("no such order").error_value(),
            json!({"message": "no such order"})
        );
        let failure = ToolFailure {
            suggestion: Some("list orders".into()),
            ..ToolFailure::new("no such order")
        };
        assert_eq!(
            failure.error_value(),
            json!({"message": "no such order", "suggestion": "list orders"})
        );
    }

    #[test]
    fn a_blank_message_is_replaced() {
        assert_eq!(ToolFailure::new(" \n").error_value(), json!({"message": NO_MESSAGE}));
    }

    #[test]
    fn a_value_of_the_tools_own_is_shown_unchanged() {
        let failure = ToolFailure { value: Some(json!([1, "x"])), ..ToolFailure::new("ignored") };
        assert_eq!(failure.error_value(), json!([1, "x"]));
    }
}
