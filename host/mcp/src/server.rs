//! Tools served over MCP (`MCP-37`): both revisions of the protocol, on standard input and output
//! or over HTTP.
//!
//! A [`Server`] answers from a snapshot of what is on offer ([`Offer`]), which can be replaced
//! while clients are connected. It keeps no state per client beyond what the earlier revision of
//! the protocol asks for: a call's state travels with its request, and a task belongs to a
//! principal and not to a connection.

// Logging, sampling, roots and subscriptions to one resource belong to the earlier revision, which
// is served as well.
#![expect(deprecated, reason = "clients of the handshake era use them")]

mod agent;
mod answer;
mod caller;
mod calls;
mod catalog;
mod changes;
mod grants;
mod handler;
mod interview;
mod keep;
mod lines;
mod methods;
mod names;
mod notify;
mod page;
mod passed;
mod principal;
mod prompts;
mod receipt;
mod report;
mod resources;
mod rounds;
mod search;
mod tasks;
mod waiting;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cofferdam_tool::schema::Dialect;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use rmcp::transport::io::stdio_pipes;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::agent::{Agent, AgentTool, InvalidAgent};
use self::catalog::Catalog;
pub use self::catalog::{Offer, PolicyDigest, SourceFacts, renamed};
use self::changes::Changes;
pub use self::grants::{Decision, Grantor, MissingGrant};
pub(crate) use self::handler::Handler;
pub(crate) use self::handler::STOPPING;
use self::keep::Keep;
pub(crate) use self::lines::Closing;
use self::lines::Lines;
pub(crate) use self::lines::{BATCH_MAX, BATCH_REVISION};
pub use self::principal::{InvalidToolPattern, Principal, ToolPattern};
pub use self::prompts::PromptOffer;
pub use self::receipt::Receipts;
pub use self::resources::{ListedResource, ResourceOffer, ResourceSource};
use self::rounds::Seal;
use self::tasks::Tasks;

/// Maximum time for calls in flight when the server is told to stop.
pub(crate) const DRAIN_MAX: Duration = Duration::from_secs(10);
/// Maximum time for calls in flight when a client has ended its input. It waits for the process to
/// end, and most clients kill it after two seconds.
const LEFT_MAX: Duration = Duration::from_secs(1);
/// Maximum time after the start in which a list waits for sources that are being loaded.
const LIST_WAIT: Duration = Duration::from_secs(2);

/// How a server behaves towards its clients.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The name that programs know the server by.
    pub name: String,
    /// The name that people know it by.
    pub title: String,
    /// Its version.
    pub version: String,
    /// Most items of one page of a list.
    pub page_size: usize,
    /// Longest text of a result, in bytes; a longer one is cut, and the whole of it can be read as
    /// a resource for an hour.
    pub text_bytes_max: usize,
    /// Receipts that results carry in `_meta`.
    pub receipts: Receipts,
    /// Whether a client sees two tools that find and call the others, instead of the others.
    pub searches: bool,
    /// Whether a person is asked, through the client, before a tool runs that needs approval.
    /// Otherwise that is left to the client.
    pub asks_approval: bool,
    /// Form in which clients see the schemas of tools. Arguments are decoded by the declaration
    /// itself in any case.
    pub dialect: Dialect,
    /// Tools that are not called for a client which cannot take a task: it would wait longer than
    /// clients do.
    pub only_as_task: BTreeSet<String>,
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
        }
    }
}

/// Serves tools to MCP clients. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
}

/// What all connections share.
pub(crate) struct Shared {
    catalog: watch::Sender<Arc<Catalog>>,
    options: ServerOptions,
    server_info: Value,
    seal: Seal,
    keep: Keep,
    tasks: Tasks,
    calls: AtomicU64,
    started: Instant,
    /// True if a client was told that there are prompts. It may then list them, even if there is
    /// none.
    announced_prompts: AtomicBool,
    stopped: CancellationToken,
    /// Calls that run.
    in_flight: TaskTracker,
    grantor: OnceLock<Arc<dyn Grantor>>,
}

/// Why a server does not start or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The operating system gives no random numbers, which states and addresses are sealed with.
    #[error("the system has no random numbers")]
    NoRandomNumbers,
    /// The connection broke before the first request was answered.
    #[error("the connection could not be used: {0}")]
    Connection(String),
}

impl Server {
    /// A server of what is on offer now.
    ///
    /// # Errors
    /// [`ServeError::NoRandomNumbers`].
    pub fn new(offer: Offer, options: ServerOptions) -> Result<Self, ServeError> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|_| ServeError::NoRandomNumbers)?;
        let seal = Seal::new(key).map_err(|_| ServeError::NoRandomNumbers)?;
        let server_info =
            json!({"name": options.name, "title": options.title, "version": options.version});
        let shared = Shared {
            catalog: watch::Sender::new(Arc::new(Catalog::new(offer, options.dialect))),
            options,
            server_info,
            seal,
            keep: Keep::default(),
            tasks: Tasks::default(),
            calls: AtomicU64::new(0),
            started: Instant::now(),
            announced_prompts: AtomicBool::new(false),
            stopped: CancellationToken::new(),
            in_flight: TaskTracker::new(),
            grantor: OnceLock::new(),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Lets clients ask their person for grants that sources lack. Without it a source stays as it
    /// is. The first one counts.
    pub fn set_grantor(&self, grantor: Arc<dyn Grantor>) {
        let _ = self.shared.grantor.set(grantor);
    }

    /// Replaces what is on offer. Calls in flight end on what they began with; clients that listen
    /// are told which lists have changed.
    pub fn publish(&self, offer: Offer) {
        self.shared
            .catalog
            .send_replace(Arc::new(Catalog::new(offer, self.shared.options.dialect)));
    }

    /// Serves one client on standard input and output until it closes them, or until `stop`. At the
    /// end of the input calls in flight have one second, and are canceled then; tasks end at once.
    /// After `stop` calls and tasks in flight have ten seconds to end, and no new one is begun. The
    /// client has ten more seconds to read its answers. Standard output belongs to the protocol
    /// from then on.
    ///
    /// # Errors
    /// [`ServeError::Connection`].
    pub async fn serve_stdio(&self, stop: CancellationToken) -> Result<(), ServeError> {
        let (input, output) = stdio_pipes();
        let served = self.serve_stream(input, output, stop).await;
        self.stop();
        served
    }

    /// Serves one client that writes lines to `input` and reads them from `output`, until it closes
    /// them, or until `stop` as [`Server::serve_stdio`] does. Whoever can write there is
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
        let closing = Closing::with(stop.clone());
        let last = closing.last.clone();
        let handler = Handler::new(Arc::clone(&self.shared), closing.clone());
        let end = CancellationToken::new();
        // Whatever happens here, the connection does not outlive this function.
        let _end = end.clone().drop_guard();
        let lines = Lines::new(input, output, closing);
        let flush = lines.flush();
        let serving = async {
            let running = match serve_server_with_ct(handler, lines, end).await {
                Ok(running) => running,
                // The client left, or the user ended the program, before there was a request.
                Err(
                    ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled,
                ) => {
                    return Ok(());
                }
                Err(error) => return Err(ServeError::Connection(error.to_string())),
            };
            let ended = running.waiting().await;
            if stop.is_cancelled() {
                // Tasks run without a request.
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
            // A call whose plugin is still being loaded has not begun; the SDK waits five seconds
            // for it.
            self.shared.catalog_when(DRAIN_MAX, |_| false).await;
            tokio::time::sleep(LEFT_MAX).await;
        };
        let served = tokio::select! {
            served = serving => served,
            () = overdue => Ok(()),
            () = left => Ok(()),
        };
        // A client that reads slowly gets the answers that there are. One that has gone does not
        // hold this up.
        let _ = tokio::time::timeout(DRAIN_MAX, flush).await;
        served
    }

    /// Ends subscriptions and tasks.
    pub fn stop(&self) {
        self.shared.stopped.cancel();
        self.shared.tasks.stop();
    }
}

impl Shared {
    fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.borrow())
    }

    /// The catalog for a list: sources that are being loaded are waited for shortly after the
    /// start, because not every client follows changes.
    async fn listed_catalog(&self) -> Arc<Catalog> {
        let wait = LIST_WAIT.saturating_sub(self.started.elapsed());
        self.catalog_when(wait, |_| false).await
    }

    /// The catalog as soon as it is `enough`, all sources are loaded, or `wait` has passed.
    async fn catalog_when(
        &self,
        wait: Duration,
        enough: impl Fn(&Catalog) -> bool + Send,
    ) -> Arc<Catalog> {
        let mut changes = self.catalog.subscribe();
        let enough = |catalog: &Arc<Catalog>| !catalog.is_loading() || enough(catalog);
        if !wait.is_zero() && !enough(&changes.borrow()) {
            // Without an answer in time, the list is what it is now.
            let _ = tokio::time::timeout(wait, changes.wait_for(enough)).await;
        }
        self.catalog()
    }

    /// Waits until no call runs, at most [`DRAIN_MAX`].
    pub(crate) async fn drained(&self) {
        self.in_flight.close();
        // What runs longer is cut off.
        let _ = tokio::time::timeout(DRAIN_MAX, self.in_flight.wait()).await;
    }

    fn changes(&self) -> Changes {
        Changes::new(self.catalog.subscribe())
    }

    fn next_call_id(&self) -> String {
        format!("mcp-{}", self.calls.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
