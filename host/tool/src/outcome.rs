//! Outcomes of calls, and the part of them that the model sees.

use serde_json::{Value, json};

use crate::{CallContext, CallRecord, Output, ToolError, ToolFailure};

/// Outcome of a call (`RES-13`). It stays typed until the edge, so that a friendly message never
/// hides the cause.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The tool returned a value.
    Ok(Output),
    /// The tool reported a failure.
    Failure(ToolFailure),
    /// A trap, a limit, a denial or an invalid result ended the call.
    Error(ToolError),
    /// The caller gave up. A model sees nothing of the call (`RES-12`).
    Cancelled,
}

/// The part of an outcome that the model sees.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelView {
    /// Output, or the error envelope `{"error": …}`.
    pub output: Output,
    /// True if the result counts as an error for a loop and for MCP (`RES-15`).
    pub is_error: bool,
}

impl ModelView {
    /// Returns the result as text (`RES-16`, `RES-17`).
    #[must_use]
    pub fn text(&self) -> String {
        self.output.text()
    }
}

/// An outcome with the record of its call.
#[derive(Debug, Clone)]
pub struct Completion {
    /// Outcome of the call.
    pub outcome: Outcome,
    /// Record of the call, for the host only. Boxed because it is large and each layer of a call
    /// moves it.
    pub record: Box<CallRecord>,
}

impl Completion {
    /// Returns an outcome with the record of its call.
    #[must_use]
    pub fn new(outcome: Outcome, record: CallRecord) -> Self {
        Self { outcome, record: Box::new(record) }
    }

    /// Returns the completion of a call with a single attempt and an otherwise empty record.
    #[must_use]
    pub fn ended(outcome: Outcome, context: &CallContext) -> Self {
        let mut record = CallRecord::begun(context);
        record.set_outcome(&outcome);
        Self::new(outcome, record)
    }
}

impl Outcome {
    /// Returns the part that the model sees, or `None` if the call was canceled (`RES-12`).
    #[must_use]
    pub fn shown(&self) -> Option<ModelView> {
        match self {
            Self::Ok(output) => Some(ModelView { output: output.clone(), is_error: false }),
            Self::Failure(failure) if failure.is_bare => Some(ModelView {
                output: Output::Value(failure.message.clone().into()),
                is_error: true,
            }),
            Self::Failure(failure) => Some(envelope(failure.error_value())),
            Self::Error(error) => Some(envelope(error.error_value())),
            Self::Cancelled => None,
        }
    }

    /// Like [`shown`](Self::shown), but consumes the outcome, so that a large value is moved
    /// instead of cloned.
    #[must_use]
    pub fn into_shown(self) -> Option<ModelView> {
        match self {
            Self::Ok(output) => Some(ModelView { output, is_error: false }),
            other => other.shown(),
        }
    }

    /// Returns the outcome's name in a call record: `ok`, `failure`, `error` or `cancelled`
    /// (`RES-13`).
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::Failure(_) => "failure",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether a retry may succeed (`RES-4`, `RES-9`), or `None` if that is unknown.
    #[must_use]
    pub fn transient(&self) -> Option<bool> {
        match self {
            Self::Failure(failure) => failure.transient,
            Self::Error(error) => error.transient(),
            Self::Ok(_) | Self::Cancelled => Some(false),
        }
    }
}

fn envelope(error: Value) -> ModelView {
    ModelView { output: Output::Value(json!({ "error": error })), is_error: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorType;

    #[test]
    fn an_error_shows_its_type_and_nothing_else() {
        let error = ToolError::new(ErrorType::TrapUnreachable).with_detail("secret at /host/path");
        let shown = Outcome::Error(error).shown().expect("an error is shown");
        assert!(shown.is_error);
        assert_eq!(
            shown.text(),
            r#"{"error":{"message":"An unexpected error occurred (Trap.Unreachable). Please try again."}}"#
        );
    }

    #[test]
    fn a_bare_failure_is_its_message_and_counts_as_an_error() {
        let shown =
            Outcome::Failure(ToolFailure::bare("Error: no.")).shown().expect("a failure is shown");
        assert_eq!((shown.text().as_str(), shown.is_error), ("Error: no.", true));
        assert_eq!(Outcome::Failure(ToolFailure::bare("x")).word(), "failure");
    }

    #[test]
    fn a_formatter_replaces_the_standard_text_of_one_error() {
        let error = ToolError::host("Upstream")
            .with_error_value(|error| json!({"kind": error.type_name()}));
        let shown = Outcome::Error(error).shown().expect("an error is shown");
        assert_eq!(shown.text(), r#"{"error":{"kind":"Upstream"}}"#);
    }

    #[test]
    fn cancellation_is_never_shown() {
        assert_eq!(Outcome::Cancelled.shown(), None);
    }
}
