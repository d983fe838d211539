//! Errors of connecting to a server.

use std::error::Error;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientInitializeError;
use rmcp::transport::AuthError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::limits::cut;
use super::{DuplicateName, ListingError};
use crate::web::ClientError;

/// Maximum number of bytes of a message that quotes an authorization server.
const QUOTE_BYTES_MAX: usize = 300;

/// Error returned when a server cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The program cannot be started.
    #[error("the server does not start: {0}")]
    Start(#[source] std::io::Error),
    /// The handshake failed.
    #[error("{0}")]
    Handshake(#[source] HandshakeError),
    /// The server wants to speak a revision of MCP that this client does not know.
    #[error("the server speaks the revision `{found}` of MCP; this client speaks {}", revisions())]
    UnknownRevision {
        /// Beginning of the revision that the server names.
        found: String,
    },
    /// The server did not answer in time.
    #[error("the server did not answer within {} ms", .0.as_millis())]
    TooLate(Duration),
    /// The HTTP client cannot be created.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server requires credentials, and none are configured.
    #[error("the server wants authorization and none is configured")]
    NeedsAuthorization,
    /// Authorization failed.
    #[error("no authorization: {0}")]
    Authorization(#[source] AuthorizationError),
    /// The stored tokens have expired, and were not refreshed for a reason that may pass.
    #[error(
        "no authorization: the stored tokens cannot be refreshed: {}; if this lasts, log out \
         and in again",
        quoted(.0)
    )]
    Refresh(#[source] AuthorizationError),
    /// The authorization server names an address that is neither `https` nor `http` on this
    /// machine, so that others on the network could read the traffic.
    #[error(
        "no authorization: the {what} has to begin with `https`, or with `http` on this machine; \
         the server names `{address}`"
    )]
    UnsafeAddress {
        /// Kind of the endpoint.
        what: &'static str,
        /// Beginning of the address.
        address: String,
    },
    /// The server names another authorization server than that of the client.
    #[error(
        "no authorization: expected the issuer `{expected}`, as configured; the server names \
         `{found}`"
    )]
    OtherIssuer {
        /// Issuer of the settings.
        expected: String,
        /// Beginning of the issuer that the server names.
        found: String,
    },
    /// The server names an authorization server at another address, and the settings do not say
    /// that the client belongs to it.
    #[error(
        "no authorization: the server names the authorization server `{found}`; if the client is \
         registered there, set `issuer = \"{found}\"` in [servers.NAME.oauth]"
    )]
    UnknownIssuer {
        /// Beginning of the issuer that the server names.
        found: String,
    },
    /// The user did not return from the authorization server.
    #[error("no authorization: {0}")]
    Browser(String),
    /// The server rejects the credentials that its own authorization server issues.
    #[error("the server rejects every authorization")]
    Unauthorized,
    /// The server did not list its tools.
    #[error("the server does not list what it offers: {0}")]
    Listing(#[from] ListingError),
    /// Two tools would get the same name (`MCP-12`).
    #[error(transparent)]
    DuplicateName(#[from] DuplicateName),
}

/// Error of the first messages on a connection.
#[derive(Debug, thiserror::Error)]
#[error("{}", describe(.0))]
pub struct HandshakeError(pub(crate) Box<ClientInitializeError>);

/// Describes an error for users, without the SDK's type names.
fn describe(error: &ClientInitializeError) -> String {
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
        // The process behind the pipe has exited.
        None => format!("the server ended before it answered: {error}"),
    }
}

/// Returns the revisions of MCP that this client speaks, for messages.
fn revisions() -> String {
    let known = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str);
    known.collect::<Vec<_>>().join(", ")
}

/// Returns the root cause of an error.
fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}

/// Returns the beginning of a message that quotes an authorization server, on one line.
fn quoted(error: &AuthorizationError) -> String {
    cut(&error.to_string(), QUOTE_BYTES_MAX).escape_debug().to_string()
}

/// Authorization error, with the message of the SDK.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct AuthorizationError(#[from] AuthError);

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
