//! Errors of function choice.

use crate::BoxError;

/// Error returned by [`ChoiceBehavior::configure`](super::ChoiceBehavior::configure) (`CHOICE-5`).
/// Fixed messages say "kernel", the name that other hosts use for the registry of functions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// Calls should be invoked, and there is no registry.
    #[error("Auto-invocation is not supported when no kernel is provided.")]
    NoRegistry,
    /// Calls should be invoked, and a listed function is not registered.
    #[error("The specified function {name} is not available in the kernel.")]
    NotAvailable {
        /// Name of the function as listed.
        name: String,
    },
    /// A custom behavior has failed (`CHOICE-17`).
    #[error("{message}")]
    Custom {
        /// Message of the program for its operator.
        message: String,
    },
    /// A listed function is neither registered nor supplied.
    #[error("The specified function {name} was not found.")]
    NotFound {
        /// Name of the function as listed.
        name: String,
    },
}

/// Error returned when parsing a behavior or a prompt file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidChoice {
    /// The type is unknown (`CHOICE-1`).
    #[error("Unknown function choice behavior type '{name}'.")]
    UnknownType {
        /// The unknown type.
        name: String,
    },
    /// The type is missing (`CHOICE-1`).
    #[error("Function choice behavior has no type.")]
    NoType,
    /// A part has the wrong form.
    #[error("`{part}` must be {expected}")]
    Form {
        /// Name of the part.
        part: &'static str,
        /// Description of the expected form.
        expected: &'static str,
    },
    /// The input is too long.
    #[error("the text is longer than {bytes_max} bytes")]
    TooLarge {
        /// Maximum length in bytes.
        bytes_max: usize,
    },
    /// The input is not JSON.
    #[error("not JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The input is not YAML, or its aliases expand too far.
    #[error("not YAML: {0}")]
    Yaml(#[source] BoxError),
}
