//! The service behind a bucket, as described in failures.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use object_store::Error;

use crate::error::{ServiceFailure, ServiceProblem};

/// Address of a bucket, and the last status of its service.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// Address of the bucket without the prefix.
    pub(super) bucket: String,
    /// Host of the requests.
    pub(super) endpoint: String,
    /// Status of the last unsuccessful response. Concurrent requests may mix theirs up, which only
    /// affects the advice to the operator.
    last_status: AtomicU16,
    /// True if the bucket is known to exist.
    is_found: AtomicBool,
}

impl Service {
    #[cfg(feature = "cloud")]
    pub(super) fn new(bucket: String, endpoint: String) -> Self {
        Self { bucket, endpoint, ..Self::default() }
    }

    /// Records the status of a response.
    #[cfg(feature = "cloud")]
    pub(super) fn answered(&self, status: u16) {
        match status {
            300.. => self.last_status.store(status, Ordering::Relaxed),
            _ => self.is_found.store(true, Ordering::Relaxed),
        }
    }

    /// Returns true once a request has succeeded.
    pub(super) fn is_found(&self) -> bool {
        self.is_found.load(Ordering::Relaxed)
    }

    /// Describes a failure of the service: with a fixed sentence for the model, with bucket and
    /// endpoint for the operator, and with the service's own error as its source.
    pub(super) fn failure(&self, error: Error) -> io::Error {
        let kind = kind_of(&error);
        let problem = match kind {
            _ if matches!(error, Error::InvalidPath { .. }) => ServiceProblem::InvalidKey,
            io::ErrorKind::NotFound => ServiceProblem::NoBucket,
            io::ErrorKind::PermissionDenied => ServiceProblem::Denied,
            io::ErrorKind::NotConnected => ServiceProblem::Unreachable,
            io::ErrorKind::TimedOut => ServiceProblem::Timeout,
            io::ErrorKind::Other => match self.last_status.load(Ordering::Relaxed) {
                300..=399 => ServiceProblem::Moved,
                401 | 403 => ServiceProblem::Denied,
                404 => ServiceProblem::NoBucket,
                400..=499 => ServiceProblem::Refused,
                _ => ServiceProblem::Failed,
            },
            _ => ServiceProblem::Failed,
        };
        if self.bucket.is_empty() {
            return io::Error::new(kind, error);
        }
        io::Error::new(kind, ServiceFailure::new(&self.bucket, &self.endpoint, problem, error))
    }
}

fn kind_of(error: &Error) -> io::ErrorKind {
    match error {
        Error::NotFound { .. } => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            io::ErrorKind::AlreadyExists
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        Error::NotSupported { .. } | Error::NotImplemented { .. } => io::ErrorKind::Unsupported,
        Error::InvalidPath { .. } => io::ErrorKind::InvalidData,
        other => transport(other),
    }
}

/// Classifies a failure on the way to the service.
#[cfg(feature = "cloud")]
fn transport(error: &Error) -> io::ErrorKind {
    use object_store::client::{HttpError, HttpErrorKind};
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return match error.kind() {
                HttpErrorKind::Timeout => io::ErrorKind::TimedOut,
                HttpErrorKind::Connect => io::ErrorKind::NotConnected,
                HttpErrorKind::Request | HttpErrorKind::Interrupted => {
                    io::ErrorKind::ConnectionAborted
                }
                HttpErrorKind::Decode => io::ErrorKind::InvalidData,
                _ => io::ErrorKind::Other,
            };
        }
        cause = error.source();
    }
    io::ErrorKind::Other
}

#[cfg(not(feature = "cloud"))]
fn transport(_: &Error) -> io::ErrorKind {
    io::ErrorKind::Other
}
