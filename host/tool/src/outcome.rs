//! How a call ended, and what of it the model sees.

use serde_json::{Value, json};

use crate::{CallContext, CallRecord, Output, ToolError, ToolFailure};

/// How a call ended (`RES-13`). It stays typed until the edge, so that a friendly text never hides the truth.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The tool returned a value.
    Ok(Output),
    /// The tool reported a failure.
    Failure(ToolFailure),
    /// A trap, a limit, a denial, an invalid result.
    Error(ToolError),
    /// The caller gave up. Nothing of it is shown to a model (`RES-12`).
    Cancelled,
}

/// What the model sees of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub struct Shown {
    /// The output, or the error envelope `{"error": …}`.
    pub output: Output,
    /// Whether the result counts as an error for a loop and for MCP (`RES-15`).
    pub is_error: bool,
}

impl Shown {
    /// The text form of the result (`RES-16`, `RES-17`).
    #[must_use]
    pub fn text(&self) -> String {
        self.output.text()
    }
}

/// An outcome with the record of its call.
#[derive(Debug, Clone)]
pub struct Completion {
    /// How the call ended.
    pub outcome: Outcome,
    /// What the call left behind, for the host alone.
    pub record: CallRecord,
}

impl Completion {
    /// A call that ended in its one attempt and left nothing behind but that.
    #[must_use]
    pub fn ended(outcome: Outcome, context: &CallContext) -> Self {
        let mut record = CallRecord::begun(context);
        record.set_outcome(&outcome);
        Self { outcome, record }
    }
}

impl Outcome {
    /// What the model is shown; `None` when the call was cancelled (`RES-12`).
    #[must_use]
    pub fn shown(&self) -> Option<Shown> {
        match self {
            Self::Ok(output) => Some(Shown { output: output.clone(), is_error: false }),
            Self::Failure(failure) if failure.is_bare => {
                Some(Shown { output: Output::Value(failure.message.clone().into()), is_error: true })
            }
            Self::Failure(failure) => Some(envelope(failure.error_value())),
            Self::Error(error) => Some(envelope(error.error_value())),
            Self::Cancelled => None,
        }
    }

    /// The same of an outcome that nobody needs any more: a value is moved, however large it is.
    #[must_use]
    pub fn into_shown(self) -> Option<Shown> {
        match self {
            Self::Ok(output) => Some(Shown { output, is_error: false }),
            other => other.shown(),
        }
    }

    /// Whether the instance that ended like this must never be used again (`RES-19`). Every instance is discarded after
    /// one call unless a person asked for another policy; this says when that policy has no say.
    #[must_use]
    pub fn discards_instance(&self) -> bool {
        match self {
            Self::Ok(_) | Self::Failure(_) => false,
            Self::Error(_) | Self::Cancelled => true,
        }
    }

    /// The word for the outcome in a call record: `ok`, `failure`, `error` or `cancelled` (`RES-13`).
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ok(_) => "ok",
            Self::Failure(_) => "failure",
            Self::Error(_) => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the outcome is marked as worth another try (`RES-4`, `RES-9`); `None` if that is not known.
    #[must_use]
    pub fn transient(&self) -> Option<bool> {
        match self {
            Self::Failure(failure) => failure.transient,
            Self::Error(error) => error.transient(),
            Self::Ok(_) | Self::Cancelled => Some(false),
        }
    }
}

/// How a host turns outcomes into results for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversion {
    /// Whether an error becomes a result (`RES-5`). Switched off, which is meant for tests, it is raised to the caller as
    /// what it is (`RES-21`). A failure that the tool reported is a value of the tool and shown either way.
    pub convert_failures: bool,
}

/// An outcome that is raised to the caller instead of being shown to a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Raised {
    /// The caller gave up; this is never a result (`RES-12`).
    #[error("cancelled")]
    Cancelled,
    /// The typed error, for a host that does not convert.
    #[error(transparent)]
    Error(#[from] ToolError),
}

impl Default for Conversion {
    fn default() -> Self {
        Self { convert_failures: true }
    }
}

impl Conversion {
    /// What the model is shown of `outcome`.
    ///
    /// # Errors
    /// [`Raised::Cancelled`] for a call that was given up, and [`Raised::Error`] when converting is switched off.
    pub fn apply(&self, outcome: &Outcome) -> Result<Shown, Raised> {
        match outcome {
            Outcome::Error(error) if !self.convert_failures => Err(Raised::Error(error.clone())),
            other => other.shown().ok_or(Raised::Cancelled),
        }
    }
}

fn envelope(error: Value) -> Shown {
    Shown { output: Output::Value(json!({ "error": error })), is_error: true }
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
        let shown = Outcome::Failure(ToolFailure::bare("Error: no.")).shown().expect("a failure is shown");
        assert_eq!((shown.text().as_str(), shown.is_error), ("Error: no.", true));
        assert_eq!(Outcome::Failure(ToolFailure::bare("x")).word(), "failure");
    }

    #[test]
    fn a_formatter_replaces_the_standard_text_of_one_error() {
        let error = ToolError::host("Upstream").with_error_value(|error| json!({"kind": error.type_name()}));
        let shown = Outcome::Error(error).shown().expect("an error is shown");
        assert_eq!(shown.text(), r#"{"error":{"kind":"Upstream"}}"#);
    }

    #[test]
    fn a_host_that_does_not_convert_gets_the_error_itself() {
        let host = Conversion { convert_failures: false };
        let error = ToolError::new(ErrorType::Timeout).with_detail("late");
        assert_eq!(host.apply(&Outcome::Error(error.clone())), Err(Raised::Error(error)));
        let failure = Outcome::Failure(ToolFailure::new("no"));
        assert_eq!(host.apply(&failure), Ok(failure.shown().unwrap()));
        assert_eq!(Conversion::default().apply(&Outcome::Cancelled), Err(Raised::Cancelled));
    }

    #[test]
    fn cancellation_is_never_shown() {
        assert_eq!(Outcome::Cancelled.shown(), None);
    }
}
