//! Network use of a call, and refusals, for the call record.

use std::net::IpAddr;
use std::sync::Arc;

use cofferdam_network::{AddressClass, NetworkError};
use cofferdam_tool::permission::{AddressRange, Host, SocketRule};
use cofferdam_tool::record::{HostContact, Refusal};
use cofferdam_tool::{CallRecord, Permission};
use parking_lot::Mutex;

/// Maximum number of refusals in a record; a guest could try any number of hosts.
const REFUSALS_MAX: usize = 64;

/// Ledger that a call shares with the requests that it has started.
#[derive(Clone, Default)]
pub(super) struct TrafficLedger(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    refused: Vec<Refusal>,
    /// Separate record, so that hosts are counted in a single way.
    contacts: CallRecord,
}

impl TrafficLedger {
    // Entries stay valid if another thread panicked while it held the lock.

    /// Records the target of a request or a connection, before it is made.
    pub(super) fn contact(&self, host: &Host, port: u16) {
        self.0.lock().contacts.add_host(HostContact { host: host.to_string(), port, requests: 1 });
    }

    /// Returns whether a request or a connection was made.
    pub(super) fn has_contacts(&self) -> bool {
        !self.0.lock().contacts.hosts.is_empty()
    }

    /// Records an error if it is a refusal or a limit, which an operator could change.
    pub(super) fn note(&self, error: &NetworkError) {
        if let Some((capability, reason)) = missing(error) {
            self.refuse(capability, reason);
        }
    }

    /// Records a connection that no grant covers.
    pub(super) fn no_connection(&self, rule: &SocketRule) {
        self.refuse(Permission::Socket(rule.clone()).to_string(), None);
    }

    /// Records a lookup of a name that no grant covers.
    pub(super) fn no_lookup(&self, host: &Host) {
        let reason = format!("looks up {host}; `tcp {host}:PORT` grants that");
        self.refuse(format!("lookup:{host}"), Some(reason));
    }

    /// Records a granted name with addresses that no grant covers.
    pub(super) fn no_address(&self, host: &Host, address: IpAddr) {
        let (address, class) = (address.to_canonical(), AddressClass::of(address));
        let reason = format!(
            "{host} is at {address}, {class}; a grant that names the address and the port is for it"
        );
        self.refuse(format!("address:{address}"), Some(reason));
    }

    fn refuse(&self, capability: String, reason: Option<String>) {
        self.add(Refusal { reason, ..Refusal::new(capability) });
    }

    /// Adds a refusal.
    pub(super) fn add(&self, refusal: Refusal) {
        let mut entries = self.0.lock();
        let has_room = entries.refused.len() < REFUSALS_MAX;
        let is_same = |other: &&mut Refusal| other.capability == refusal.capability;
        match entries.refused.iter_mut().find(is_same) {
            Some(known) => known.times = known.times.saturating_add(1),
            None if has_room => entries.refused.push(refusal),
            None => {}
        }
    }

    pub(super) fn report(&self, record: &mut CallRecord) {
        let entries = self.0.lock();
        record.refused.extend(entries.refused.iter().cloned());
        for contact in &entries.contacts.hosts {
            record.add_host(contact.clone());
        }
        record.hosts_unlisted =
            record.hosts_unlisted.saturating_add(entries.contacts.hosts_unlisted);
    }
}

/// Returns the capability that a request lacks, with the grant that would help, for the operator.
fn missing(error: &NetworkError) -> Option<(String, Option<String>)> {
    let named = |capability: &str, reason: String| Some((capability.to_owned(), Some(reason)));
    match error {
        NetworkError::Denied { rule, is_ambiguous } => {
            let reason = "a server can read the path in two ways (`..`, `//`, an escaped `/`), so \
                          only a rule without a path covers it";
            let reason = is_ambiguous.then(|| reason.to_owned());
            Some((Permission::Http((**rule).clone()).to_string(), reason))
        }
        NetworkError::AddressRefused { address, .. } => {
            let range = AddressRange::from(*address);
            named(
                &format!("address:{range}"),
                format!("{error}; `addresses = [\"{range}\"]` beside the rule grants it"),
            )
        }
        NetworkError::NoSecret { secret, .. } => {
            named(&format!("secret:{secret}"), error.to_string())
        }
        NetworkError::BadSecret { header } => named(&format!("header:{header}"), error.to_string()),
        NetworkError::SentLimit(_) => named("limit:http-sent-bytes-max", error.to_string()),
        NetworkError::ReceivedLimit(_) => named("limit:http-received-bytes-max", error.to_string()),
        NetworkError::TooManyRequests => named("limit:requests of the host", error.to_string()),
        _ => None,
    }
}
