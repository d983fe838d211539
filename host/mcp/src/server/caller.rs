//! Who sent a request, and what the request says about its sender.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, Extensions, ProgressToken, ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext};
use tokio_util::sync::CancellationToken;

use super::principal::Principal;

/// The sender of one request. A call and what it asks share it, and it outlives the request if the
/// call becomes a task.
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) is_modern: bool,
    context: RequestContext<RoleServer>,
    /// Read when a tool asks something or may become a task, which is seldom.
    capabilities: OnceLock<ClientCapabilities>,
}

impl Caller {
    pub(super) fn new(mut context: RequestContext<RoleServer>) -> Self {
        let (principal, is_modern) = (principal(&context), is_modern(&context));
        // The head of an HTTP request has done its work.
        context.extensions = Extensions::default();
        Self { principal, is_modern, context, capabilities: OnceLock::new() }
    }

    /// What the client has declared, with this request or when it connected.
    pub(super) fn capabilities(&self) -> &ClientCapabilities {
        self.capabilities.get_or_init(|| self.context.client_capabilities().unwrap_or_default())
    }

    pub(super) fn peer(&self) -> &Peer<RoleServer> {
        &self.context.peer
    }

    pub(super) fn meta(&self) -> &RequestMetaObject {
        &self.context.meta
    }

    /// What the client calls the request's progress, if it wants any.
    pub(super) fn progress_token(&self) -> Option<ProgressToken> {
        self.context.meta.get_progress_token()
    }

    /// The request's id, for the log.
    pub(super) fn request_id(&self) -> &rmcp::model::RequestId {
        &self.context.id
    }

    /// Cancelled when the client gives the request up, and once it is answered.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.context.ct
    }
}

/// Who sent a request. Over HTTP that is whom the router has authenticated, and nobody if it has
/// not.
pub(super) fn principal(context: &RequestContext<RoleServer>) -> Principal {
    match context.extensions.get::<http::request::Parts>() {
        None => Principal::local(),
        Some(parts) => {
            let nobody = || Principal::new("nobody", Some(BTreeSet::new()));
            parts.extensions.get::<Principal>().cloned().unwrap_or_else(nobody)
        }
    }
}

/// Whether a request is one of the revision without a handshake.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    // Versions are dates.
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
