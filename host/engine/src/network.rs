//! The network as one call sees it: what it was granted, and what it did.
//!
//! A call that does not use the network pays for none of this: what a request needs is made at the first one.

mod http;
mod ledger;
mod sockets;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use cofferdam_network::Client;
use cofferdam_tool::{CallRecord, HttpGrant, Limits, SecretText, SocketRule};

use wasmtime_wasi::WasiCtxBuilder;

pub(crate) use self::http::explain_body_errors;
pub(crate) use self::sockets::link_sockets;

/// What a plugin may do on the network. The default is nothing.
#[derive(Clone, Default)]
pub struct NetworkGrants {
    /// HTTP requests.
    pub http: Vec<HttpGrant>,
    /// Connections.
    pub sockets: BTreeSet<SocketRule>,
    /// Secrets that the headers of `http` have places for, by name. The guest does not get them.
    pub secrets: BTreeMap<String, SecretText>,
}

impl fmt::Debug for NetworkGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets: Vec<_> = self.secrets.keys().collect();
        f.debug_struct("NetworkGrants")
            .field("http", &self.http)
            .field("sockets", &self.sockets)
            .field("secrets", &secrets)
            .finish()
    }
}

/// The network of one call.
pub(crate) struct Network {
    grants: Arc<NetworkGrants>,
    client: Client,
    requests_max: u32,
    sent_bytes_max: u64,
    received_bytes_max: u64,
    http: Option<Box<http::Http>>,
    reach: Option<Box<sockets::Reach>>,
}

impl Network {
    pub(crate) fn new(grants: &Arc<NetworkGrants>, client: &Client, limits: &Limits) -> Self {
        Self {
            grants: Arc::clone(grants),
            client: client.clone(),
            requests_max: limits.http_requests_max,
            sent_bytes_max: limits.http_sent_bytes_max,
            received_bytes_max: limits.http_received_bytes_max,
            http: None,
            reach: None,
        }
    }

    /// Writes what the call did on the network into its record.
    pub(crate) fn report(&self, record: &mut CallRecord) {
        if let Some(http) = &self.http {
            http.report(record);
        }
        if let Some(reach) = &self.reach {
            reach.report(record);
        }
    }

    /// Lets the sockets of a call go where they were granted to.
    pub(crate) fn open_sockets(&mut self, builder: &mut WasiCtxBuilder) {
        if !self.grants.sockets.is_empty() {
            self.reach().open(builder);
        }
    }

    fn reach(&mut self) -> &sockets::Reach {
        let (grants, resolver) = (&self.grants, self.client.resolver());
        self.reach.get_or_insert_with(|| Box::new(sockets::Reach::new(grants, resolver)))
    }
}
