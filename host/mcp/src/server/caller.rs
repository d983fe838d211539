//! Sender of a request, and what the request says about it.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use cofferdam_tool::invoke::McpRequest;
use cofferdam_tool::trace::TraceContext;
use rmcp::model::{
    ClientCapabilities, Extensions, ProgressToken, ProtocolVersion, RequestMetaObject,
};
use rmcp::service::{Peer, RequestContext};
use rmcp::{ErrorData, RoleServer};
use tokio_util::sync::CancellationToken;

use super::principal::Principal;

/// Key of the idempotency key in the `_meta` of `tools/call`.
const IDEMPOTENCY_KEY: &str = "cofferdam/idempotencyKey";
/// Longest idempotency key, in characters.
const IDEMPOTENCY_KEY_CHARS_MAX: usize = 128;

/// Sender of one request. A call and its questions share it, and it outlives the request if the
/// call becomes a task.
pub(super) struct Caller {
    pub(super) principal: Principal,
    pub(super) is_modern: bool,
    is_http: bool,
    context: RequestContext<RoleServer>,
    /// Parsed on demand when a tool asks something or may become a task, which is rare.
    capabilities: OnceLock<ClientCapabilities>,
}

impl Caller {
    pub(super) fn new(mut context: RequestContext<RoleServer>) -> Self {
        let (principal, is_modern) = (principal(&context), is_modern(&context));
        let is_http = context.extensions.get::<http::request::Parts>().is_some();
        // The head of an HTTP request is no longer needed.
        context.extensions = Extensions::default();
        Self { principal, is_modern, is_http, context, capabilities: OnceLock::new() }
    }

    /// Returns the capabilities that the client has declared, with this request or when it
    /// connected.
    pub(super) fn capabilities(&self) -> &ClientCapabilities {
        self.capabilities.get_or_init(|| self.context.client_capabilities().unwrap_or_default())
    }

    pub(super) fn peer(&self) -> &Peer<RoleServer> {
        &self.context.peer
    }

    pub(super) fn meta(&self) -> &RequestMetaObject {
        &self.context.meta
    }

    /// Returns the token that the client assigned to the progress of the request, if it wants
    /// progress.
    pub(super) fn progress_token(&self) -> Option<ProgressToken> {
        self.context.meta.get_progress_token()
    }

    /// Returns the span of the client, if it states one.
    pub(super) fn trace(&self) -> Option<TraceContext> {
        self.context.meta.get_traceparent()?.parse().ok()
    }

    /// Returns the idempotency key of the request, if it has one.
    ///
    /// # Errors
    /// If it is not a string of the allowed length.
    pub(super) fn idempotency_key(&self) -> Result<Option<String>, ErrorData> {
        let Some(value) = self.context.meta.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        let fits = |key: &&str| (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.chars().count());
        match value.as_str().filter(fits) {
            Some(key) => Ok(Some(key.to_owned())),
            None => Err(ErrorData::invalid_params(
                format!(
                    "expected `{IDEMPOTENCY_KEY}` to be a string of 1 to \
                     {IDEMPOTENCY_KEY_CHARS_MAX} characters"
                ),
                None,
            )),
        }
    }

    /// Returns what a record of a call says about the request.
    pub(super) fn record(&self) -> McpRequest {
        McpRequest {
            principal: self.principal.name().to_owned(),
            client: self
                .context
                .client_info()
                .map(|info| format!("{} {}", info.name, info.version)),
            protocol_version: self.context.protocol_version().map(|version| version.to_string()),
            transport: if self.is_http { "tcp" } else { "pipe" },
        }
    }

    /// Describes the sender for the operator: its name and version, and its principal.
    pub(super) fn description(&self) -> String {
        let principal = self.principal.name();
        match self.context.client_info() {
            Some(client) => format!("{} {} as {principal}", client.name, client.version),
            None => principal.to_owned(),
        }
    }

    /// Returns the id of the request, for the log.
    pub(super) fn request_id(&self) -> &rmcp::model::RequestId {
        &self.context.id
    }

    /// Returns a token that fires when the client cancels the request, and once the request is
    /// answered.
    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.context.ct
    }
}

/// Returns the sender of a request. Over HTTP, that is the principal that the router authenticated,
/// or one without permissions otherwise.
pub(super) fn principal(context: &RequestContext<RoleServer>) -> Principal {
    match context.extensions.get::<http::request::Parts>() {
        None => Principal::local(),
        Some(parts) => {
            let no_principal = || Principal::new("nobody", Some(BTreeSet::new()));
            parts.extensions.get::<Principal>().cloned().unwrap_or_else(no_principal)
        }
    }
}

/// Returns true if a request uses the stateless revision.
pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    // Protocol versions are dates, so they compare as strings.
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
