//! Why there is no connection to a server.

use rmcp::service::ClientInitializeError;
use rmcp::transport::AuthError;

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
    #[error("the server does not answer as an MCP server: {0}")]
    Handshake(#[source] HandshakeError),
    /// The server takes too long.
    #[error("the server did not answer in time")]
    TooLate,
    /// HTTP is not possible at all.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server wants credentials, and none are configured.
    #[error("the server wants authorization and none is configured")]
    NeedsAuthorization,
    /// Authorisation failed.
    #[error("no authorization: {0}")]
    Authorization(#[source] AuthorizationError),
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

/// How the first messages went wrong. What the SDK says of it is for the log.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct HandshakeError(pub(crate) Box<ClientInitializeError>);

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
