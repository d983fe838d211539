//! Errors of requests and of building a client.

use std::fmt;
use std::io;
use std::net::IpAddr;

use cofferdam_tool::permission::{Host, HttpRule, InvalidHost};

use crate::AddressClass;

/// Boxed error of any type, as produced by bodies.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Error returned when a request is not sent or gets no response. No message contains a header
/// value or a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The request has an invalid target.
    #[error("the request has a URL that {0}")]
    Target(#[from] InvalidTarget),
    /// No grant covers the request.
    #[error("nothing grants the request; `{rule}` would")]
    Denied {
        /// Narrowest rule that would grant the request.
        rule: Box<HttpRule>,
        /// True if a server could read the path in two ways, so that the rule has none.
        is_ambiguous: bool,
    },
    /// The request sets a header that belongs to the connection.
    #[error("the header `{0}` belongs to the connection")]
    ReservedHeader(String),
    /// A grant binds a header to a secret that does not exist.
    #[error("the header `{header}` needs the secret `{secret}`, which is not there")]
    NoSecret {
        /// Name of the header.
        header: String,
        /// Name of the secret.
        secret: String,
    },
    /// A grant binds a header to a value with characters that a header cannot contain.
    #[error("the value of the bound header `{header}` has characters that headers do not have")]
    BadSecret {
        /// Name of the header.
        header: String,
    },
    /// The name lookup failed.
    #[error("the name could not be looked up: {0}")]
    Lookup(#[source] io::Error),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
    /// None of the host's addresses is public or granted.
    #[error("{host} is at {address}, {class}, which is not granted")]
    AddressRefused {
        /// Host of the request.
        host: Host,
        /// First of its addresses.
        address: IpAddr,
        /// Kind of that address.
        class: AddressClass,
    },
    /// No address accepted the connection.
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    /// The certificate was rejected.
    #[error("the certificate is not accepted: {0}")]
    Certificate(#[source] rustls::Error),
    /// The server refused the TLS connection.
    #[error("the server refused the TLS connection: {0}")]
    TlsAlert(#[source] rustls::Error),
    /// TLS failed for another reason.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// A stage of the request timed out.
    #[error("{0} took too long")]
    Timeout(NetworkStage),
    /// The requester has used up its limit of bytes to send.
    #[error("more than {0} bytes were to be sent")]
    SentLimit(u64),
    /// The requester has used up its limit of bytes to receive.
    #[error("more than {0} bytes came back")]
    ReceivedLimit(u64),
    /// The response head is too large.
    #[error("the head of the answer is larger than {0} bytes, or has more than 100 headers")]
    HeadLimit(usize),
    /// The process has reached its limit of concurrent requests.
    #[error("the host has too many requests under way")]
    TooManyRequests,
    /// The server closed the connection within a message.
    #[error("the connection ended early")]
    Incomplete,
    /// The server switched to another protocol.
    #[error("the server switched to another protocol")]
    Upgrade,
    /// The request body ended with an error.
    #[error("the body of the request was not finished")]
    RequestBody,
    /// The server does not speak valid HTTP.
    #[error("the server broke the protocol: {0}")]
    Protocol(#[source] hyper::Error),
}

/// Stage of a request that timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NetworkStage {
    /// Name lookup.
    Lookup,
    /// TCP connection.
    Connect,
    /// TLS handshake.
    Tls,
    /// Sending the request and waiting for the response head.
    FirstByte,
    /// Waiting for more of the response body.
    NextByte,
}

impl fmt::Display for NetworkStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lookup => "looking the name up",
            Self::Connect => "connecting",
            Self::Tls => "agreeing on TLS",
            Self::FirstByte => "the head of the answer",
            Self::NextByte => "the next part of the answer",
        })
    }
}

/// Reason why a request has no valid target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// The scheme is neither `http` nor `https`.
    #[error("has a scheme that is neither `https` nor `http`")]
    Scheme,
    /// The method is `CONNECT`, which opens a tunnel instead of addressing one host, or `TRACE`,
    /// which echoes the request.
    #[error("is for the method CONNECT or TRACE, which are not sent")]
    Method,
    /// The URL has no host.
    #[error("has no host")]
    NoHost,
    /// The URL has a user name or password before the host, a way to make look-alike URLs.
    #[error("has a user before the host")]
    UserInfo,
    /// The host is invalid.
    #[error("has a host that {0}")]
    Host(InvalidHost),
    /// The port is invalid.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// The path is invalid.
    #[error("has a path that does not start with `/`")]
    Path,
}

/// Error returned by [`Client::new`](crate::Client::new).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A certificate file has no certificate, or one that cannot be read.
    #[error("a file with certificates of authorities cannot be used: {reason}")]
    Authority {
        /// Reason why the file cannot be used.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[source] rustls::Error),
}
