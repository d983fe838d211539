//! Settings of a remote server.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::redact::Redactor;
use http::{HeaderName, HeaderValue};
use url::{Host, Url};

use super::limits::CONNECT_WAIT;
use super::{
    Admission, ApprovalMode, Extras, OAuthSettings, Review, SamplingHandler, SelectionMode,
    StdioCommand, TaskOptions,
};

/// Everything that the user says about one server. A connection is made with it; no call can change
/// it.
#[derive(Clone)]
pub struct ServerSettings {
    /// Display name of the server.
    pub name: String,
    /// Endpoint.
    pub endpoint: ServerEndpoint,
    /// Admission of its tools, and their local names.
    pub admission: Admission,
    /// Calls that need approval.
    pub approval: ApprovalMode,
    /// Arguments that are forwarded although the server does not declare them.
    pub extras: Extras,
    /// Options of tasks.
    pub tasks: TaskOptions,
    /// Half of a result to use.
    pub selection: SelectionMode,
    /// True if its tools are offered.
    pub loads_tools: bool,
    /// True if its prompts are offered as tools.
    pub loads_prompts: bool,
    /// True if it may ask the user, by way of the caller.
    pub may_elicit: bool,
    /// Handler of sampling requests; without one the server's requests are refused.
    pub sampling: Option<Arc<dyn SamplingHandler>>,
    /// Generation of the protocol.
    pub generation: Generation,
    /// Decides which definitions and instructions of the server are used; without one, all are.
    pub review: Option<Arc<dyn Review>>,
    /// Hides the secrets that the server is given, should it show them.
    pub redactor: Option<Arc<Redactor>>,
    /// Maximum time of the first messages of a connection.
    pub connect_wait: Duration,
    /// Maximum time of a call that is not a task.
    pub call_wait: Duration,
}

/// Endpoint of a server.
#[derive(Debug, Clone)]
pub enum ServerEndpoint {
    /// A process that is started for this connection.
    Command(StdioCommand),
    /// An address.
    Http(HttpEndpoint),
}

/// A server that speaks streamable HTTP.
#[derive(Clone)]
pub struct HttpEndpoint {
    url: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
    oauth: Option<OAuthSettings>,
}

/// Generations of the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Generation {
    /// The server is asked, and the handshake follows if it does not know the question.
    #[default]
    Auto,
    /// The handshake alone (revisions up to 2025-11-25).
    Handshake,
    /// Without a handshake (revision 2026-07-28).
    Stateless,
}

/// Error returned for an invalid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEndpoint {
    /// The text is no URL.
    #[error("the address is no URL: {0}")]
    Url(#[from] url::ParseError),
    /// The URL is of another kind.
    #[error("the address begins with `http` or `https`, not with `{0}`")]
    Scheme(String),
    /// Names and passwords belong in headers.
    #[error("the address holds a name or a password; pass a header instead")]
    Credentials,
    /// Others on the network could read along.
    #[error("secrets are sent only over https, or to this machine")]
    SecretOverPlainHttp,
}

impl HttpEndpoint {
    /// A server at `url`, without secrets.
    ///
    /// # Errors
    /// [`InvalidEndpoint`] for what is no address of HTTP.
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

    /// Adds headers to every request. They go to the origin of the address only.
    ///
    /// # Errors
    /// [`InvalidEndpoint::SecretOverPlainHttp`] for an address that is neither encrypted nor on
    /// this machine.
    pub fn with_headers(
        mut self,
        headers: Vec<(HeaderName, HeaderValue)>,
    ) -> Result<Self, InvalidEndpoint> {
        self.check_secrecy()?;
        self.headers = headers;
        for (_, value) in &mut self.headers {
            value.set_sensitive(true);
        }
        Ok(self)
    }

    /// Authorises by OAuth when the server asks for it.
    ///
    /// # Errors
    /// As for [`HttpEndpoint::with_headers`].
    pub fn with_oauth(mut self, oauth: OAuthSettings) -> Result<Self, InvalidEndpoint> {
        self.check_secrecy()?;
        self.oauth = Some(oauth);
        Ok(self)
    }

    /// Forgets the tokens that are kept for this server. The authorization server is not informed.
    ///
    /// # Errors
    /// When they may still be there.
    pub fn forget_credentials(&self) -> std::io::Result<()> {
        self.oauth.as_ref().map_or(Ok(()), |oauth| oauth.forget(&self.url))
    }

    /// The address.
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

/// Returns whether an address is on this machine, by its text alone.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl ServerSettings {
    /// The settings for a server without further configuration: all its tools under their own
    /// names, its prompts as tools, no approval, questions to the caller, no sampling.
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
