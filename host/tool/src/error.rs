//! Errors of a call that the tool did not report itself: traps, limits, denials.

mod catalog;

use serde_json::{Value, json};

pub use catalog::ErrorType;

/// How a call ended when neither a value nor a reported failure came back (`RES-5`).
///
/// The public part is the type name alone. `detail` and `backtrace` are for the call record on the
/// host side: they may hold host paths, guest output and addresses, and must never be shown to a
/// model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    kind: Kind,
    transient: Option<bool>,
    /// An error value of the host's own, shown instead of the standard text (`RES-6`).
    value: Option<Box<Value>>,
    /// What exactly happened, for the person who runs the host.
    pub detail: Option<String>,
    /// The guest's call stack, when the engine could take one.
    pub backtrace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Catalog(ErrorType),
    Host(String),
}

impl ToolError {
    /// An error out of the table of types.
    #[must_use]
    pub fn new(error_type: ErrorType) -> Self {
        Self {
            kind: Kind::Catalog(error_type),
            transient: Some(error_type.is_transient()),
            value: None,
            detail: None,
            backtrace: None,
        }
    }

    /// An error raised by a host tool, shown under the name of its own type; whether it is
    /// transient is not known (`RES-9`).
    pub fn host(type_name: impl Into<String>) -> Self {
        Self {
            kind: Kind::Host(type_name.into()),
            transient: None,
            value: None,
            detail: None,
            backtrace: None,
        }
    }

    /// Adds what the host's log should say.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Shows what `format` makes of the error instead of the standard text (`RES-6`). For host code
    /// that builds the error itself and knows what a model may be told; there is no such hook for
    /// all errors of a host.
    #[must_use]
    pub fn with_error_value(mut self, format: impl FnOnce(&Self) -> Value) -> Self {
        self.value = Some(Box::new(format(&self)));
        self
    }

    /// The error with what `clean` makes of the host's own error value.
    pub(crate) fn with_cleaned_value(mut self, clean: impl FnOnce(Value) -> Value) -> Self {
        self.value = self.value.map(|value| Box::new(clean(*value)));
        self
    }

    /// The stable name of the type: the only thing about the error that leaves the host.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match &self.kind {
            Kind::Catalog(error_type) => error_type.name(),
            Kind::Host(name) => name,
        }
    }

    /// The entry of the table, if the error is one of the table's.
    #[must_use]
    pub fn error_type(&self) -> Option<ErrorType> {
        match self.kind {
            Kind::Catalog(error_type) => Some(error_type),
            Kind::Host(_) => None,
        }
    }

    /// Whether trying again may help (`RES-9`).
    #[must_use]
    pub fn transient(&self) -> Option<bool> {
        self.transient
    }

    /// Whether the host has put an error value of its own in the place of the standard text
    /// (`RES-6`).
    #[must_use]
    pub fn has_own_value(&self) -> bool {
        self.value.is_some()
    }

    /// The error value that the model is shown under `error`: the standard text with the type name
    /// (`RES-5`), unless the host has put another in its place.
    #[must_use]
    pub fn error_value(&self) -> Value {
        if let Some(value) = &self.value {
            return Value::clone(value);
        }
        json!({"message": format!("An unexpected error occurred ({}). Please try again.", self.type_name())})
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.type_name()),
            None => f.write_str(self.type_name()),
        }
    }
}

impl std::error::Error for ToolError {}
