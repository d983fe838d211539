//! A worker: the tools of a host, which gateways call.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cofferdam_cluster::bus::BusState;
use cofferdam_cluster::nats::NatsBus;
use cofferdam_cluster::{Bus as _, Tenant, Worker, WorkerMonitor, WorkerOptions};
use cofferdam_record::{CallMetrics, Gauge, gauges_text};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ClusterOptions, not_started};
use crate::monitoring::{self, HealthReport, MonitoringSource};
use crate::records::CallLog;
use crate::{Host, Operator, Result};

/// Number of calls that a worker runs at the same time.
#[derive(Debug, Clone, Copy)]
pub struct WorkerLimits {
    /// Maximum number of calls.
    pub calls_max: usize,
    /// Maximum number of calls of one caller. The default is `calls_max`.
    pub caller_calls_max: Option<usize>,
}

/// Connection of a worker to its cluster.
pub struct WorkerConnection {
    bus: Arc<NatsBus>,
    tenant: Tenant,
    /// Worker that runs.
    running: Arc<OnceLock<RunningWorker>>,
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
        Ok(Self { bus, tenant, running: Arc::default(), monitoring: None })
    }

    /// Serves `/healthz` and `/metrics` until the worker has ended. It is healthy while it takes
    /// calls, so not before it runs, while it drains, and without a connection to NATS. Calls are
    /// counted if the host [counts](crate::HostBuilder::counts_calls) them. Every client that can
    /// connect to `listener` may read the pages: they have the names of tools and plugins, but
    /// nothing of the calls themselves.
    pub fn serve_monitoring(&mut self, listener: TcpListener) {
        let stop = CancellationToken::new();
        let (bus, running) = (Arc::clone(&self.bus), Arc::clone(&self.running));
        monitoring::serve(listener, MonitoredWorker { bus, running }, stop.clone());
        self.monitoring = Some(stop.drop_guard());
    }

    /// Offers the tools of a host to gateways until `stop` is canceled. Then the worker takes no
    /// more calls and waits at most `drain_wait` for those that run.
    ///
    /// # Errors
    /// Returns an error if the host has no tools, or the connection is lost at the start.
    pub async fn run(
        self,
        host: &Host,
        limits: WorkerLimits,
        drain_wait: Duration,
        operator: &Operator,
        stop: CancellationToken,
    ) -> Result<()> {
        let Self { bus, tenant, running, monitoring } = self;
        let toolset = host.toolset().clone();
        let count = toolset.definitions().len();
        let options = WorkerOptions {
            tenant,
            calls_max: limits.calls_max,
            caller_calls_max: limits.caller_calls_max.unwrap_or(usize::MAX),
            ..WorkerOptions::default()
        };
        let worker = Worker::start(bus, toolset, options).await.map_err(not_started)?;
        running.get_or_init(|| RunningWorker {
            monitor: worker.monitor(),
            log: host.call_log().cloned(),
            metrics: host.metrics().cloned(),
        });
        let tools = if count == 1 { "tool" } else { "tools" };
        operator.note(&format!("worker {} is ready with {count} {tools}", worker.name()));
        stop.cancelled().await;
        operator.note(&format!("ending; calls that still run: {}", worker.calls()));
        worker.drain(drain_wait).await;
        if let Some(log) = host.call_log() {
            log.finish().await;
        }
        drop(monitoring);
        Ok(())
    }
}

/// Parts of a running worker that monitoring systems see.
struct RunningWorker {
    monitor: WorkerMonitor,
    log: Option<Arc<CallLog>>,
    metrics: Option<Arc<CallMetrics>>,
}

/// A worker that runs, or loads its plugins.
struct MonitoredWorker {
    bus: Arc<NatsBus>,
    running: Arc<OnceLock<RunningWorker>>,
}

impl MonitoringSource for MonitoredWorker {
    fn health(&self) -> HealthReport {
        let unhealthy = |state: &str| HealthReport::new(false, state);
        let Some(RunningWorker { monitor, log, .. }) = self.running.get() else {
            return unhealthy("starting: plugins are loaded");
        };
        let status = monitor.status();
        let report = match status.bus {
            _ if status.is_draining => {
                let calls = status.calls;
                HealthReport::new(false, format!("draining: calls that still run: {calls}"))
            }
            BusState::Connected => HealthReport::new(true, "taking calls"),
            BusState::SubscriptionRefused => unhealthy(
                "taking no calls: NATS refuses a subscription; check the permissions of the user",
            ),
            _ => unhealthy("taking no calls: not connected to NATS"),
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
        let Some(running) = self.running.get() else { return Some(gauges_text(&gauges)) };
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
