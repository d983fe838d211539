//! Serves tools over MCP (`MCP-37`): both generations of the protocol, on standard input and output
//! or over HTTP.
//!
//! A [`Server`] answers from a snapshot of the catalog ([`Offer`]), which can be replaced while
//! clients are connected. It keeps no state per client beyond what the earlier revisions of the
//! protocol require: the state of a call travels with its request, and a task belongs to a
//! principal, not to a connection.

// Logging, sampling, roots and subscriptions to single resources belong to the earlier revisions,
// which are served as well.
#![expect(deprecated, reason = "clients of the handshake era use them")]

mod agent;
mod answer;
mod caller;
mod calls;
mod catalog;
mod changes;
mod elicitation;
mod forwarded_items;
mod grants;
mod handler;
mod lines;
mod methods;
mod names;
mod notify;
mod operator_prompts;
mod page;
mod principal;
mod prompts;
mod receipt;
mod report;
mod resources;
mod result_store;
mod rounds;
mod search;
mod sent_question;
mod shared_tasks;
mod subscriptions;
mod tasks;
mod waiting;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cofferdam_tool::prompt::PendingPrompts;
use cofferdam_tool::schema::Dialect;
use cofferdam_tool::{ToolDefinition, Toolset};
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::io;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::agent::{Agent, AgentTool, InvalidAgent};
pub use self::catalog::{
    CallRules, Offer, OfferVariant, PolicyDigest, RuleDecision, SourceFacts, renamed,
};
use self::catalog::{Catalog, Catalogs};
use self::changes::Changes;
pub use self::grants::{GrantDecision, Grantor, MissingGrant};
pub(crate) use self::handler::Handler;
pub(crate) use self::handler::STOPPING;
pub(crate) use self::lines::CloseSignals;
use self::lines::LineTransport;
pub(crate) use self::lines::{BATCH_MAX, BATCH_REVISION};
use self::operator_prompts::DetachedPrompts;
pub use self::principal::Principal;
pub use self::prompts::PromptOffer;
pub use self::receipt::Receipts;
pub use self::resources::{ListedResource, ResourceOffer, ResourceSource};
use self::result_store::ResultStore;
use self::rounds::Seal;
use self::shared_tasks::TakeOverLocks;
pub use self::shared_tasks::{SharedTasks, TakenTask};
use self::tasks::Tasks;
use crate::http::SharedSessions;

/// Maximum time for calls in flight when the server is asked to stop.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Maximum time for calls in flight once a client has closed its input. Such a client is waiting
/// for the process to end, and most clients kill it after two seconds.
const LEFT_MAX: Duration = Duration::from_secs(1);
/// Maximum time after the start for which a list request waits for sources that are still loading.
const LIST_WAIT: Duration = Duration::from_secs(2);

/// Configuration of a server's behavior towards its clients.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Name of the server for programs.
    pub name: String,
    /// Name of the server for display.
    pub title: String,
    /// Version of the server.
    pub version: String,
    /// Maximum number of items in one page of a list.
    pub page_size: usize,
    /// Maximum size of the text content of a result, in bytes. Longer content is truncated, and the
    /// client can read all of it as a resource for an hour.
    pub text_bytes_max: usize,
    /// Receipts to attach to results in `_meta`.
    pub receipts: Receipts,
    /// True if clients see two tools that find and call the others, instead of the others
    /// themselves.
    pub searches: bool,
    /// True if the server asks the user, through the client, before running a tool that needs
    /// approval. Otherwise approval is left to the client.
    pub asks_approval: bool,
    /// Dialect in which clients see the schemas of tools. Arguments are always decoded by the
    /// declaration itself.
    pub dialect: Dialect,
    /// Tools that are only run for clients that accept tasks. Other clients would time out before
    /// the call ends.
    pub only_as_task: BTreeSet<String>,
    /// Prompts of an operator, who sees the questions to the user and may answer before the client
    /// does.
    pub prompts: Option<PendingPrompts>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            name: "cofferdam".to_owned(),
            title: "Cofferdam".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            page_size: 250,
            text_bytes_max: 96 * 1024,
            receipts: Receipts::default(),
            searches: false,
            asks_approval: true,
            dialect: Dialect::Portable,
            only_as_task: BTreeSet::new(),
            prompts: None,
        }
    }
}

/// MCP server for a set of tools. Cloning is cheap; clones share state.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<ServerShared>,
}

/// State shared by all connections.
pub(crate) struct ServerShared {
    catalogs: watch::Sender<Arc<Catalogs>>,
    options: ServerOptions,
    server_info: Value,
    seal: Seal,
    keep: ResultStore,
    tasks: Tasks,
    shared_tasks: OnceLock<Arc<dyn SharedTasks>>,
    pub(crate) shared_sessions: OnceLock<Arc<dyn SharedSessions>>,
    taking_over: TakeOverLocks,
    /// Prompts of calls whose client has to come back.
    detached: Arc<DetachedPrompts>,
    calls: AtomicU64,
    started: Instant,
    /// True if a client received the prompts capability. It may then list them even if there are
    /// none.
    announced_prompts: AtomicBool,
    stopped: CancellationToken,
    /// Tracks the running calls.
    in_flight: TaskTracker,
    grantor: OnceLock<Arc<dyn Grantor>>,
}

/// Error that keeps a server from starting or ends it early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The operating system provides no random numbers, which the keys of states and resource
    /// addresses need.
    #[error("the system provides no random numbers")]
    NoRandomNumbers,
    /// The connection broke before the first request was answered.
    #[error("the connection could not be used: {0}")]
    Connection(String),
}

/// Returns standard input and output for one reader and one writer. Pipes are read and written
/// without other threads on Linux; anything else is read and written by blocking threads.
pub fn standard_streams()
-> (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static) {
    io::stdio_pipes()
}

impl Server {
    /// Creates a server for the given offer.
    ///
    /// # Errors
    /// [`ServeError::NoRandomNumbers`].
    pub fn new(offer: Offer, options: ServerOptions) -> Result<Self, ServeError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| ServeError::NoRandomNumbers)?;
        let seal = Seal::new(key).map_err(|_| ServeError::NoRandomNumbers)?;
        let server_info =
            json!({"name": options.name, "title": options.title, "version": options.version});
        let shared = ServerShared {
            catalogs: watch::Sender::new(Arc::new(Catalogs::new(offer, options.dialect))),
            options,
            server_info,
            seal,
            keep: ResultStore::default(),
            tasks: Tasks::default(),
            shared_tasks: OnceLock::new(),
            shared_sessions: OnceLock::new(),
            taking_over: TakeOverLocks::default(),
            detached: Arc::default(),
            calls: AtomicU64::new(0),
            started: Instant::now(),
            announced_prompts: AtomicBool::new(false),
            stopped: CancellationToken::new(),
            in_flight: TaskTracker::new(),
            grantor: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Lets the server ask users, through their clients, for grants that sources are missing.
    /// Without a grantor, the grants of a source do not change. Only the first grantor that is set
    /// takes effect.
    pub fn set_grantor(&self, grantor: Arc<dyn Grantor>) {
        let _ = self.shared.grantor.set(grantor);
    }

    /// Lets other servers continue the tasks of this one, and this one theirs. Only the first store
    /// that is set takes effect.
    pub fn share_tasks(&self, tasks: Arc<dyn SharedTasks>) {
        let _ = self.shared.shared_tasks.set(tasks);
    }

    /// Lets other servers continue the sessions of HTTP clients, and this one theirs. Only the
    /// first store that is set takes effect, from the next [`serve_http`](Self::serve_http) on.
    pub fn share_sessions(&self, sessions: Arc<dyn SharedSessions>) {
        let _ = self.shared.shared_sessions.set(sessions);
    }

    /// Returns the tools that clients see now, without the limits of any principal and without
    /// [variants](Offer::variants).
    #[must_use]
    pub fn listed_tools(&self) -> Toolset {
        let catalog = self.shared.main_catalog();
        let listed: BTreeSet<_> = catalog
            .tools
            .iter()
            .filter(|entry| entry.is_listed)
            .map(|entry| entry.definition.name.as_str())
            .collect();
        catalog.toolset.restrict(|definition| listed.contains(definition.name.as_str()))
    }

    /// Returns the decision of the rules about a call of a client, if there are rules. `arguments`
    /// are JSON.
    #[must_use]
    pub fn rule_decision(&self, tool: &ToolDefinition, arguments: &str) -> Option<RuleDecision> {
        let catalog = self.shared.main_catalog();
        catalog.rules.as_ref().map(|rules| rules.decide(tool, arguments, &catalog.toolset))
    }

    /// Replaces the offer. Calls in flight finish with the offer that they started with; subscribed
    /// clients are notified of the lists that have changed.
    pub fn publish(&self, offer: Offer) {
        self.shared
            .catalogs
            .send_replace(Arc::new(Catalogs::new(offer, self.shared.options.dialect)));
    }

    /// Serves one client on standard input and output until the client closes them or `stop` fires.
    /// At the end of the input, calls in flight have one second before they are canceled; tasks end
    /// at once. After `stop`, calls and tasks in flight have ten seconds to end, and no new ones
    /// start; the client then has ten more seconds to read its responses. The protocol owns
    /// standard output from this call on.
    ///
    /// # Errors
    /// [`ServeError::Connection`].
    pub async fn serve_stdio(&self, stop: CancellationToken) -> Result<(), ServeError> {
        let (input, output) = standard_streams();
        let served = self.serve_stream(input, output, stop).await;
        self.stop();
        served
    }

    /// Serves one client that writes lines to `input` and reads them from `output`, until it closes
    /// them or `stop` fires, as [`Server::serve_stdio`] does. The client acts as
    /// [`Principal::local`].
    ///
    /// # Errors
    /// [`ServeError::Connection`].
    pub async fn serve_stream(
        &self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        let closing = CloseSignals::with(stop.clone());
        let last = closing.last.clone();
        let handler = Handler::new(Arc::clone(&self.shared), closing.clone());
        let end = CancellationToken::new();
        // The connection does not outlive this function, however it returns.
        let _end = end.clone().drop_guard();
        let lines = LineTransport::new(input, output, closing);
        let flush = lines.flush();
        let serving = async {
            let running = match serve_server_with_ct(handler, lines, end).await {
                Ok(running) => running,
                // The client disconnected, or the user ended the program, before the first request.
                Err(
                    ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled,
                ) => {
                    return Ok(());
                }
                Err(error) => return Err(ServeError::Connection(error.to_string())),
            };
            let ended = running.waiting().await;
            if stop.is_cancelled() {
                // Tasks outlive their requests.
                self.shared.drained().await;
            }
            ended.map(|_| ()).map_err(|error| ServeError::Connection(error.to_string()))
        };
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(DRAIN_MAX).await;
        };
        let left = async {
            last.cancelled().await;
            if stop.is_cancelled() {
                return std::future::pending().await;
            }
            // A call whose plugin is still loading has not started; the SDK waits five seconds for
            // it.
            self.shared.catalog_when(&Principal::local(), DRAIN_MAX, |_| false).await;
            tokio::time::sleep(LEFT_MAX).await;
        };
        let served = tokio::select! {
            served = serving => served,
            () = overdue => Ok(()),
            () = left => Ok(()),
        };
        // A slow reader still gets the responses that are ready. A client that is gone does not
        // delay this.
        let _ = tokio::time::timeout(DRAIN_MAX, flush).await;
        served
    }

    /// Ends subscriptions and tasks.
    pub fn stop(&self) {
        self.shared.stopped.cancel();
        self.shared.tasks.stop();
    }
}

impl ServerShared {
    /// Returns the catalog of a principal.
    fn catalog(&self, principal: &Principal) -> Arc<Catalog> {
        Arc::clone(self.catalogs.borrow().of(principal))
    }

    /// Returns the catalog of the principals that get no variant.
    fn main_catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalogs.borrow().main)
    }

    /// Returns the catalog for a list request. Shortly after the start it waits for sources that
    /// are still loading, because not every client follows changes.
    async fn listed_catalog(&self, principal: &Principal) -> Arc<Catalog> {
        let wait = LIST_WAIT.saturating_sub(self.started.elapsed());
        self.catalog_when(principal, wait, |_| false).await
    }

    /// Returns the catalog of a principal once it is `enough`, all sources are loaded, or `wait`
    /// has passed.
    async fn catalog_when(
        &self,
        principal: &Principal,
        wait: Duration,
        enough: impl Fn(&Catalog) -> bool + Send,
    ) -> Arc<Catalog> {
        let mut changes = self.catalogs.subscribe();
        let enough = |catalogs: &Arc<Catalogs>| {
            let catalog = catalogs.of(principal);
            !catalog.is_loading() || enough(catalog)
        };
        if !wait.is_zero() && !enough(&changes.borrow()) {
            // On a timeout, the list is built from the current state.
            let _ = tokio::time::timeout(wait, changes.wait_for(enough)).await;
        }
        self.catalog(principal)
    }

    /// Waits until no call is running, for at most [`DRAIN_MAX`].
    pub(crate) async fn drained(&self) {
        self.in_flight.close();
        // Calls that take longer are cut off.
        let _ = tokio::time::timeout(DRAIN_MAX, self.in_flight.wait()).await;
    }

    fn changes(&self) -> Changes {
        Changes::new(self.catalogs.subscribe())
    }

    fn next_call_id(&self) -> String {
        format!("mcp-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
