//! Tools on several machines: workers run the calls, gateways take them from MCP clients.
//!
//! A worker offers the tools of a selection; its configuration decides what they may do. A gateway
//! has no plugins of its own. It looks for the tools of workers when it starts and from then on, so
//! that workers can come, go and change while it runs.

mod collector;
mod rollout;
mod worker;
mod workers;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_cluster::bus::BusState;
use cofferdam_cluster::keyed::{KeyedResults, MemoryResults};
pub use cofferdam_cluster::nats::ClientCertificate;
use cofferdam_cluster::nats::{NatsBus, NatsError, NatsOptions, NatsResults};
use cofferdam_cluster::{
    Bus as _, ClusterError, Dispatcher, DispatcherOptions, SourceVersion, Tenant,
};
use cofferdam_mcp::{Server, SharedSessions, SharedTasks, TakenTask};
use cofferdam_tool::ToolSource;
use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::collector::{CollectionReport, Collector, CollectorOptions};
pub(crate) use self::rollout::Rollout;
pub use self::worker::{LoadedWorker, WorkerConnection, WorkerSettings};
use crate::monitoring::HealthReport;
use crate::servers::ChangeSignal;
use crate::{Error, Operator, Result, text};

/// Interval in which a gateway looks for changes of the workers' tools that were not announced.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// Time for which a source is still offered when no worker has it.
const MISSING_MAX: Duration = Duration::from_secs(15);

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
    /// Certificate for NATS servers that ask for one.
    pub certificate: Option<ClientCertificate>,
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
            certificate: self.certificate.clone(),
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

/// Returns what keeps a gateway or a worker from its work, for its health page.
fn problem_of(state: BusState) -> Option<&'static str> {
    match state {
        BusState::Connected => None,
        BusState::SubscriptionRefused => {
            Some("NATS refuses a subscription; check the permissions of the user")
        }
        _ => Some("not connected to NATS"),
    }
}

/// Tools that workers have at present. Clones share state.
#[derive(Clone)]
pub struct RemoteTools {
    bus: Arc<NatsBus>,
    dispatcher: Arc<Dispatcher>,
    /// True if gateways share results, so that they can continue each other's tasks.
    shares_results: bool,
    found: Arc<Mutex<FoundSources>>,
}

/// Versions of each source, by name and version.
#[derive(Default)]
struct FoundSources {
    sources: BTreeMap<String, BTreeMap<String, FoundVersion>>,
    /// Last warnings about versions that no worker has.
    warnings: Vec<String>,
}

struct FoundVersion {
    version: SourceVersion,
    /// Time of the last look at which a worker had it.
    seen: Instant,
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
        let started = Dispatcher::start(Arc::clone(&bus) as _, options).await;
        let dispatcher = started.map_err(not_started)?;
        let tools = Self { bus, dispatcher, shares_results, found: Arc::default() };
        tools.refresh().await;
        if tools.found.lock().sources.is_empty() {
            operator.note(&format!("warning: {}", ClusterError::NoWorkers));
        }
        Ok(tools)
    }

    /// Returns the sources of tools that a rollout offers to callers with this percentile, from 0
    /// to 99.
    pub(crate) fn sources(&self, rollout: &Rollout, percentile: u8) -> Vec<Arc<dyn ToolSource>> {
        let found = self.found.lock();
        let sources = found.sources.iter();
        let offered = sources.filter_map(|(name, versions)| {
            let most = most_workers(versions)?;
            let Some(mut named) = rollout.versions(name, percentile) else {
                return Some(Arc::clone(&most.source) as Arc<dyn ToolSource>);
            };
            let pin = named.clone().last()?;
            let there = named.find_map(|version| versions.get(version));
            Some(match there {
                Some(there) => Arc::clone(&there.version.source) as Arc<dyn ToolSource>,
                None => Arc::new(most.source.absent(pin)),
            })
        });
        offered.collect()
    }

    /// Warns the operator of versions in a rollout that no worker has, once.
    pub(crate) fn note_absent(&self, rollout: &Rollout, operator: &Operator) {
        let mut found = self.found.lock();
        let absent = rollout.named().filter_map(|(name, key, version)| {
            let versions = found.sources.get(name);
            if versions.is_some_and(|versions| versions.contains_key(version)) {
                return None;
            }
            let others: Vec<_> = versions.into_iter().flatten().map(described).collect();
            let there = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
            let effect = match key {
                "pin" => "its tools are unavailable",
                _ => "its callers get the pinned version",
            };
            Some(format!(
                "warning: no worker has version {version} of `{name}` (`{key}`), so that {effect}; \
                 workers have: {there}"
            ))
        });
        let warnings: Vec<_> = absent.collect();
        let new = warnings.iter().filter(|warning| !found.warnings.contains(warning));
        new.for_each(|warning| operator.note(warning));
        found.warnings = warnings;
    }

    /// Lets other gateways continue the tasks and sessions of a server, if they share results.
    pub(crate) fn share(&self, server: &Server) {
        if self.shares_results {
            server.share_tasks(Arc::new(self.clone()));
            server.share_sessions(Arc::new(self.clone()));
        }
    }

    /// Returns the health of a gateway: it can call workers while it is connected to NATS.
    pub(crate) fn health(&self) -> HealthReport {
        if let Some(problem) = problem_of(self.bus.state()) {
            return HealthReport::new(false, format!("cannot call workers: {problem}"));
        }
        let sources = text::counted(self.found.lock().sources.len(), "source");
        HealthReport::new(true, format!("serving tools of workers: {sources}"))
    }

    /// Looks for the tools of workers. Returns whether they have changed.
    async fn refresh(&self) -> bool {
        let versions = self.dispatcher.versions().await.unwrap_or_default();
        self.found.lock().update(versions, Instant::now())
    }

    /// Looks for changes for as long as the returned guard lives, and announces them.
    pub(crate) fn follow(&self, news: ChangeSignal) -> DropGuard {
        let (tools, stop) = (self.clone(), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move {
            let following = async {
                loop {
                    let change = tools.dispatcher.workers_changed();
                    let _ = tokio::time::timeout(DISCOVERY_INTERVAL, change).await;
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

impl FoundSources {
    /// Updates the versions with those that were found. Returns whether there is a change. A
    /// version that was not found stays for a while: its workers may be busy, or not connected at
    /// the moment.
    fn update(&mut self, versions: Vec<SourceVersion>, now: Instant) -> bool {
        let before = self.offers();
        for version in versions {
            let (name, key) = (version.source.name().to_owned(), version.source.version());
            let of_source = self.sources.entry(name).or_default();
            let found = FoundVersion { seen: now, version: version.clone() };
            of_source.insert(key.to_owned(), found);
        }
        for versions in self.sources.values_mut() {
            versions.retain(|_, known| now.duration_since(known.seen) < MISSING_MAX);
        }
        self.sources.retain(|_, versions| !versions.is_empty());
        before != self.offers()
    }

    /// Returns the versions of each source, and the one that most workers have.
    fn offers(&self) -> Vec<(String, Vec<String>, Option<String>)> {
        let offer = |(name, versions): (&String, &BTreeMap<String, FoundVersion>)| {
            let most = most_workers(versions).map(|most| most.source.version().to_owned());
            (name.clone(), versions.keys().cloned().collect(), most)
        };
        self.sources.iter().map(offer).collect()
    }
}

/// Returns the version that most workers have, of those that were found last.
fn most_workers(versions: &BTreeMap<String, FoundVersion>) -> Option<&SourceVersion> {
    let order = |known: &&FoundVersion| (Reverse(known.seen), Reverse(known.version.workers));
    versions.values().min_by_key(order).map(|known| &known.version)
}

fn described((version, known): (&String, &FoundVersion)) -> String {
    format!("{version} ({})", text::counted(known.version.workers, "worker"))
}

/// Version of a plugin or server that workers have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetVersion {
    /// Name of the plugin or server.
    pub source: String,
    /// Version, as the configuration of a gateway names it.
    pub version: String,
    /// Number of workers that have it.
    pub workers: usize,
    /// Digest of the component; `None` for what is not a plugin.
    pub digest: Option<String>,
    /// Names of the tools.
    pub tools: Vec<String>,
}

/// Returns the versions that workers of a cluster have, by source.
///
/// # Errors
/// Returns an error if there is no connection, or no worker answers.
pub async fn fleet(options: &ClusterOptions) -> Result<Vec<FleetVersion>> {
    let tenant = options.to_tenant()?;
    let bus = options.connect("cofferdam fleet").await?;
    let options = DispatcherOptions { tenant, ..DispatcherOptions::default() };
    let dispatcher = Dispatcher::start(bus, options).await.map_err(not_started)?;
    let versions = dispatcher.versions().await.map_err(not_started)?;
    let mut versions: Vec<_> = versions.iter().map(fleet_version).collect();
    versions.sort_by(|one, other| {
        let order =
            |it: &FleetVersion| (it.source.clone(), Reverse(it.workers), it.version.clone());
        order(one).cmp(&order(other))
    });
    Ok(versions)
}

fn fleet_version(found: &SourceVersion) -> FleetVersion {
    let SourceVersion { source, workers } = found;
    let definitions = source.definitions();
    FleetVersion {
        source: source.name().to_owned(),
        version: source.version().to_owned(),
        workers: *workers,
        digest: source.plugin_identity().map(|plugin| plugin.digest.to_string()),
        tools: definitions.iter().map(|tool| tool.name.to_string()).collect(),
    }
}
