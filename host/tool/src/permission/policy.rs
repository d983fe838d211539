//! The two sides of a grant: requested permissions and the offered policy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::ask::QuestionKind;
use crate::{Limits, ToolName};

use super::{
    AddressRange, ClockPrecision, FileAccess, Host, HostPattern, HttpRule, MountName, Permission,
    RequestedLimits, SecretTemplate, SocketRule,
};

/// Permissions that a plugin requests in its manifest. It requests only what it names, apart from
/// random numbers and a coarse clock, without which most languages do not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// Access to file stores, by mount name.
    pub files: BTreeMap<MountName, FileAccess>,
    /// Access to any store that it is given, whatever its name.
    pub files_any: Option<FileAccess>,
    /// HTTP requests that it sends.
    pub http: Vec<HttpRule>,
    /// Sockets that it connects to.
    pub sockets: BTreeSet<SocketRule>,
    /// Names of environment variables that it reads.
    pub env: BTreeSet<String>,
    /// Keys of configuration values that it reads.
    pub config: BTreeSet<String>,
    /// Names of secrets that it reads.
    pub secrets: BTreeSet<String>,
    /// Precision of its clocks.
    pub clock: ClockPrecision,
    /// True if it draws random numbers.
    pub random: bool,
    /// Other tools that it calls.
    pub tools: BTreeSet<ToolName>,
    /// Kinds of questions that it asks its caller.
    pub ask: BTreeSet<QuestionKind>,
    /// Limits that it needs or keeps to.
    pub limits: RequestedLimits,
}

/// Permissions that the operator offers and, in the same form, those that are granted. The default
/// is only random numbers and a coarse clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Access to file stores, by mount name.
    pub files: BTreeMap<MountName, FileAccess>,
    /// HTTP requests that the guest may send.
    pub http: Vec<HttpGrant>,
    /// Sockets that the guest may connect to.
    pub sockets: BTreeSet<SocketRule>,
    /// Names of environment variables that the guest may read.
    pub env: BTreeSet<String>,
    /// Keys of configuration values that the guest may read.
    pub config: BTreeSet<String>,
    /// Names of secrets that the guest may read.
    pub secrets: BTreeSet<String>,
    /// Precision of the guest's clocks.
    pub clock: ClockPrecision,
    /// True if the guest may draw random numbers.
    pub random: bool,
    /// Tools that the guest may call.
    pub tools: BTreeSet<ToolName>,
    /// Kinds of questions that the guest may ask its caller.
    pub ask: BTreeSet<QuestionKind>,
    /// Limits of one call.
    pub limits: Limits,
}

/// HTTP requests that the operator permits, and the headers that the host adds to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// Rule for the permitted requests.
    pub rule: HttpRule,
    /// Non-public addresses that may be connected to. A rule that names an address includes it.
    pub addresses: Vec<AddressRange>,
    /// Headers that the host sets on these requests, replacing the guest's own.
    pub headers: Vec<BoundHeader>,
}

/// Header with placeholders for secrets, so that a guest uses a credential without seeing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundHeader {
    /// Name of the header in lower case.
    pub name: String,
    /// Value of the header.
    pub value: SecretTemplate,
}

impl Default for Permissions {
    fn default() -> Self {
        Self {
            files: BTreeMap::new(),
            files_any: None,
            http: Vec::new(),
            sockets: BTreeSet::new(),
            env: BTreeSet::new(),
            config: BTreeSet::new(),
            secrets: BTreeSet::new(),
            clock: ClockPrecision::Coarse,
            random: true,
            tools: BTreeSet::new(),
            ask: BTreeSet::new(),
            limits: RequestedLimits::default(),
        }
    }
}

impl Permissions {
    /// Returns all requested permissions, one by one.
    #[must_use]
    pub fn all(&self) -> Vec<Permission> {
        let files =
            self.files.iter().map(|(name, access)| Permission::Files(Some(name.clone()), *access));
        let any = self.files_any.map(|access| Permission::Files(None, access));
        let clock = (self.clock != ClockPrecision::Coarse).then_some(Permission::Clock(self.clock));
        let limits = self.limits.entries().into_iter();
        files
            .chain(any)
            .chain(self.http.iter().cloned().map(Permission::Http))
            .chain(self.sockets.iter().cloned().map(Permission::Socket))
            .chain(self.env.iter().cloned().map(Permission::Env))
            .chain(self.config.iter().cloned().map(Permission::Config))
            .chain(self.secrets.iter().cloned().map(Permission::Secret))
            .chain(clock)
            .chain(self.random.then_some(Permission::Random))
            .chain(self.tools.iter().cloned().map(Permission::Tool))
            .chain(self.ask.iter().copied().map(Permission::Ask))
            .chain(limits.map(|(key, value)| {
                Permission::Limit(key.to_owned(), value.parse().unwrap_or(u64::MAX))
            }))
            .collect()
    }
}

impl Policy {
    /// Returns the permissions that a plugin does not have by default, one by one: all but the
    /// clock, random numbers and limits.
    #[must_use]
    pub fn permissions(&self) -> Vec<Permission> {
        let files =
            self.files.iter().map(|(name, access)| Permission::Files(Some(name.clone()), *access));
        files
            .chain(self.http.iter().map(|grant| Permission::Http(grant.rule.clone())))
            .chain(self.sockets.iter().cloned().map(Permission::Socket))
            .chain(self.env.iter().cloned().map(Permission::Env))
            .chain(self.config.iter().cloned().map(Permission::Config))
            .chain(self.secrets.iter().cloned().map(Permission::Secret))
            .chain(self.tools.iter().cloned().map(Permission::Tool))
            .chain(self.ask.iter().copied().map(Permission::Ask))
            .collect()
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            files: BTreeMap::new(),
            http: Vec::new(),
            sockets: BTreeSet::new(),
            env: BTreeSet::new(),
            config: BTreeSet::new(),
            secrets: BTreeSet::new(),
            clock: ClockPrecision::Coarse,
            random: true,
            tools: BTreeSet::new(),
            ask: BTreeSet::new(),
            limits: Limits::default(),
        }
    }
}

impl From<HttpRule> for HttpGrant {
    /// An operator who names an address means that address, public or not.
    fn from(rule: HttpRule) -> Self {
        let addresses = match &rule.host {
            HostPattern::Exactly(Host::Address(address)) => vec![AddressRange::from(*address)],
            _ => Vec::new(),
        };
        Self { rule, addresses, headers: Vec::new() }
    }
}

/// Error returned for a string that is not a bound header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBoundHeader {
    /// The string does not have the form of a header.
    #[error("write it as `Name: value`, where the value may hold `${{secret:NAME}}`")]
    Form,
    /// The header determines where a message ends or which server it reaches.
    #[error("is a header that the host sets itself")]
    Reserved,
    /// The value has an invalid placeholder or a control character.
    #[error(transparent)]
    Value(#[from] super::InvalidSecretTemplate),
}

/// Headers that belong to a connection instead of a message, or that determine where a message
/// ends or which server it reaches, in lower case.
const CONNECTION_HEADERS: [&str; 10] = [
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Returns whether a header, in lower case, belongs to the connection: neither a grant nor a
/// requester may set it.
#[must_use]
pub fn is_connection_header(name: &str) -> bool {
    CONNECTION_HEADERS.contains(&name)
}

impl FromStr for BoundHeader {
    type Err = InvalidBoundHeader;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once(':').ok_or(InvalidBoundHeader::Form)?;
        let name = name.trim().to_ascii_lowercase();
        let is_name = !name.is_empty()
            && name.len() <= 256
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
        if !is_name {
            return Err(InvalidBoundHeader::Form);
        }
        // A requester may state the length of its body and announce trailers, a grant may not.
        if is_connection_header(&name) || matches!(name.as_str(), "content-length" | "trailer") {
            return Err(InvalidBoundHeader::Reserved);
        }
        Ok(Self { name, value: value.trim().parse()? })
    }
}

impl fmt::Display for BoundHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}
