//! Why a request was not sent, or has no answer.

use std::fmt;
use std::io;
use std::net::IpAddr;

use cofferdam_tool::permission::{Host, HttpRule, InvalidHost};

use crate::AddressClass;

/// An error of any type, as bodies have it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request was not sent, or has no answer. None of the texts holds a header or a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The request has no place to go.
    #[error("the request has a URL that {0}")]
    Target(#[from] InvalidTarget),
    /// No grant is for this request.
    #[error("nothing grants the request; `{rule}` would")]
    Denied {
        /// What would grant it and nothing else.
        rule: Box<HttpRule>,
    },
    /// A header that only the connection has.
    #[error("the header `{0}` belongs to the connection")]
    ReservedHeader(String),
    /// A grant binds a header to a secret that there is none of.
    #[error("the header `{header}` needs the secret `{secret}`, which is not there")]
    NoSecret {
        /// The header.
        header: String,
        /// The name of the secret.
        secret: String,
    },
    /// A grant binds a header to something that no header can hold.
    #[error("the value of the bound header `{header}` has characters that headers do not have")]
    BadSecret {
        /// The header.
        header: String,
    },
    /// The name could not be looked up.
    #[error("the name could not be looked up: {0}")]
    Lookup(#[source] io::Error),
    /// The name has no address.
    #[error("the name has no address")]
    NoAddress,
    /// The host has addresses, and none of them is public or granted.
    #[error("{host} is at {address}, {class}, which is not granted")]
    AddressRefused {
        /// The host.
        host: Host,
        /// The first of its addresses.
        address: IpAddr,
        /// What is special about the address.
        class: AddressClass,
    },
    /// Nobody answered at any of the addresses.
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    /// The certificate was not accepted.
    #[error("the certificate is not accepted: {0}")]
    Certificate(#[source] rustls::Error),
    /// The server refused the TLS connection.
    #[error("the server refused the TLS connection: {0}")]
    TlsAlert(#[source] rustls::Error),
    /// TLS failed otherwise.
    #[error("TLS failed: {0}")]
    Tls(#[source] io::Error),
    /// Something took too long.
    #[error("{0} took too long")]
    Timeout(Stage),
    /// The requester has sent what it may.
    #[error("more than {0} bytes were to be sent")]
    SentLimit(u64),
    /// The requester has received what it may.
    #[error("more than {0} bytes came back")]
    ReceivedLimit(u64),
    /// The head of the answer is too large.
    #[error("the head of the answer is larger than {0} bytes, or has more than 100 headers")]
    HeadLimit(usize),
    /// The process has as many requests under way as it may.
    #[error("the host has too many requests under way")]
    TooManyRequests,
    /// The server ended the connection within a message.
    #[error("the connection ended early")]
    Incomplete,
    /// The server switched to another protocol.
    #[error("the server switched to another protocol")]
    Upgrade,
    /// The requester's body ended in an error.
    #[error("the body of the request was not finished")]
    RequestBody,
    /// The server does not speak HTTP.
    #[error("the server broke the protocol: {0}")]
    Protocol(#[source] hyper::Error),
}

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Looking the name up.
    Lookup,
    /// Connecting.
    Connect,
    /// Agreeing on TLS.
    Tls,
    /// Sending the request and waiting for the head of the answer.
    FirstByte,
    /// Waiting for more of the answer's body.
    NextByte,
}

impl fmt::Display for Stage {
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

/// Why a URL is none that a request can go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// Neither `http` nor `https`.
    #[error("has a scheme that is neither `https` nor `http`")]
    Scheme,
    /// A method that is not for requests to one host, or that answers with the request itself.
    #[error("is for the method CONNECT or TRACE, which are not sent")]
    Method,
    /// No host.
    #[error("has no host")]
    NoHost,
    /// A name or password before the host, which is how look-alikes are made.
    #[error("has a user before the host")]
    UserInfo,
    /// A host that is none.
    #[error("has a host that {0}")]
    Host(InvalidHost),
    /// A port that is none.
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    /// A path that is none.
    #[error("has a path that does not start with `/`")]
    Path,
}

/// Why a client cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// A file of certificates that has none, or has one that cannot be read.
    #[error("a file with certificates of authorities cannot be used: {reason}")]
    Authority {
        /// Why.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[source] rustls::Error),
}
