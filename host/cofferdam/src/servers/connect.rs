//! Connects to servers, several at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_mcp::client::{ConnectError, RemoteServer, ServerEndpoint};
use cofferdam_tool::ToolSource as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;

use super::{ServerPins, ServerSpec};
use crate::Operator;

/// Maximum number of servers to connect to at the same time. Each may be a process that starts.
pub(super) const CONNECTING_MAX: usize = 8;
/// Maximum characters of an error message that a server may have written.
const REASON_CHARS_MAX: usize = 500;

/// A server that cannot be reached, with the reason.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the server `{name}` cannot be reached: {reason}")]
pub struct Unreachable {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Outcome of connecting, in the order of the configuration.
#[derive(Default)]
pub struct ConnectOutcome {
    /// Connected servers.
    pub servers: Vec<Arc<RemoteServer>>,
    /// Servers that cannot be reached.
    pub unreachable: Vec<Unreachable>,
    /// Pins of the connected servers.
    pins: Vec<(Arc<RemoteServer>, Arc<ServerPins>)>,
}

impl ConnectOutcome {
    /// Notes the servers that cannot be reached.
    pub(crate) fn note_unreachable(&self, operator: &Operator) {
        for server in &self.unreachable {
            operator.note(&format!("warning: {server}"));
        }
    }

    /// Asks the operator about servers that have changed since they were accepted. If the operator
    /// cannot be asked, notes what is left out.
    pub(crate) async fn settle_changes(&self, operator: &Operator) {
        for (server, pins) in &self.pins {
            let Some(change) = pins.change() else { continue };
            if !operator.is_available() {
                pins.tell();
                continue;
            }
            let name = server.name();
            operator.note(&format!(
                "the server `{name}` has changed since it was accepted:\n{}",
                change.difference.short()
            ));
            if change.difference.is_cut() {
                operator.note(&format!(
                    "  all of it: cofferdam approve {name} --full --config {}",
                    pins.config().display()
                ));
            }
            if !operator.confirm_async("Accept the change?").await {
                pins.tell();
                continue;
            }
            if let Err(error) = pins.accept(&change.statements) {
                operator
                    .note(&format!("warning: the change of `{name}` is not accepted: {error:#}"));
            } else if let Err(error) = server.review_again().await {
                operator.note(&format!("a change of the server `{name}` is not used: {error}"));
            }
        }
    }

    /// Returns the servers of which something is left out because it has changed.
    pub fn changed(&self) -> Vec<String> {
        let changed = self.pins.iter().filter(|(_, pins)| pins.change().is_some());
        changed.map(|(server, _)| server.name().to_owned()).collect()
    }
}

/// Connects to all servers. One that cannot be reached does not affect the others.
pub(crate) async fn connect_all(specs: Vec<ServerSpec>) -> ConnectOutcome {
    let permits = Arc::new(Semaphore::new(CONNECTING_MAX));
    let mut connecting = JoinSet::new();
    for (index, spec) in specs.into_iter().enumerate() {
        let permits = Arc::clone(&permits);
        connecting.spawn(async move {
            let _permit = permit(&spec, &permits).await;
            (index, (connect(&spec).await, spec.pins))
        });
    }
    // None of these tasks panics or is aborted.
    let mut ended = BTreeMap::new();
    while let Some(Ok((index, result))) = connecting.join_next().await {
        ended.insert(index, result);
    }
    let mut connected = ConnectOutcome::default();
    for (result, pins) in ended.into_values() {
        match result {
            Ok(server) => {
                let server = Arc::new(server);
                connected.pins.extend(pins.map(|pins| (Arc::clone(&server), pins)));
                connected.servers.push(server);
            }
            Err(unreachable) => connected.unreachable.push(unreachable),
        }
    }
    connected
}

/// Waits for a permit to connect. Servers at which the user may have to log in need none, so that
/// they do not delay others.
pub(super) async fn permit<'p>(
    spec: &ServerSpec,
    permits: &'p Semaphore,
) -> Option<SemaphorePermit<'p>> {
    match spec.table.oauth {
        Some(_) => None,
        // The semaphore is never closed.
        None => permits.acquire().await.ok(),
    }
}

/// Connects to one server.
pub async fn connect(spec: &ServerSpec) -> Result<RemoteServer, Unreachable> {
    // The future of a handshake is large and needed only once.
    let connected = Box::pin(RemoteServer::connect(spec.settings.clone())).await;
    let connected = connected.map_err(|error| reason(spec, &error));
    connected.map_err(|reason| {
        // The error message of a server may contain a secret.
        let reason = match &spec.settings.redactor {
            Some(redactor) => redactor.text(&reason).into_owned(),
            None => reason,
        };
        let reason = reason.chars().take(REASON_CHARS_MAX).collect();
        Unreachable { name: spec.name().to_owned(), reason }
    })
}

fn reason(spec: &ServerSpec, error: &ConnectError) -> String {
    let hint = match (error, &spec.settings.endpoint) {
        (ConnectError::NeedsAuthorization, _) => {
            "; give it a header with a secret, or [servers.NAME.oauth]"
        }
        (ConnectError::Handshake(_), ServerEndpoint::Command(_)) => {
            "; COFFERDAM_LOG=info shows what it has printed"
        }
        _ => "",
    };
    format!("{error}{hint}")
}
