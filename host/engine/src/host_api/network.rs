//! Network of one call: what it was granted, and what it did.
//!
//! A call that does not use the network pays for none of this: the state is created by the first
//! request.

mod http;
mod ledger;
mod sockets;

use cofferdam_tool::{CallRecord, Limits};
use wasmtime_wasi::WasiCtxBuilder;

use super::PluginContext;

pub(crate) use self::http::explain_body_errors;
pub(crate) use self::sockets::link_sockets;

/// Network of one call.
pub(crate) struct Network {
    requests_max: u32,
    sent_bytes_max: u64,
    received_bytes_max: u64,
    http: Option<Box<http::Http>>,
    reach: Option<Box<sockets::AllowedAddresses>>,
}

impl Network {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            requests_max: limits.http_requests_max,
            sent_bytes_max: limits.http_sent_bytes_max,
            received_bytes_max: limits.http_received_bytes_max,
            http: None,
            reach: None,
        }
    }

    /// Records what the call did on the network.
    pub(crate) fn report(&self, record: &mut CallRecord) {
        if let Some(http) = &self.http {
            http.report(record);
        }
        if let Some(reach) = &self.reach {
            reach.report(record);
        }
    }

    /// Returns whether the guest has tried to use sockets.
    pub(crate) fn has_used_sockets(&self) -> bool {
        self.reach.as_ref().is_some_and(|reach| reach.is_used())
    }

    /// Allows the sockets of a call to reach the granted addresses.
    pub(crate) fn open_sockets(&mut self, plugin: &PluginContext, builder: &mut WasiCtxBuilder) {
        if !plugin.grants.sockets.is_empty() {
            self.reach(plugin).open(builder);
        }
    }

    fn reach(&mut self, plugin: &PluginContext) -> &sockets::AllowedAddresses {
        let (grants, resolver) = (&plugin.grants, plugin.client.resolver());
        self.reach.get_or_insert_with(|| Box::new(sockets::AllowedAddresses::new(grants, resolver)))
    }
}
