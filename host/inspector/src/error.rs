//! Errors.

use std::net::SocketAddr;

use cofferdam_record::RecordError;

/// Error returned when an inspector cannot be created or serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectorError {
    /// Other machines could reach the address.
    #[error("{0} can be reached from other machines; listen on 127.0.0.1 or [::1]")]
    NotLoopback(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomNumbers,
}

/// Error of a page.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// There is nothing under the address.
    #[error("there is no such page")]
    NotFound,
    /// The log has no such call, or several.
    #[error("{0}")]
    Call(RecordError),
    /// The log cannot be read.
    #[error("the call log cannot be read: {0}")]
    Log(#[from] RecordError),
    /// A field of the query is invalid.
    #[error("{0}")]
    Query(String),
}
