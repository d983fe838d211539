//! A connection as the rules for calls see it.

use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::CallContext;
use serde_json::{Map, Value};

/// A server that can be asked.
///
/// Dropping a request's future gives it up; an implementation tells the server so.
#[async_trait]
pub trait Remote: Send + Sync {
    /// Sends one request and returns its result as the server wrote it. Progress, log lines and
    /// questions that belong to it go to the one whose call it is.
    ///
    /// # Errors
    /// [`RequestError`], of which [`RequestError::Lost`] alone means that the connection is gone.
    async fn request(
        &self,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, RequestError>;

    /// Connects anew after a request has lost the connection of that number. Several calls may lose
    /// one connection: the first makes a new one, and the others find it there.
    ///
    /// # Errors
    /// [`ReconnectFailed`] when there is no connection afterwards.
    async fn reconnect(&self, lost: u64) -> Result<(), ReconnectFailed>;

    /// Waits between two requests of one call. A script lets the time pass in its own way.
    async fn pause(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The stream was closed before the answer came.
    #[error("the connection was lost")]
    Lost {
        /// The number of the connection.
        connection: u64,
    },
    /// The server answered with an error.
    #[error("error {code}: {message}")]
    Protocol {
        /// Its code.
        code: i64,
        /// In the server's words.
        message: String,
        /// The number of the connection.
        connection: u64,
    },
    /// The server sent too many requests of its own while it worked on this one, and the connection
    /// was ended.
    #[error("the server sent too many requests")]
    Flooded,
    /// Anything else; the text is for the log.
    #[error("{0}")]
    Other(String),
}

/// There is no connection, and none could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot reconnect: {0}")]
pub struct ReconnectFailed(pub String);

/// A server that has forgotten a session says so in words alone; this is the one place where a text
/// decides (`MCP-19`).
const SESSION_ENDED: &str = "session terminated";

impl RequestError {
    /// The connection that is gone, if it is.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        match self {
            Self::Lost { connection } => Some(*connection),
            Self::Protocol { message, connection, .. }
                if message.to_ascii_lowercase().contains(SESSION_ENDED) =>
            {
                Some(*connection)
            }
            Self::Protocol { .. } | Self::Flooded | Self::Other(_) => None,
        }
    }
}
