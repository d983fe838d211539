//! Supervises servers while `cofferdam serve` runs: retries servers that cannot be reached, and
//! announces changes.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_mcp::client::{RemoteServer, ServerEndpoint};
use cofferdam_tool::ToolSource as _;
use cofferdam_tool::retry::Backoff;
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connect::{CONNECTING_MAX, permit};
use super::{ServerPins, ServerSpec, connect};
use crate::config::ServerTable;
use crate::{Operator, text};

/// Maximum time that a start waits for servers. MCP clients wait about ten seconds for the complete
/// start.
const START_WAIT: Duration = Duration::from_secs(5);
/// Pauses between attempts to connect, which never end: the server may start at any time.
const ATTEMPTS: Backoff = Backoff {
    retries_max: u32::MAX,
    pause: Duration::from_secs(1),
    pause_max: Duration::from_secs(60),
};

/// Interval of checks whether a change of a server was accepted.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Fires when a server has connected, or its offer has changed.
pub type ChangeSignal = Arc<Notify>;

/// A supervised server. Dropping it ends the attempts to connect; a connection ends when its last
/// user drops it.
pub struct SupervisedServer {
    name: String,
    table: ServerTable,
    endpoint: ServerEndpoint,
    /// Maximum time of a call.
    call_wait: Duration,
    server: Arc<Mutex<Option<Arc<RemoteServer>>>>,
    pins: Option<Arc<ServerPins>>,
    /// True if the first attempt has ended.
    tried: watch::Receiver<bool>,
    _stop: DropGuard,
}

impl SupervisedServer {
    fn start(
        spec: ServerSpec,
        permits: Arc<Semaphore>,
        news: ChangeSignal,
        operator: Operator,
    ) -> Self {
        let (name, table, pins) = (spec.name().to_owned(), spec.table.clone(), spec.pins.clone());
        let (call_wait, endpoint) = (spec.settings.call_wait, spec.settings.endpoint.clone());
        let server = Arc::default();
        let (first, tried) = watch::channel(false);
        let stop = CancellationToken::new();
        let (stopped, work) =
            (stop.clone(), supervise(spec, permits, Arc::clone(&server), first, news, operator));
        tokio::spawn(async move { stopped.run_until_cancelled(work).await });
        Self { name, table, endpoint, call_wait, server, pins, tried, _stop: stop.drop_guard() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the first attempt to connect has ended.
    pub(crate) fn is_tried(&self) -> bool {
        *self.tried.borrow()
    }

    /// Returns the maximum time of a call.
    pub(crate) fn call_wait(&self) -> Duration {
        self.call_wait
    }

    /// Returns whether parts of the server are left out because they have changed.
    pub(crate) fn has_changed(&self) -> bool {
        self.pins.as_ref().is_some_and(|pins| pins.change().is_some())
    }

    /// Returns the connection, if there is one.
    pub(crate) fn server(&self) -> Option<Arc<RemoteServer>> {
        self.server.lock().clone()
    }
}

/// Supervises all servers of `specs`. Servers of `before` with the same configuration and the same
/// secrets are reused.
pub(crate) fn start_all(
    specs: Vec<ServerSpec>,
    before: &[Arc<SupervisedServer>],
    news: &ChangeSignal,
    operator: &Operator,
) -> Vec<Arc<SupervisedServer>> {
    let permits = Arc::new(Semaphore::new(CONNECTING_MAX));
    let start = |spec: ServerSpec| {
        let same = before.iter().find(|server| {
            server.name == spec.name()
                && server.table == spec.table
                && server.endpoint.has_same_secrets(&spec.settings.endpoint)
        });
        same.cloned().unwrap_or_else(|| {
            let (permits, news) = (Arc::clone(&permits), Arc::clone(news));
            Arc::new(SupervisedServer::start(spec, permits, news, operator.clone()))
        })
    };
    specs.into_iter().map(start).collect()
}

/// Waits until the first attempt for every server has ended, or a few seconds. Notes the servers
/// that are missing then.
pub(crate) async fn wait_for_all(servers: &[Arc<SupervisedServer>], operator: &Operator) {
    let all_tried = async {
        for server in servers {
            // An error means that the task has ended.
            let _ = server.tried.clone().wait_for(|tried| *tried).await;
        }
    };
    if tokio::time::timeout(START_WAIT, all_tried).await.is_err() {
        for server in servers.iter().filter(|server| !*server.tried.borrow()) {
            operator.note(&format!(
                "the server `{}` is not connected yet; its tools are added once it is",
                server.name
            ));
        }
    }
}

/// Connects, retrying until it succeeds, and then announces changes until the connection ends.
async fn supervise(
    spec: ServerSpec,
    permits: Arc<Semaphore>,
    slot: Arc<Mutex<Option<Arc<RemoteServer>>>>,
    first: watch::Sender<bool>,
    news: ChangeSignal,
    operator: Operator,
) {
    let mut attempts = 0_u32;
    let server = loop {
        attempts = attempts.saturating_add(1);
        let permit = permit(&spec, &permits).await;
        let connected = connect(&spec).await;
        drop(permit);
        match connected {
            Ok(server) => break Arc::new(server),
            Err(unreachable) if *first.borrow() => {
                tracing::info!(
                    server = unreachable.name,
                    reason = unreachable.reason,
                    "still not there"
                );
            }
            Err(unreachable) => {
                operator.note(&format!("{unreachable}; it is tried again in the background"));
            }
        }
        if !first.send_replace(true) {
            // Calls need not wait for this server any longer.
            news.notify_one();
        }
        tokio::time::sleep(ATTEMPTS.pause_after(attempts).unwrap_or(ATTEMPTS.pause_max)).await;
    };
    let mut changes = server.changes();
    slot.lock().replace(Arc::clone(&server));
    if first.send_replace(true) {
        operator.note(&format!("connected to the server `{}`: {}", spec.name(), offers(&server)));
    }
    loop {
        if let Some(pins) = &spec.pins {
            pins.tell();
        }
        news.notify_one();
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = accepted(&spec) => if let Err(error) = server.review_again().await {
                operator.note(&format!("a change of the server `{}` is not used: {error}", spec.name()));
                tokio::time::sleep(ATTEMPTS.pause_max).await;
            },
        }
    }
}

/// Waits until a change of the server may have been accepted.
async fn accepted(spec: &ServerSpec) {
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        if spec.pins.as_ref().is_some_and(|pins| pins.may_be_accepted()) {
            return;
        }
    }
}

fn offers(server: &RemoteServer) -> String {
    text::counted(server.definitions().len(), "tool")
}
