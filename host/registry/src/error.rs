//! Errors of requests to registries.

use std::time::Duration;

use crate::Digest;
use crate::manifest::ManifestError;
use crate::store::StoreError;

/// Error of a request to a registry: the registry, what was being done, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{registry}: {step}: {kind}")]
pub struct RegistryError {
    /// Registry as written in the reference.
    pub registry: String,
    /// Step that failed, such as `reading the manifest of acme/csv:1.0.0`.
    pub step: String,
    /// Cause.
    pub kind: Box<RegistryErrorKind>,
}

/// Cause of a [`RegistryError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryErrorKind {
    /// No connection, or it broke.
    #[error("no connection: {0}")]
    Connection(String),
    /// The registry sent nothing for this long.
    #[error("no data for {} s", .0.as_secs())]
    Silent(Duration),
    /// The registry sends fewer bytes per second than this.
    #[error("the response is slower than {0} bytes/s")]
    Slow(u64),
    /// The registry reports that there is no such artifact.
    #[error("not found (HTTP 404)")]
    NotFound,
    /// The registry rejects the credentials, or wants some.
    #[error("{0}")]
    Unauthorized(String),
    /// The registry reports another error.
    #[error("HTTP {status}{}", detail(.message))]
    Status {
        /// Status of the response.
        status: u16,
        /// Code and message of the response, shortened.
        message: String,
    },
    /// A response is larger than its limit, or than the manifest says.
    #[error("the response is larger than {0} bytes")]
    TooLarge(u64),
    /// A response is not what the specification requires.
    #[error("invalid response: {0}")]
    Malformed(String),
    /// The registry refers to an address that it may not.
    #[error("{0}")]
    ForeignHost(String),
    /// A manifest has another digest than the reference or the registry says.
    #[error("the manifest has the digest {found}; expected {expected}")]
    ManifestDigest {
        /// Expected digest.
        expected: Digest,
        /// Digest of what was received.
        found: Digest,
    },
    /// The manifest cannot be used.
    #[error("the manifest {0}")]
    Manifest(#[from] ManifestError),
    /// The layer is not as the manifest says, or cannot be stored.
    #[error("the layer {0}")]
    Store(#[from] StoreError),
    /// The component is larger than the limit.
    #[error("the component has {size} bytes; at most {bytes_max} are accepted")]
    ComponentSize {
        /// Size by the manifest.
        size: u64,
        /// Limit.
        bytes_max: u64,
    },
    /// Credentials cannot be read.
    #[error("the credentials cannot be read: {0}")]
    Credentials(String),
}

fn detail(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

impl RegistryErrorKind {
    /// Adds registry and step.
    pub(crate) fn at(self, registry: &str, step: &str) -> RegistryError {
        RegistryError { registry: registry.to_owned(), step: step.to_owned(), kind: Box::new(self) }
    }
}
