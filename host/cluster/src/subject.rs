//! Subjects of the protocol, and the names of which they are made.
//!
//! All subjects begin with `cofferdam.v1.<tenant>`, so that the permissions of a bus can separate
//! tenants. A change of the protocol changes `v1`: nodes of two versions do not see each other.

use std::fmt;

use data_encoding::HEXLOWER;

/// Longest name of a node or tenant, in characters.
const TOKEN_CHARS_MAX: usize = 64;

/// Error returned for a string that cannot be a part of a subject.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected 1 to {TOKEN_CHARS_MAX} characters from `a-z 0-9 _ -`, found `{}`",
    .found.escape_debug()
)]
pub struct InvalidToken {
    found: String,
}

/// Name of a tenant: tools of one tenant are invisible to the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant(String);

/// Name of a gateway or worker. It must be a new one for each start of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeName(String);

impl Tenant {
    /// Checks the name of a tenant.
    ///
    /// # Errors
    /// If it is not a part of a subject.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidToken> {
        token(name.into()).map(Self)
    }
}

impl Default for Tenant {
    /// Returns the tenant `default`.
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl NodeName {
    /// Checks the name of a node.
    ///
    /// # Errors
    /// If it is not a part of a subject.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidToken> {
        token(name.into()).map(Self)
    }

    /// Returns a random name.
    #[must_use]
    pub fn random() -> Self {
        let mut bytes = [0; 8];
        // Without a source of random numbers, names of two processes differ by their ids.
        if getrandom::fill(&mut bytes).is_err() {
            bytes = u64::from(std::process::id()).to_be_bytes();
        }
        Self(HEXLOWER.encode(&bytes))
    }
}

fn token(name: String) -> Result<String, InvalidToken> {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    if (1..=TOKEN_CHARS_MAX).contains(&name.len()) && name.bytes().all(fits) {
        Ok(name)
    } else {
        Err(InvalidToken { found: name.chars().take(TOKEN_CHARS_MAX).collect() })
    }
}

/// Returns the name of the bucket with the results of a tenant's calls with idempotency keys.
#[cfg(feature = "nats")]
pub(crate) fn results_bucket(tenant: &Tenant) -> String {
    format!("cofferdam-v1-{}-results", tenant.0)
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Subjects of one tenant.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    prefix: String,
}

impl Subjects {
    pub(crate) fn new(tenant: &Tenant) -> Self {
        Self { prefix: format!("cofferdam.v1.{}", tenant.0) }
    }

    /// Returns the subject of calls to one version of a source.
    pub(crate) fn route(&self, route: &str) -> String {
        format!("{}.call.{route}", self.prefix)
    }

    /// Returns the subject on which all workers are asked for their tools.
    pub(crate) fn catalog(&self) -> String {
        format!("{}.catalog", self.prefix)
    }

    /// Returns the subject of messages to one worker.
    pub(crate) fn worker(&self, worker: &NodeName) -> String {
        format!("{}.worker.{worker}", self.prefix)
    }

    /// Returns the subject on which a worker learns that no gateway receives its heartbeats.
    pub(crate) fn unheard(&self, worker: &NodeName, offer: u64) -> String {
        format!("{}.worker.{worker}.unheard.{offer}", self.prefix)
    }

    /// Returns all such subjects of a worker.
    pub(crate) fn all_unheard(&self, worker: &NodeName) -> String {
        format!("{}.worker.{worker}.unheard.>", self.prefix)
    }

    /// Returns the worker and the offer that such a subject belongs to.
    pub(crate) fn parse_unheard(&self, subject: &str) -> Option<(NodeName, u64)> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".worker.")?;
        let (worker, offer) = rest.split_once(".unheard.")?;
        Some((NodeName::new(worker).ok()?, offer.parse().ok()?))
    }

    /// Returns the subject for replies to one message of a call.
    pub(crate) fn inbox(&self, gateway: &NodeName, call: u64, message: u32) -> String {
        format!("{}.in.{gateway}.{call}.{message}", self.prefix)
    }

    /// Returns the subject of all replies to a gateway.
    pub(crate) fn inboxes(&self, gateway: &NodeName) -> String {
        format!("{}.in.{gateway}.>", self.prefix)
    }

    /// Returns the subject on which all gateways learn that the tools of a worker have changed. It
    /// is among those that gateways receive and workers may send to.
    pub(crate) fn all_gateways(&self) -> String {
        format!("{}.in.all", self.prefix)
    }

    /// Returns the call and the message that a subject for replies belongs to.
    pub(crate) fn parse_inbox(&self, subject: &str) -> Option<(u64, u32)> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".in.")?;
        let mut parts = rest.split('.').skip(1);
        let (call, message) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some((call, message))
    }

    /// Returns the subject on which all workers are asked for their call logs.
    pub(crate) fn logs(&self) -> String {
        format!("{}.records", self.prefix)
    }

    /// Returns the subject on which the workers with a call log are asked for parts of it.
    pub(crate) fn log(&self, digest: &str) -> String {
        format!("{}.records.log.{digest}", self.prefix)
    }

    /// Returns the subject for answers to one request of a collector.
    pub(crate) fn collector_inbox(&self, collector: &NodeName, request: u64) -> String {
        format!("{}.records.in.{collector}.{request}", self.prefix)
    }

    /// Returns the subject of all answers to a collector.
    pub(crate) fn collector_inboxes(&self, collector: &NodeName) -> String {
        format!("{}.records.in.{collector}.>", self.prefix)
    }

    /// Returns the request that a subject for answers belongs to.
    pub(crate) fn parse_collector_inbox(&self, subject: &str) -> Option<u64> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".records.in.")?;
        let (collector, request) = rest.split_once('.')?;
        NodeName::new(collector).ok()?;
        request.parse().ok()
    }

    /// Returns whether a worker may answer a collector on a subject.
    pub(crate) fn is_collector_inbox(&self, subject: &str) -> bool {
        self.parse_collector_inbox(subject).is_some()
    }

    /// Returns whether a worker may reply to a subject: nothing else of the bus can be reached
    /// through a worker.
    pub(crate) fn is_inbox(&self, subject: &str) -> bool {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        subject.bytes().all(is_plain) && self.parse_inbox(subject).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_tokens() {
        for name in ["a", "0-9_z"] {
            assert!(Tenant::new(name).is_ok() && NodeName::new(name).is_ok());
        }
        for name in ["", "a.b", "a b", "A", ">", "*", "é", &"a".repeat(65)] {
            assert!(Tenant::new(name).is_err(), "{name}");
        }
        assert_eq!(
            Tenant::new("a.b").unwrap_err().to_string(),
            "expected 1 to 64 characters from `a-z 0-9 _ -`, found `a.b`"
        );
    }

    #[test]
    fn heartbeats_that_no_gateway_receives_name_their_offer() {
        let subjects = Subjects::new(&Tenant::default());
        let worker = NodeName::new("w1").unwrap();
        let subject = subjects.unheard(&worker, 7);
        assert_eq!(subject, "cofferdam.v1.default.worker.w1.unheard.7");
        assert_eq!(subjects.parse_unheard(&subject), Some((worker, 7)));
        assert_eq!(subjects.parse_unheard("cofferdam.v1.default.worker.>.unheard.7"), None);
        assert_eq!(subjects.parse_unheard("cofferdam.v1.default.worker.w1"), None);
        assert_eq!(subjects.parse_unheard("cofferdam.v1.other.worker.w1.unheard.7"), None);
    }

    #[test]
    fn a_worker_answers_collectors_of_its_tenant_only() {
        let subjects = Subjects::new(&Tenant::new("acme").unwrap());
        let inbox = subjects.collector_inbox(&NodeName::new("c1").unwrap(), 7);
        assert_eq!(inbox, "cofferdam.v1.acme.records.in.c1.7");
        assert_eq!(subjects.parse_collector_inbox(&inbox), Some(7));
        for other in [
            "cofferdam.v1.other.records.in.c1.7",
            "cofferdam.v1.acme.records.in.c1",
            "cofferdam.v1.acme.records.in.c1.7.8",
            "cofferdam.v1.acme.records.in.*.7",
            "cofferdam.v1.acme.records.in.>.7",
            "cofferdam.v1.acme.in.c1.7",
            "cofferdam.v1.acme.records.log.7",
            "$SYS.REQ.SERVER.PING",
            "",
        ] {
            assert!(!subjects.is_collector_inbox(other), "{other}");
        }
    }

    #[test]
    fn a_worker_replies_to_inboxes_of_its_tenant_only() {
        let subjects = Subjects::new(&Tenant::new("acme").unwrap());
        let inbox = subjects.inbox(&NodeName::new("g1").unwrap(), 7, 2);
        assert_eq!(inbox, "cofferdam.v1.acme.in.g1.7.2");
        assert_eq!(subjects.parse_inbox(&inbox), Some((7, 2)));
        assert!(subjects.is_inbox(&inbox));
        for other in [
            "cofferdam.v1.other.in.g1.7.2",
            "cofferdam.v1.acme.in.g1.7",
            "cofferdam.v1.acme.in.all",
            "cofferdam.v1.acme.in.g1.7.2.3",
            "cofferdam.v1.acme.in.*.7.2",
            "cofferdam.v1.acme.in.>.7.2",
            "cofferdam.v1.acme.worker.w1",
            "$SYS.REQ.SERVER.PING",
            "",
        ] {
            assert!(!subjects.is_inbox(other), "{other}");
        }
    }
}
