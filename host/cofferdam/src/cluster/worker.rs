//! A worker: loaded tools that gateways call, and what monitoring systems see of it.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_cluster::bus::BusState;
use cofferdam_cluster::nats::NatsBus;
use cofferdam_cluster::{Bus as _, LogServer, Tenant, WorkerMonitor};
use cofferdam_engine::Engine;
use cofferdam_record::{CallMetrics, Gauge, LogFiles, gauges_text};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::workers::Workers;
use super::{ClusterOptions, not_started, problem_of};
use crate::monitoring::{self, HealthReport, MonitoringSource};
use crate::records::CallLog;
use crate::serve::{FollowedTools, OfferTarget, ServeOptions};
use crate::{Error, Operator, Result, Selection};

/// Maximum time to wait for a collector at the end.
const COLLECTOR_WAIT_MAX: Duration = Duration::from_secs(5);

/// Settings of a worker.
#[derive(Debug, Clone, Copy)]
pub struct WorkerSettings {
    /// Maximum number of calls at the same time.
    pub calls_max: usize,
    /// Maximum number of calls of one caller. The default is `calls_max`.
    pub caller_calls_max: Option<usize>,
    /// Maximum time to wait for running calls at the end.
    pub drain_wait: Duration,
    /// True if the worker reloads plugins and configuration when they change.
    pub follows_changes: bool,
    /// True if a [`Collector`](super::Collector) may copy the call log.
    pub offers_records: bool,
}

/// Connection of a worker to its cluster.
pub struct WorkerConnection {
    pub(super) bus: Arc<NatsBus>,
    pub(super) tenant: Tenant,
    pub(super) monitored: Arc<MonitoredWorker>,
    /// Ends the monitoring pages.
    monitoring: Option<DropGuard>,
}

impl WorkerConnection {
    /// Connects to a cluster. Gateways do not see the worker before it runs.
    ///
    /// # Errors
    /// Returns an error if there is no connection.
    pub async fn open(options: &ClusterOptions) -> Result<Self> {
        let tenant = options.to_tenant()?;
        let bus = options.connect("cofferdam worker").await?;
        let monitored =
            Arc::new(MonitoredWorker { bus: Arc::clone(&bus), state: Mutex::default() });
        Ok(Self { bus, tenant, monitored, monitoring: None })
    }

    /// Serves `/healthz` and `/metrics` until the worker has ended. It is healthy while it takes
    /// calls, so not before it runs, while it drains, and without a connection to NATS. Every
    /// client that can connect to `listener` may read the pages: they have the names of tools and
    /// plugins, but nothing of the calls themselves.
    pub fn serve_monitoring(&mut self, listener: TcpListener) {
        let stop = CancellationToken::new();
        monitoring::serve(listener, Arc::clone(&self.monitored), stop.clone());
        self.monitoring = Some(stop.drop_guard());
    }

    /// Loads the tools of a selection, and asks the operator for missing grants.
    ///
    /// # Errors
    /// Returns an error if the selection or its configuration is invalid, if a plugin could write a
    /// file that controls its grants, or if nothing can be loaded.
    pub async fn load(
        self,
        engine: Engine,
        selection: Selection,
        settings: WorkerSettings,
        operator: &Operator,
    ) -> Result<LoadedWorker> {
        let options = ServeOptions {
            follows_changes: settings.follows_changes,
            counts_calls: self.monitoring.is_some(),
            ..ServeOptions::new(selection)
        };
        let (bus, tenant) = (Arc::clone(&self.bus), self.tenant.clone());
        let workers = Arc::new(Workers::new(self, settings, operator));
        let target = Arc::clone(&workers) as Arc<dyn OfferTarget>;
        let tools = FollowedTools::load(engine, options, target, operator).await?;
        let log_server = match settings.offers_records {
            true => Some(serve_log(bus, &tenant, tools.call_log()).await?),
            false => None,
        };
        Ok(LoadedWorker { workers, tools, log_server })
    }
}

/// Gives out the call log of a worker.
async fn serve_log(
    bus: Arc<NatsBus>,
    tenant: &Tenant,
    log: Option<&Arc<CallLog>>,
) -> Result<LogServer> {
    let log = log.ok_or_else(|| {
        Error::invalid(
            "expected a call log that can be given out, found that calls are not recorded",
        )
    })?;
    let files =
        LogFiles::open(log.directory()).map_err(|error| Error::invalid(error.to_string()))?;
    LogServer::start(bus, tenant, files).await.map_err(not_started)
}

/// A worker whose tools are loaded. Gateways do not see it before it runs.
pub struct LoadedWorker {
    workers: Arc<Workers>,
    tools: FollowedTools,
    log_server: Option<LogServer>,
}

impl LoadedWorker {
    /// Offers the tools to gateways until `stop` is canceled. Then the worker takes no more calls
    /// and waits for those that run. If it follows changes, gateways are offered changed tools, and
    /// calls that run end with the tools that they began with.
    ///
    /// # Errors
    /// Returns an error if there are no tools, or the connection is lost at the start.
    pub async fn run(self, stop: CancellationToken) -> Result<()> {
        self.tools.publish(&stop).await?;
        self.workers.drain().await;
        if let Some(log) = self.tools.call_log() {
            log.finish().await;
        }
        if let Some(server) = self.log_server {
            server.finish(COLLECTOR_WAIT_MAX).await;
        }
        Ok(())
    }
}

/// Parts of a running worker that monitoring systems see.
pub(super) struct RunningWorker {
    pub(super) monitor: WorkerMonitor,
    pub(super) log: Option<Arc<CallLog>>,
    pub(super) metrics: Option<Arc<CallMetrics>>,
}

/// A worker that runs, or loads its plugins.
pub(super) struct MonitoredWorker {
    bus: Arc<NatsBus>,
    state: Mutex<Option<RunningWorker>>,
}

impl MonitoredWorker {
    /// Shows another worker from now on.
    pub(super) fn set(&self, running: RunningWorker) {
        *self.state.lock() = Some(running);
    }
}

impl MonitoringSource for Arc<MonitoredWorker> {
    fn health(&self) -> HealthReport {
        let running = self.state.lock();
        let Some(RunningWorker { monitor, log, .. }) = &*running else {
            return HealthReport::new(false, "starting: loading plugins");
        };
        let status = monitor.status();
        let report = match problem_of(status.bus) {
            _ if status.is_draining => {
                let calls = status.calls;
                HealthReport::new(false, format!("draining: calls that still run: {calls}"))
            }
            Some(problem) => HealthReport::new(false, format!("taking no calls: {problem}")),
            None => HealthReport::new(true, "taking calls"),
        };
        report.with_log(log.as_deref())
    }

    fn metrics(&self) -> Option<String> {
        let is_connected = self.bus.state() != BusState::Disconnected;
        let mut gauges = vec![Gauge {
            name: "cofferdam_worker_connected",
            help: "1 if the worker is connected to NATS, else 0.",
            value: u64::from(is_connected),
        }];
        let running = self.state.lock();
        let Some(running) = &*running else { return Some(gauges_text(&gauges)) };
        let status = running.monitor.status();
        gauges.extend([
            Gauge {
                name: "cofferdam_worker_draining",
                help: "1 if the worker takes no more calls because it ends, else 0.",
                value: u64::from(status.is_draining),
            },
            Gauge {
                name: "cofferdam_worker_calls",
                help: "Calls that run or are about to, each with a permit.",
                value: u64::try_from(status.calls).unwrap_or(u64::MAX),
            },
            Gauge {
                name: "cofferdam_worker_calls_max",
                help: "Permits for concurrent calls (--calls).",
                value: u64::try_from(status.calls_max).unwrap_or(u64::MAX),
            },
        ]);
        let calls = running.metrics.as_ref().map(|metrics| metrics.prometheus());
        Some(calls.unwrap_or_default() + &gauges_text(&gauges))
    }
}
