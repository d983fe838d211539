//! Why there is no choice.

use crate::BoxError;

/// Why a behaviour gives no configuration (`CHOICE-5`). "Kernel" is what other hosts call the
/// registry of functions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChoiceError {
    /// Calls are to be made, and there is no registry to make them with.
    #[error("Auto-invocation is not supported when no kernel is provided.")]
    NoRegistry,
    /// Calls are to be made, and a listed function is not registered.
    #[error("The specified function {name} is not available in the kernel.")]
    NotAvailable {
        /// The function as it is listed.
        name: String,
    },
    /// A listed function is neither registered nor supplied.
    #[error("The specified function {name} was not found.")]
    NotFound {
        /// The function as it is listed.
        name: String,
    },
}

/// Why a text is no behaviour, or no prompt file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidChoice {
    /// There is no such behaviour (`CHOICE-1`).
    #[error("Unknown function choice behavior type '{name}'.")]
    UnknownType {
        /// What stands in the place of the type.
        name: String,
    },
    /// There is no type (`CHOICE-1`).
    #[error("Function choice behavior has no type.")]
    NoType,
    /// A part has another form than it should.
    #[error("`{part}` must be {expected}")]
    Form {
        /// The part.
        part: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// The text is longer than it may be.
    #[error("the text is longer than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The text is not JSON.
    #[error("not JSON: {0}")]
    Json(#[source] serde_json::Error),
    /// The text is not YAML, or unfolds to more than it may.
    #[error("not YAML: {0}")]
    Yaml(#[source] BoxError),
}
