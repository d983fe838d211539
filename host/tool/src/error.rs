//! Errors of a call that the tool did not report itself, such as traps, limits and denials.

mod catalog;

use serde_json::{Value, json};

pub use catalog::ErrorType;

/// Error of a call that returned neither a value nor a reported failure (`RES-5`).
///
/// Only the type name is public. `detail` and `backtrace` are for the call record on the host: they
/// may contain host paths, guest output and addresses, and must never be shown to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    kind: Kind,
    transient: Option<bool>,
    /// Error value that the host shows instead of the standard message (`RES-6`).
    value: Option<Box<Value>>,
    /// Exact cause, for the operator.
    pub detail: Option<String>,
    /// Call stack of the guest, if the engine captured one.
    pub backtrace: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Catalog(ErrorType),
    Host(String),
}

impl ToolError {
    /// Returns an error of a type from the catalog.
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

    /// Returns an error raised by a host tool, shown under the name of its own type. Whether it is
    /// transient is unknown (`RES-9`).
    pub fn host(type_name: impl Into<String>) -> Self {
        Self {
            kind: Kind::Host(type_name.into()),
            transient: None,
            value: None,
            detail: None,
            backtrace: None,
        }
    }

    /// Adds details for the host's log.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Marks the error as one after which a retry does harm.
    #[must_use]
    pub fn without_retry(mut self) -> Self {
        self.transient = Some(false);
        self
    }

    /// Shows the value that `format` returns instead of the standard message (`RES-6`). For host
    /// code that builds the error itself and knows what a model may see; there is deliberately no
    /// hook for all errors of a host.
    #[must_use]
    pub fn with_error_value(mut self, format: impl FnOnce(&Self) -> Value) -> Self {
        self.value = Some(Box::new(format(&self)));
        self
    }

    /// Shows the model the detail of a host tool's error next to its type (`RES-6`). Errors of the
    /// catalog never show theirs, which may be output of a guest.
    #[must_use]
    pub(crate) fn with_shown_detail(self) -> Self {
        if self.error_type().is_some() || self.has_own_value() {
            return self;
        }
        let Some(detail) = &self.detail else { return self };
        let message = format!("An unexpected error occurred ({}): {detail}", self.type_name());
        self.with_error_value(|_| json!({ "message": message }))
    }

    /// Returns the text of the loop about an error of host code that has no error value of its own
    /// (`LOOP-14`). `message` is that of the error if the loop shows it.
    #[must_use]
    pub fn in_loop(message: Option<&str>) -> String {
        match message {
            Some(message) => format!("Error: Function failed. Exception: {message}"),
            None => "Error: Function failed.".to_owned(),
        }
    }

    fn message(&self) -> String {
        format!("An unexpected error occurred ({}). Please try again.", self.type_name())
    }

    /// Replaces the host's own error value, if there is one, by the result of `clean`.
    pub(crate) fn with_cleaned_value(mut self, clean: impl FnOnce(Value) -> Value) -> Self {
        self.value = self.value.map(|value| Box::new(clean(*value)));
        self
    }

    /// Returns the stable name of the type, the only part of the error that leaves the host.
    #[must_use]
    pub fn type_name(&self) -> &str {
        match &self.kind {
            Kind::Catalog(error_type) => error_type.name(),
            Kind::Host(name) => name,
        }
    }

    /// Returns the type from the catalog, or `None` for an error of a host tool.
    #[must_use]
    pub fn error_type(&self) -> Option<ErrorType> {
        match self.kind {
            Kind::Catalog(error_type) => Some(error_type),
            Kind::Host(_) => None,
        }
    }

    /// Returns whether a retry may succeed, if known (`RES-9`).
    #[must_use]
    pub fn transient(&self) -> Option<bool> {
        self.transient
    }

    /// Returns whether the host has replaced the standard message with its own error value
    /// (`RES-6`).
    #[must_use]
    pub fn has_own_value(&self) -> bool {
        self.value.is_some()
    }

    /// Returns the error value that the model sees under `error`: the standard message with the
    /// type name (`RES-5`), unless the host has replaced it.
    #[must_use]
    pub fn error_value(&self) -> Value {
        if let Some(value) = &self.value {
            return Value::clone(value);
        }
        json!({"message": self.message()})
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
