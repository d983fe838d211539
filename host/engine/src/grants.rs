//! Grants of a plugin: names and the values behind them.

mod mount;

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_tool::ask::QuestionKind;
use cofferdam_tool::permission::{ClockPrecision, HttpGrant, SecretText, SocketRule};
use cofferdam_tool::redact::{Redactor, UnusableSecret};
use cofferdam_tool::{Limits, Policy, ToolName};

pub use self::mount::Mount;

/// Everything that an operator grants to a plugin. The default grants only random numbers and a
/// coarse clock.
///
/// The type represents both what is offered and what is granted: [`policy`](Self::policy) returns
/// the names in it, and the engine removes what the plugin does not ask for.
#[derive(Debug, Clone)]
pub struct Grants {
    /// File stores that the guest sees as `/<name>`.
    pub mounts: Vec<Mount>,
    /// HTTP requests.
    pub http: Vec<HttpGrant>,
    /// Socket connections.
    pub sockets: BTreeSet<SocketRule>,
    /// Environment variables.
    pub env: BTreeMap<String, SecretText>,
    /// Configuration values, which a guest reads through `wasi:config`.
    pub config: BTreeMap<String, SecretText>,
    /// Values of secrets by name: those that the guest may read, those bound to requests, and those
    /// that are part of variables or configuration values. All of them are redacted from everything
    /// that leaves a call.
    pub secrets: BTreeMap<String, SecretText>,
    /// Names of the secrets that the guest may read.
    pub readable_secrets: BTreeSet<String>,
    /// Precision of the guest's clocks.
    pub clock: ClockPrecision,
    /// True if the guest has random numbers. Otherwise it gets the same sequence in every call.
    pub random: bool,
    /// Tools that the guest may call.
    pub tools: BTreeSet<ToolName>,
    /// True if the guest may call every tool of the toolset that is passed with the call. Only the
    /// program that embeds the host can grant this, to a plugin of its own: no permission and no
    /// configuration expresses it, so it holds whatever the plugin requests.
    pub all_tools: bool,
    /// Kinds of questions that the guest may ask the caller.
    pub ask: BTreeSet<QuestionKind>,
}

impl Default for Grants {
    fn default() -> Self {
        let Policy { clock, random, .. } = Policy::default();
        Self {
            mounts: Vec::new(),
            http: Vec::new(),
            sockets: BTreeSet::new(),
            env: BTreeMap::new(),
            config: BTreeMap::new(),
            secrets: BTreeMap::new(),
            readable_secrets: BTreeSet::new(),
            clock,
            random,
            tools: BTreeSet::new(),
            all_tools: false,
            ask: BTreeSet::new(),
        }
    }
}

impl Grants {
    /// Returns whether the guest may call a tool.
    pub(crate) fn has_tool(&self, name: &ToolName) -> bool {
        self.all_tools || self.tools.contains(name)
    }

    /// Returns the policy of these grants with `limits`.
    #[must_use]
    pub fn policy(&self, limits: &Limits) -> Policy {
        Policy {
            files: self.mounts.iter().map(|mount| (mount.name.clone(), mount.access)).collect(),
            http: self.http.clone(),
            sockets: self.sockets.clone(),
            env: self.env.keys().cloned().collect(),
            config: self.config.keys().cloned().collect(),
            secrets: self.readable_secrets.clone(),
            clock: self.clock,
            random: self.random,
            tools: self.tools.clone(),
            ask: self.ask.clone(),
            limits: limits.clone(),
        }
    }

    /// Returns the part of these grants that `policy` names. Values of secrets stay: bound
    /// headers need them, and the guest cannot read those that are not readable.
    pub(crate) fn restricted_to(&self, policy: &Policy) -> Self {
        let mount = |mount: &Mount| {
            let access = policy.files.get(&mount.name)?.intersect(mount.access)?;
            Some(Mount { access, ..mount.clone() })
        };
        let named = |values: &BTreeMap<String, SecretText>, names: &BTreeSet<String>| {
            values
                .iter()
                .filter(|(name, _)| names.contains(*name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect()
        };
        Self {
            mounts: self.mounts.iter().filter_map(mount).collect(),
            http: policy.http.clone(),
            sockets: policy.sockets.intersection(&self.sockets).cloned().collect(),
            env: named(&self.env, &policy.env),
            config: named(&self.config, &policy.config),
            secrets: self.secrets.clone(),
            readable_secrets: policy
                .secrets
                .intersection(&self.readable_secrets)
                .cloned()
                .collect(),
            clock: policy.clock.min(self.clock),
            random: policy.random && self.random,
            tools: policy.tools.intersection(&self.tools).cloned().collect(),
            all_tools: self.all_tools,
            ask: policy.ask.intersection(&self.ask).copied().collect(),
        }
    }

    /// Creates the redactor that removes the secrets from strings.
    pub(crate) fn redactor(&self) -> Result<Redactor, UnusableSecret> {
        Redactor::new(self.secrets.iter().map(|(name, value)| (name.as_str(), value)))
    }
}
