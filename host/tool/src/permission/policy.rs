//! The two sides: what is asked and what is offered.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::ask::QuestionKind;
use crate::{Limits, ToolName};

use super::{
    AddressRange, ClockPrecision, FileAccess, Host, HostPattern, HttpRule, LimitsAsked, MountName,
    Permission, SecretTemplate, SocketRule,
};

/// What a plugin asks for in its manifest. What it does not name it does not ask for, apart from
/// random numbers and a coarse clock, without which most languages do not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permissions {
    /// File stores by the name of their mount.
    pub files: BTreeMap<MountName, FileAccess>,
    /// What it would do in any store that it is given, whatever its name.
    pub files_any: Option<FileAccess>,
    /// HTTP requests.
    pub http: Vec<HttpRule>,
    /// Connections.
    pub sockets: BTreeSet<SocketRule>,
    /// Environment variables by name.
    pub env: BTreeSet<String>,
    /// Configuration values by key.
    pub config: BTreeSet<String>,
    /// Secrets by name.
    pub secrets: BTreeSet<String>,
    /// How exactly it wants to tell the time.
    pub clock: ClockPrecision,
    /// Whether it draws random numbers.
    pub random: bool,
    /// Other tools that it calls.
    pub tools: BTreeSet<ToolName>,
    /// What it asks the one who makes a call.
    pub ask: BTreeSet<QuestionKind>,
    /// Limits that it needs or keeps to.
    pub limits: LimitsAsked,
}

/// What a person offers, and in the same shape what is granted. The default is nothing but random
/// numbers and a coarse clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// File stores by the name of their mount.
    pub files: BTreeMap<MountName, FileAccess>,
    /// HTTP requests.
    pub http: Vec<HttpGrant>,
    /// Connections.
    pub sockets: BTreeSet<SocketRule>,
    /// Names of environment variables.
    pub env: BTreeSet<String>,
    /// Keys of configuration values.
    pub config: BTreeSet<String>,
    /// Names of secrets that the guest may read.
    pub secrets: BTreeSet<String>,
    /// How exactly the guest may tell the time.
    pub clock: ClockPrecision,
    /// Whether the guest may draw random numbers.
    pub random: bool,
    /// Tools that the guest may call.
    pub tools: BTreeSet<ToolName>,
    /// What the guest may ask the one who makes a call.
    pub ask: BTreeSet<QuestionKind>,
    /// What one call may use.
    pub limits: Limits,
}

/// HTTP requests that a person allows, and what the host adds to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpGrant {
    /// Which requests.
    pub rule: HttpRule,
    /// Addresses that may be connected to although they are not public. A rule that names an
    /// address brings that one.
    pub addresses: Vec<AddressRange>,
    /// Headers that the host sets on these requests, in place of the guest's own.
    pub headers: Vec<BoundHeader>,
}

/// A header with places for secrets, so that a guest uses a credential without seeing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundHeader {
    /// The name in lower case.
    pub name: String,
    /// The value.
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
            limits: LimitsAsked::default(),
        }
    }
}

impl Permissions {
    /// Everything that is asked, one by one.
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
    /// A person who names an address means that address, public or not.
    fn from(rule: HttpRule) -> Self {
        let addresses = match &rule.host {
            HostPattern::Exactly(Host::Address(address)) => vec![AddressRange::from(*address)],
            _ => Vec::new(),
        };
        Self { rule, addresses, headers: Vec::new() }
    }
}

/// Why a text is no header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBoundHeader {
    /// Not of the form.
    #[error("write it as `Name: value`, where the value may hold `${{secret:NAME}}`")]
    Form,
    /// A header that decides where a message ends or whom it reaches.
    #[error("is a header that the host sets itself")]
    Reserved,
    /// A value with a place that is none.
    #[error(transparent)]
    Value(#[from] super::InvalidSecretTemplate),
}

/// Headers that no grant can set: they belong to the connection.
const RESERVED_HEADERS: [&str; 9] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

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
        if RESERVED_HEADERS.contains(&name.as_str()) {
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
