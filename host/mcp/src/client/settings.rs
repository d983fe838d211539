//! Settings of a remote server.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::permission::is_connection_header;
use cofferdam_tool::redact::Redactor;
use http::{HeaderName, HeaderValue, header};
use url::{Host, Url};

use super::limits::CONNECT_WAIT;
use super::{
    Admission, ApprovalMode, Extras, OAuthSettings, Review, SamplingHandler, SelectionMode,
    StdioCommand, TaskOptions,
};

/// Settings of one server. They are fixed when a connection is made; no call can change them.
#[derive(Clone)]
pub struct ServerSettings {
    /// Display name of the server.
    pub name: String,
    /// Address or command of the server.
    pub endpoint: ServerEndpoint,
    /// Admission of the server's tools, and their local names.
    pub admission: Admission,
    /// Calls that need approval.
    pub approval: ApprovalMode,
    /// Arguments that are forwarded although the server does not declare them.
    pub extras: Extras,
    /// Options of tasks.
    pub tasks: TaskOptions,
    /// Part of a result to use: content, structured content or both.
    pub selection: SelectionMode,
    /// True if the server's tools are offered.
    pub loads_tools: bool,
    /// True if the server's prompts are offered as tools.
    pub loads_prompts: bool,
    /// True if the server may ask the user questions, which the caller relays.
    pub may_elicit: bool,
    /// Handler of sampling requests. Without one, the client refuses them.
    pub sampling: Option<Arc<dyn SamplingHandler>>,
    /// Generation of the protocol.
    pub generation: Generation,
    /// Decides which definitions and instructions of the server are used; without one, all are.
    pub review: Option<Arc<dyn Review>>,
    /// Hides secrets that the server received, in case it repeats them.
    pub redactor: Option<Arc<Redactor>>,
    /// Maximum duration of the first messages of a connection.
    pub connect_wait: Duration,
    /// Maximum duration of a call that is not a task.
    pub call_wait: Duration,
}

/// Endpoint of a server.
#[derive(Debug, Clone)]
pub enum ServerEndpoint {
    /// Process that is started for this connection.
    Command(StdioCommand),
    /// Address of a server over HTTP.
    Http(HttpEndpoint),
}

impl ServerEndpoint {
    /// Returns whether a connection to either sends the same secrets: the environment of a command,
    /// or headers and the secret of an OAuth client.
    #[must_use]
    pub fn has_same_secrets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Command(this), Self::Command(other)) => this.env == other.env,
            (Self::Http(this), Self::Http(other)) => {
                this.headers == other.headers && this.client_secret() == other.client_secret()
            }
            _ => false,
        }
    }

    /// Returns the transport, as the conventions of OpenTelemetry name it.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Command(_) => "pipe",
            Self::Http(_) => "tcp",
        }
    }
}

/// Server that speaks streamable HTTP.
#[derive(Clone)]
pub struct HttpEndpoint {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    oauth: Option<OAuthSettings>,
}

/// Generation of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Generation {
    /// Asks the server for a stateless connection first, and falls back to the handshake if the
    /// server does not know that request.
    #[default]
    Auto,
    /// Only the handshake (revisions up to 2025-11-25).
    Handshake,
    /// Without a handshake (revision 2026-07-28).
    Stateless,
}

/// Error returned for an invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// The string is not a URL.
    #[error("the address is not a URL: {0}")]
    Url(#[from] url::ParseError),
    /// The URL has a scheme other than `http` or `https`.
    #[error("the address begins with `http` or `https`, not with `{0}`")]
    Scheme(String),
    /// The URL contains a user name or a password, which belong in headers.
    #[error("the address holds a name or a password; pass a header instead")]
    Credentials,
    /// The connection is unencrypted, so others on the network could read the secrets.
    #[error("secrets are sent only over https, or to this machine")]
    SecretOverPlainHttp,
    /// The header belongs to the connection or to the protocol.
    #[error("the header `{0}` is one that the host sets itself; remove it")]
    ReservedHeader(HeaderName),
}

/// Headers that the transport sets for each message, besides those whose names begin with `mcp-`.
const PROTOCOL_HEADERS: [HeaderName; 4] = [
    header::ACCEPT,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    HeaderName::from_static("last-event-id"),
];

fn is_reserved(name: &HeaderName) -> bool {
    is_connection_header(name.as_str())
        || PROTOCOL_HEADERS.contains(name)
        || name.as_str().starts_with("mcp-")
}

impl HttpEndpoint {
    /// Returns an endpoint at `url`, without secrets.
    ///
    /// # Errors
    /// [`InvalidEndpoint`] if `url` is not an HTTP address.
    pub fn new(url: &str) -> Result<Self, InvalidEndpoint> {
        let url = Url::parse(url)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(InvalidEndpoint::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidEndpoint::Credentials);
        }
        Ok(Self { url, headers: Vec::new(), oauth: None })
    }

    /// Adds headers to every request. They are sent only to the origin of the address.
    ///
    /// # Errors
    /// [`InvalidEndpoint::SecretOverPlainHttp`] if the address is neither encrypted nor on this
    /// machine, and [`InvalidEndpoint::ReservedHeader`] for a header of the protocol.
    pub fn with_headers(
        mut self,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Self, InvalidEndpoint> {
        self.check_secrecy()?;
        if let Some((name, _)) = headers.iter().find(|(name, _)| is_reserved(name)) {
            return Err(InvalidEndpoint::ReservedHeader(name.clone()));
        }
        self.headers = headers;
        for (_, value) in &mut self.headers {
            value.set_sensitive(true);
        }
        Ok(self)
    }

    /// Returns the secret of the OAuth client, if it has one.
    fn client_secret(&self) -> Option<&str> {
        self.oauth.as_ref()?.client.secret()
    }

    /// Authorizes with OAuth when the server requires it.
    ///
    /// # Errors
    /// Same as [`HttpEndpoint::with_headers`].
    pub fn with_oauth(mut self, oauth: OAuthSettings) -> Result<Self, InvalidEndpoint> {
        self.check_secrecy()?;
        self.oauth = Some(oauth);
        Ok(self)
    }

    /// Deletes the stored tokens for this server. The authorization server is not informed.
    ///
    /// # Errors
    /// Returns an error if the tokens may still be stored.
    pub fn forget_credentials(&self) -> std::io::Result<()> {
        self.oauth.as_ref().map_or(Ok(()), |oauth| oauth.forget(&self.url))
    }

    /// Returns the address.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.headers.iter().cloned()
    }

    pub(crate) fn oauth(&self) -> Option<&OAuthSettings> {
        self.oauth.as_ref()
    }

    fn check_secrecy(&self) -> Result<(), InvalidEndpoint> {
        let is_here = is_loopback(&self.url);
        if self.url.scheme() == "https" || is_here {
            Ok(())
        } else {
            Err(InvalidEndpoint::SecretOverPlainHttp)
        }
    }
}

/// Returns whether an address names this machine, without resolving it.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl ServerSettings {
    /// Returns the settings for a server without further configuration: all its tools under their
    /// own names, its prompts as tools, no approval, questions relayed to the caller, no sampling.
    #[must_use]
    pub fn new(name: impl Into<String>, endpoint: ServerEndpoint) -> Self {
        Self {
            name: name.into(),
            endpoint,
            admission: Admission::default(),
            approval: ApprovalMode::default(),
            extras: Extras::default(),
            tasks: TaskOptions::default(),
            selection: SelectionMode::default(),
            loads_tools: true,
            loads_prompts: true,
            may_elicit: true,
            sampling: None,
            generation: Generation::default(),
            review: None,
            redactor: None,
            connect_wait: CONNECT_WAIT,
            call_wait: Duration::from_mins(10),
        }
    }
}

impl std::fmt::Debug for HttpEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpEndpoint")
            .field("url", &self.url.as_str())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerSettings")
            .field("name", &self.name)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
