//! Tools on several machines: workers run the calls, gateways take them from MCP clients.
//!
//! A worker offers the tools of a [`Host`](crate::Host); its configuration decides what they may do. A gateway
//! has no plugins of its own. It looks for the tools of workers when it starts and from then on, so
//! that workers can come, go and change while it runs.

mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_cluster::keyed::{KeyedResults, MemoryResults};
use cofferdam_cluster::nats::{NatsBus, NatsError, NatsOptions, NatsResults};
use cofferdam_cluster::{ClusterError, Dispatcher, DispatcherOptions, RemoteSource, Tenant};
use cofferdam_mcp::{Server, SharedSessions, SharedTasks, TakenTask};
use cofferdam_tool::ToolSource;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::worker::{WorkerConnection, WorkerLimits};
use crate::servers::ChangeSignal;
use crate::{Error, Operator, Result};

/// Interval in which a gateway looks for changes of the workers' tools.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// Number of times in succession that a source has to be missing before it is no longer offered.
const MISSES_MAX: u32 = 3;

/// A cluster, and the credentials for it.
#[derive(Debug, Clone, Default)]
pub struct ClusterOptions {
    /// Addresses of NATS servers of one cluster: `nats://HOST:PORT` or `tls://HOST:PORT`, separated
    /// by commas.
    pub servers: String,
    /// Tenant: gateways see the tools of workers of their tenant only. The default is `default`.
    pub tenant: Option<String>,
    /// File with `USER:PASSWORD`, a token or an nkey seed in one line, or a `.creds` file.
    pub credentials_file: Option<PathBuf>,
    /// File with the certificates of authorities (PEM), instead of those of Mozilla.
    pub authorities_file: Option<PathBuf>,
    /// Store of a gateway for the results of calls with idempotency keys.
    pub results: ResultStorage,
}

/// Store for the results of calls with idempotency keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResultStorage {
    /// The memory of the gateway. A key holds for one gateway and is lost with it.
    #[default]
    Memory,
    /// JetStream of the NATS servers, which all gateways of the tenant share.
    JetStream,
}

impl ClusterOptions {
    fn to_tenant(&self) -> Result<Tenant> {
        match &self.tenant {
            Some(name) => Tenant::new(name.as_str())
                .map_err(|error| Error::invalid(format!("invalid tenant: {error}"))),
            None => Ok(Tenant::default()),
        }
    }

    async fn connect(&self, name: &str) -> Result<Arc<NatsBus>> {
        let options = NatsOptions {
            servers: self.servers.clone(),
            credentials_file: self.credentials_file.clone(),
            authorities_file: self.authorities_file.clone(),
            name: name.to_owned(),
        };
        NatsBus::connect_ambient(options).await.map(Arc::new).map_err(nats_error)
    }

    async fn results(&self, bus: &NatsBus, tenant: &Tenant) -> Result<Arc<dyn KeyedResults>> {
        Ok(match self.results {
            ResultStorage::Memory => Arc::new(MemoryResults::default()),
            ResultStorage::JetStream => {
                Arc::new(NatsResults::open(bus, tenant).await.map_err(nats_error)?)
            }
        })
    }
}

fn nats_error(error: NatsError) -> Error {
    match error {
        NatsError::Address { .. } | NatsError::File { .. } => Error::invalid(error.to_string()),
        other => Error::NotAccepted(other.to_string()),
    }
}

fn not_started(error: ClusterError) -> Error {
    match error {
        ClusterError::NoTools | ClusterError::SourceTooLarge { .. } => {
            Error::invalid(error.to_string())
        }
        other => Error::NotAccepted(other.to_string()),
    }
}

/// Tools that workers have at present. Clones share state.
#[derive(Clone)]
pub struct RemoteTools {
    dispatcher: Arc<Dispatcher>,
    /// True if gateways share results, so that they can continue each other's tasks.
    shares_results: bool,
    sources: Arc<Mutex<BTreeMap<String, FoundSource>>>,
}

#[derive(Clone)]
struct FoundSource {
    source: Arc<RemoteSource>,
    /// Number of times in succession that no worker had it.
    misses: u32,
}

impl RemoteTools {
    /// Connects a gateway to a cluster and looks for tools. Workers may still be missing, which is
    /// noted.
    ///
    /// # Errors
    /// Returns an error if there is no connection, or no store for results.
    pub async fn connect(options: &ClusterOptions, operator: &Operator) -> Result<Self> {
        let tenant = options.to_tenant()?;
        let bus = options.connect("cofferdam gateway").await?;
        let results = options.results(&bus, &tenant).await?;
        let shares_results = results.is_shared();
        let options = DispatcherOptions { tenant, results, ..DispatcherOptions::default() };
        let dispatcher = Dispatcher::start(bus, options).await.map_err(not_started)?;
        let tools = Self { dispatcher, shares_results, sources: Arc::default() };
        tools.refresh().await;
        if tools.sources().is_empty() {
            operator.note(&format!("warning: {}", ClusterError::NoWorkers));
        }
        Ok(tools)
    }

    /// Returns the sources of tools.
    #[must_use]
    pub fn sources(&self) -> Vec<Arc<dyn ToolSource>> {
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        sources.values().map(|found| Arc::clone(&found.source) as Arc<dyn ToolSource>).collect()
    }

    /// Lets other gateways continue the tasks and sessions of a server, if they share results.
    pub(crate) fn share(&self, server: &Server) {
        if self.shares_results {
            server.share_tasks(Arc::new(self.clone()));
            server.share_sessions(Arc::new(self.clone()));
        }
    }

    /// Looks for the tools of workers. Returns whether they have changed.
    async fn refresh(&self) -> bool {
        let found = self.dispatcher.discover().await.unwrap_or_default();
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        update(&mut sources, found)
    }

    /// Looks for changes for as long as the returned guard lives, and announces them.
    pub(crate) fn follow(&self, news: ChangeSignal) -> DropGuard {
        let (tools, stop) = (self.clone(), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move {
            let following = async {
                loop {
                    tokio::time::sleep(DISCOVERY_INTERVAL).await;
                    if tools.refresh().await {
                        news.notify_one();
                    }
                }
            };
            stopped.run_until_cancelled(following).await;
        });
        stop.drop_guard()
    }
}

#[async_trait]
impl SharedTasks for RemoteTools {
    async fn take_over(
        &self,
        caller: &str,
        id: &str,
    ) -> std::result::Result<Option<TakenTask>, String> {
        let taken = self.dispatcher.resume(caller, id).await.map_err(|error| {
            tracing::warn!(%error, "a task was not taken over");
            "the store of tasks does not answer at the moment; try again".to_owned()
        })?;
        Ok(taken.map(|call| TakenTask {
            tool: call.tool().clone(),
            run: Box::new(move |context| Box::pin(async move { call.run(&context).await })),
        }))
    }
}

#[async_trait]
impl SharedSessions for RemoteTools {
    async fn read(&self, id: &str) -> std::result::Result<Option<Vec<u8>>, String> {
        let value = self.dispatcher.read_shared(&format!("session {id}")).await;
        value.map(|value| value.map(Vec::from)).map_err(|error| error.to_string())
    }

    async fn write(&self, id: &str, value: Option<Vec<u8>>) -> std::result::Result<(), String> {
        let name = format!("session {id}");
        let written = self.dispatcher.write_shared(&name, value.unwrap_or_default().into()).await;
        written.map_err(|error| error.to_string())
    }
}

/// Updates the sources with those that were found. Returns whether there is a change. A source that
/// was not found stays for a while: its workers may be busy, or not connected at the moment.
fn update(sources: &mut BTreeMap<String, FoundSource>, found: Vec<Arc<RemoteSource>>) -> bool {
    let mut has_changed = false;
    sources.values_mut().for_each(|known| known.misses += 1);
    for source in found {
        let name = source.name().to_owned();
        let known = sources.get_mut(&name);
        match known.filter(|known| known.source.version() == source.version()) {
            Some(known) => known.misses = 0,
            None => {
                sources.insert(name, FoundSource { source, misses: 0 });
                has_changed = true;
            }
        }
    }
    let count = sources.len();
    sources.retain(|_, known| known.misses < MISSES_MAX);
    has_changed || sources.len() < count
}
