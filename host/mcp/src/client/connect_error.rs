//! Why there is no connection to a server.

use std::error::Error;
use std::time::Duration;

use rmcp::service::ClientInitializeError;
use rmcp::transport::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::{DuplicateName, ListingError};
use crate::web::ClientError;

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program does not start.
    #[error("the server does not start: {0}")]
    Start(#[source] std::io::Error),
    /// The server and this client do not come together.
    #[error("{0}")]
    Handshake(#[source] HandshakeError),
    /// The server takes too long.
    #[error("the server did not answer within {} ms", .0.as_millis())]
    TooLate(Duration),
    /// HTTP is not possible at all.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server wants credentials, and none are configured.
    #[error("the server wants authorization and none is configured")]
    NeedsAuthorization,
    /// Authorisation failed.
    #[error("no authorization: {0}")]
    Authorization(#[source] AuthorizationError),
    /// The authorization server names an address that anybody on the way could read, or that is
    /// none of HTTP.
    #[error(
        "no authorization: the {what} has to begin with `https`, or with `http` on this machine; \
         the server names `{address}`"
    )]
    UnsafeAddress {
        /// Of which endpoint.
        what: &'static str,
        /// The beginning of the address.
        address: String,
    },
    /// Nobody came back from the authorization server.
    #[error("no authorization: {0}")]
    Browser(String),
    /// The server refuses what its own authorization server grants.
    #[error("the server refuses every authorization")]
    Unauthorized,
    /// The server does not list its tools.
    #[error("the server does not list what it offers: {0}")]
    Listing(#[from] ListingError),
    /// Two tools would have one name (`MCP-12`).
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
}

/// How the first messages went wrong.
#[derive(Debug, thiserror::Error)]
#[error("{}", said(.0))]
pub struct HandshakeError(pub(crate) Box<ClientInitializeError>);

/// In words for people, who know no type of the SDK.
fn said(error: &ClientInitializeError) -> String {
    let error = match error {
        ClientInitializeError::ConnectionClosed(_) => {
            return "the server ended before it answered".to_owned();
        }
        ClientInitializeError::TransportError { error, .. } => error.error.as_ref(),
        other => return format!("the server does not answer as an MCP server: {other}"),
    };
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => {
            format!("there is no connection: {}", innermost(error))
        }
        Some(other) => format!("the server does not answer as an MCP server: {other}"),
        // A pipe to a program that is not there any more.
        None => format!("the server ended before it answered: {error}"),
    }
}

/// The cause without what it was the cause of.
fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

/// How authorisation went wrong, in the words of the SDK.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AuthorizationError(AuthError);

impl From<ClientInitializeError> for ConnectError {
    fn from(error: ClientInitializeError) -> Self {
        Self::Handshake(HandshakeError(Box::new(error)))
    }
}

impl From<AuthError> for ConnectError {
    fn from(error: AuthError) -> Self {
        Self::Authorization(AuthorizationError(error))
    }
}
