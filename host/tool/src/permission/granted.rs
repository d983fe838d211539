//! Grants of a call: the intersection of both sides, and the requests beyond it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use crate::ask::{QuestionKind, UnknownQuestion};
use crate::{Limits, ToolName};

use super::{
    ClockPrecision, FileAccess, HttpGrant, HttpRule, MountName, Permissions, Policy,
    RequestedLimits, SocketRule, secret,
};

/// Permissions that a plugin requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestedPermissions {
    /// The plugin has no manifest and takes everything that the operator offers. Its imports bound
    /// what it can do with that.
    Unstated,
    /// Like [`Unstated`](Self::Unstated), within the plugin's own limits.
    UnstatedWithin(RequestedLimits),
    /// These permissions and no more.
    Stated(Box<Permissions>),
}

/// Result of matching a request with an offer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantedPermissions {
    /// Permissions of a call.
    pub policy: Policy,
    /// Requested permissions that are not granted, or only in part.
    pub missing: Vec<MissingPermission>,
}

/// A requested permission that is not offered, or only in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPermission {
    /// Permission as requested.
    pub permission: Permission,
    /// The part that is offered, in plain words; `None` if nothing is.
    pub offered: Option<String>,
}

/// A single permission, written as `files:notes=read-only` or `http:GET https://a.example/`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Access to a file store, or to any store if the name is missing.
    Files(Option<MountName>, FileAccess),
    /// HTTP requests.
    Http(HttpRule),
    /// A socket connection.
    Socket(SocketRule),
    /// An environment variable.
    Env(String),
    /// A configuration value.
    Config(String),
    /// A secret that the guest may read.
    Secret(String),
    /// Clocks of this precision.
    Clock(ClockPrecision),
    /// Random numbers.
    Random,
    /// Calls of a tool.
    Tool(ToolName),
    /// Questions to the caller.
    Ask(QuestionKind),
    /// A limit and the requested value.
    Limit(String, u64),
}

/// Error returned for a string that is not a permission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a permission: {reason}")]
pub struct InvalidPermission {
    text: String,
    reason: String,
}

impl RequestedPermissions {
    /// Returns the permissions that both sides name. The only function that makes grants.
    #[must_use]
    pub fn granted_of(&self, offered: &Policy) -> GrantedPermissions {
        match self {
            Self::Unstated => GrantedPermissions { policy: offered.clone(), missing: Vec::new() },
            Self::UnstatedWithin(asked) => {
                let limits = asked.applied_to(&offered.limits);
                let mut missing = Vec::new();
                limits_beyond(asked, &offered.limits, &mut missing);
                GrantedPermissions { policy: Policy { limits, ..offered.clone() }, missing }
            }
            Self::Stated(asked) => stated(asked, offered),
        }
    }

    /// Returns whether the plugin asks for this permission, so that it would have it if it were
    /// offered. A limit only restricts, so that it needs no request.
    #[must_use]
    pub fn asks_for(&self, permission: &Permission) -> bool {
        let Self::Stated(asked) = self else { return true };
        match permission {
            Permission::Files(name, access) => {
                let named = name.as_ref().and_then(|name| asked.files.get(name));
                let wanted = named.copied().or(asked.files_any);
                wanted.and_then(|wanted| wanted.intersect(*access)) == Some(*access)
            }
            Permission::Http(rule) => {
                asked.http.iter().any(|wanted| wanted.intersect(rule).as_ref() == Some(rule))
            }
            Permission::Socket(rule) => asked.sockets.contains(rule),
            Permission::Env(name) => asked.env.contains(name),
            Permission::Config(key) => asked.config.contains(key),
            Permission::Secret(name) => asked.secrets.contains(name),
            Permission::Clock(precision) => *precision <= asked.clock,
            Permission::Random => asked.random,
            Permission::Tool(name) => asked.tools.contains(name),
            Permission::Ask(kind) => asked.ask.contains(kind),
            Permission::Limit(..) => true,
        }
    }
}

fn stated(asked: &Permissions, offered: &Policy) -> GrantedPermissions {
    let mut missing = Vec::new();
    let policy = Policy {
        files: files(asked, &offered.files, &mut missing),
        http: http(&asked.http, &offered.http, &mut missing),
        sockets: set(&asked.sockets, &offered.sockets, Permission::Socket, &mut missing),
        env: set(&asked.env, &offered.env, Permission::Env, &mut missing),
        config: set(&asked.config, &offered.config, Permission::Config, &mut missing),
        secrets: set(&asked.secrets, &offered.secrets, Permission::Secret, &mut missing),
        clock: asked.clock.min(offered.clock),
        random: asked.random && offered.random,
        tools: set(&asked.tools, &offered.tools, Permission::Tool, &mut missing),
        ask: set(&asked.ask, &offered.ask, Permission::Ask, &mut missing),
        limits: asked.limits.applied_to(&offered.limits),
    };
    if asked.clock > offered.clock {
        let offered = Some(format!("a {} clock", offered.clock.as_str()));
        missing.push(MissingPermission { permission: Permission::Clock(asked.clock), offered });
    }
    if asked.random && !offered.random {
        missing.push(MissingPermission { permission: Permission::Random, offered: None });
    }
    limits_beyond(&asked.limits, &offered.limits, &mut missing);
    GrantedPermissions { policy, missing }
}

fn limits_beyond(asked: &RequestedLimits, offered: &Limits, missing: &mut Vec<MissingPermission>) {
    for (key, wanted, offered) in asked.exceeding(offered) {
        let permission = Permission::Limit(key.to_owned(), wanted.parse().unwrap_or(u64::MAX));
        missing.push(MissingPermission { permission, offered: Some(offered) });
    }
}

fn files(
    asked: &Permissions,
    offered: &BTreeMap<MountName, FileAccess>,
    missing: &mut Vec<MissingPermission>,
) -> BTreeMap<MountName, FileAccess> {
    for (name, &wanted) in &asked.files {
        let got = offered.get(name).and_then(|access| wanted.intersect(*access));
        if got != Some(wanted) {
            let permission = Permission::Files(Some(name.clone()), wanted);
            missing.push(MissingPermission {
                permission,
                offered: offered.get(name).map(ToString::to_string),
            });
        }
    }
    if let Some(wanted) = asked.files_any
        && offered.is_empty()
    {
        missing
            .push(MissingPermission { permission: Permission::Files(None, wanted), offered: None });
    }
    let granted = |(name, access): (&MountName, &FileAccess)| {
        let wanted = asked.files.get(name).copied().or(asked.files_any)?;
        Some((name.clone(), wanted.intersect(*access)?))
    };
    offered.iter().filter_map(granted).collect()
}

fn http(
    asked: &[HttpRule],
    offered: &[HttpGrant],
    missing: &mut Vec<MissingPermission>,
) -> Vec<HttpGrant> {
    let mut granted: Vec<HttpGrant> = Vec::new();
    for wanted in asked {
        let shared = |grant: &HttpGrant| {
            Some(HttpGrant { rule: wanted.intersect(&grant.rule)?, ..grant.clone() })
        };
        let parts: Vec<_> = offered.iter().filter_map(shared).collect();
        if !parts.iter().any(|part| part.rule == *wanted) {
            let words: Vec<_> = parts.iter().map(|part| part.rule.to_string()).collect();
            let offered = (!words.is_empty()).then(|| words.join("; "));
            missing
                .push(MissingPermission { permission: Permission::Http(wanted.clone()), offered });
        }
        for part in parts {
            if !granted.contains(&part) {
                granted.push(part);
            }
        }
    }
    granted
}

/// Intersects two sets of names, and reports the requested names that are not offered.
fn set<T: Clone + Ord>(
    asked: &BTreeSet<T>,
    offered: &BTreeSet<T>,
    permission: impl Fn(T) -> Permission,
    missing: &mut Vec<MissingPermission>,
) -> BTreeSet<T> {
    for beyond in asked.difference(offered) {
        missing.push(MissingPermission { permission: permission(beyond.clone()), offered: None });
    }
    asked.intersection(offered).cloned().collect()
}

impl Permission {
    /// Describes the permission as a verb phrase.
    #[must_use]
    pub fn in_plain_words(&self) -> String {
        match self {
            Self::Files(Some(name), access) => format!("{} /{name}", access.in_plain_words()),
            Self::Files(None, access) => {
                format!("{} any store it is given", access.in_plain_words())
            }
            Self::Http(rule) => format!("send {rule}"),
            Self::Socket(rule) => format!("connect to {rule}"),
            Self::Env(name) => format!("read the environment variable {name}"),
            Self::Config(key) => format!("read the configuration value {key}"),
            Self::Secret(name) => format!("read the secret {name}"),
            Self::Clock(precision) => format!("use a {} clock", precision.as_str()),
            Self::Random => "draw random numbers".to_owned(),
            Self::Tool(name) => format!("call the tool {name}"),
            Self::Ask(kind) => kind.in_plain_words().to_owned(),
            Self::Limit(key, value) => format!("use {key} = {value}"),
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(Some(name), access) => write!(f, "files:{name}={access}"),
            Self::Files(None, access) => write!(f, "files:*={access}"),
            Self::Http(rule) => write!(f, "http:{rule}"),
            Self::Socket(rule) => write!(f, "socket:{rule}"),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::Config(key) => write!(f, "config:{key}"),
            Self::Secret(name) => write!(f, "secret:{name}"),
            Self::Clock(precision) => write!(f, "clock:{}", precision.as_str()),
            Self::Random => f.write_str("random"),
            Self::Tool(name) => write!(f, "tool:{name}"),
            Self::Ask(kind) => write!(f, "ask:{}", kind.as_str()),
            Self::Limit(key, value) => write!(f, "limit:{key}={value}"),
        }
    }
}

impl FromStr for Permission {
    type Err = InvalidPermission;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| InvalidPermission { text: text.to_owned(), reason })
    }
}

fn parse(text: &str) -> Result<Permission, String> {
    let (kind, value) = text.split_once(':').unwrap_or((text, ""));
    match kind {
        "files" => {
            let (name, access) = value.split_once('=').ok_or("write it as `files:NAME=read-only`")?;
            let name = match name {
                "*" => None,
                name => Some(MountName::new(name).map_err(|error| error.to_string())?),
            };
            let access = FileAccess::ALL.into_iter().find(|one| one.as_str() == access);
            let access = access.ok_or("access is `read-only`, `create-only` or `read-write`")?;
            Ok(Permission::Files(name, access))
        }
        "http" => {
            value.parse().map(Permission::Http).map_err(|error: super::InvalidHttpRule| error.to_string())
        }
        "socket" => {
            value.parse().map(Permission::Socket).map_err(|error: super::InvalidSocketRule| error.to_string())
        }
        "env" if is_variable(value) => Ok(Permission::Env(value.to_owned())),
        "env" => Err("a variable has a name without `=` and white space".to_owned()),
        "config" if is_key(value) => Ok(Permission::Config(value.to_owned())),
        "config" => Err("a key has 1 to 128 visible characters".to_owned()),
        "secret" if secret::is_secret_name(value) => Ok(Permission::Secret(value.to_owned())),
        "secret" => Err("a secret has a name of 1 to 64 characters out of A-Z a-z 0-9 _ -".to_owned()),
        "clock" => {
            let precision = ClockPrecision::ALL.into_iter().find(|one| one.as_str() == value);
            precision.map(Permission::Clock).ok_or_else(|| "write `frozen`, `coarse` or `precise`".to_owned())
        }
        "random" if value.is_empty() => Ok(Permission::Random),
        "tool" => ToolName::new(value).map(Permission::Tool).map_err(|error| error.to_string()),
        "ask" => value.parse().map(Permission::Ask).map_err(|error: UnknownQuestion| error.to_string()),
        "limit" => {
            let (key, number) = value.split_once('=').ok_or("write it as \
                `limit:wall-ms-max=60000`")?;
            let number = number.parse().map_err(|_| "a limit is a whole number")?;
            Ok(Permission::Limit(key.to_owned(), number))
        }
        _ => Err(
            "it starts with `files:`, `http:`, `socket:`, `env:`, `config:`, `secret:`, `clock:`, `tool:`, \
                  `ask:` or `limit:`, or is `random`"
                .to_owned(),
        ),
    }
}

/// Returns whether a string can be the name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    (1..=128).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic() && b != b'=')
}

/// Returns whether a string can be the key of a configuration value.
pub(super) fn is_key(key: &str) -> bool {
    (1..=128).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
