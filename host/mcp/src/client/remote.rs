//! Interface of a connection for the call rules.

use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::CallContext;
use serde_json::{Map, Value};

/// Connection to a server.
///
/// Dropping the future of a request cancels it; implementations notify the server.
#[async_trait]
pub trait Remote: Send + Sync {
    /// Sends one request and returns its result as the server wrote it. Progress, log lines and
    /// questions that belong to it go to the caller of `call`.
    ///
    /// # Errors
    /// [`RequestError`]. Only [`RequestError::Lost`] means that the connection is lost.
    async fn request(
        &self,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, RequestError>;

    /// Reconnects after a request has lost the connection with the number `lost`. Several calls may
    /// lose the same connection: the first one reconnects, and the others use the new connection.
    ///
    /// # Errors
    /// [`ReconnectFailed`] if there is no connection afterwards.
    async fn reconnect(&self, lost: u64) -> Result<(), ReconnectFailed>;

    /// Waits between two requests of one call. Scripted servers override it to control time.
    async fn pause(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Error of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The stream was closed before the response arrived.
    #[error("the connection was lost")]
    Lost {
        /// Number of the connection.
        connection: u64,
        /// False if the server has certainly not got the request.
        is_sent: bool,
    },
    /// The server answered with an error.
    #[error("error {code}: {message}")]
    Protocol {
        /// Error code.
        code: i64,
        /// Message of the server.
        message: String,
        /// Number of the connection.
        connection: u64,
    },
    /// The server sent too many requests while it processed this one, and the client closed the
    /// connection.
    #[error("the server sent too many requests")]
    Flooded,
    /// The server does not read its input, and too much already waits for it. The request was not
    /// sent.
    #[error("the server does not read its input")]
    Unread,
    /// Any other error, with a message for the log.
    #[error("{0}")]
    Other(String),
}

/// Error returned when reconnecting fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot reconnect: {0}")]
pub struct ReconnectFailed(pub String);

/// Message by which a server reports an unknown session. There is no error code for it, so this is
/// the only code that compares a message (`MCP-19`).
const SESSION_ENDED: &str = "session terminated";

impl RequestError {
    /// Returns true if the server may have done what was asked before the connection was lost.
    #[must_use]
    pub fn may_be_done(&self) -> bool {
        matches!(self, Self::Lost { is_sent: true, .. })
    }

    /// Returns the number of the lost connection, if the connection is lost.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        match self {
            Self::Lost { connection, .. } => Some(*connection),
            Self::Protocol { message, connection, .. }
                if message.to_ascii_lowercase().contains(SESSION_ENDED) =>
            {
                Some(*connection)
            }
            Self::Protocol { .. } | Self::Flooded | Self::Unread | Self::Other(_) => None,
        }
    }
}
