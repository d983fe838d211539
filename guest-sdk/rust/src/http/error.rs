//! Errors of requests.

use std::{fmt, io};

use crate::ToolFailure;

/// Error of a request, or of reading its response.
///
/// `?` turns it into a [`ToolFailure`] with the same message, which the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Nothing grants the request. The message says how the operator can grant it.
    Refused(String),
    /// The request took longer than its timeout, or than a timeout of the host.
    Timeout,
    /// The host of the URL has no address. The message names it.
    Dns(String),
    /// There is no connection, or it ended early.
    Connection(String),
    /// The certificate was rejected, or TLS failed for another reason.
    Tls(String),
    /// A limit of the call or of the host is reached. The message names it.
    Limit(String),
    /// There were too many redirects, or one of them has no valid URL.
    Redirect(String),
    /// The URL, the method or a header is invalid.
    Invalid(String),
    /// The source of the request's body failed, or the response's body is not what was expected.
    Body(String),
    /// The status of the response is 400 or more; see
    /// [`Response::error_for_status`](super::Response::error_for_status).
    Status {
        /// Status of the response.
        status: u16,
        /// URL of the response.
        url: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("the request timed out"),
            Self::Status { status, url } => write!(f, "{url} returned the status {status}"),
            Self::Refused(text)
            | Self::Dns(text)
            | Self::Connection(text)
            | Self::Tls(text)
            | Self::Limit(text)
            | Self::Redirect(text)
            | Self::Invalid(text)
            | Self::Body(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    /// Returns the failure of a tool that passes the error on.
    pub(crate) fn failure(&self) -> ToolFailure {
        let failure = ToolFailure::new(self.to_string());
        match self {
            Self::Refused(_) | Self::Invalid(_) => failure.permanent(),
            Self::Timeout | Self::Connection(_) => failure.transient(),
            Self::Status { status: 429 | 500.., .. } => failure.transient(),
            _ => failure,
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::Refused(_) => io::ErrorKind::PermissionDenied,
            Error::Timeout => io::ErrorKind::TimedOut,
            Error::Connection(_) => io::ErrorKind::ConnectionReset,
            Error::Invalid(_) => io::ErrorKind::InvalidInput,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
