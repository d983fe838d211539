//! An MCP server for everything that a selection names, which follows changes while it runs.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::Engine;
use cofferdam_mcp::{Grantor, HttpOptions, Server, ServerOptions};
use cofferdam_record::CallMetrics;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
#[cfg(feature = "cluster")]
use tokio_util::sync::DropGuard;

use super::{RunningService, ServedAgents, ServedState, follow};
#[cfg(feature = "cluster")]
use crate::cluster::RemoteTools;
use crate::error::Context as _;
use crate::loading::Loader;
use crate::monitoring::{self, HealthReport, MonitoringSource};
use crate::records::CallLog;
use crate::servers::ChangeSignal;
use crate::{Error, FirstBuild, Operator, Result, Selection};

/// Maximum time to wait for a compiler to stop when the server ends.
const END_WAIT: Duration = Duration::from_millis(50);

/// Options of a [`Service`].
#[derive(Clone)]
pub struct ServeOptions {
    /// Plugins, servers, skills and files.
    pub selection: Selection,
    /// Agents and workflows to offer as tools, in addition to the selection.
    pub agents: ServedAgents,
    /// True if the server reloads plugins and configuration when they change.
    pub follows_changes: bool,
    /// Build that one of the plugins waits for.
    pub first_build: Option<FirstBuild>,
    /// Behavior of the MCP server.
    pub server: ServerOptions,
    /// True if the server counts its calls, for `/metrics`.
    pub counts_calls: bool,
    /// Tools of workers on other machines.
    #[cfg(feature = "cluster")]
    pub remote: Option<RemoteTools>,
}

impl ServeOptions {
    /// Returns options that offer everything of a selection and follow its changes.
    #[must_use]
    pub fn new(selection: Selection) -> Self {
        let server = ServerOptions {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ServerOptions::default()
        };
        Self {
            selection,
            agents: ServedAgents::default(),
            follows_changes: true,
            first_build: None,
            server,
            counts_calls: false,
            #[cfg(feature = "cluster")]
            remote: None,
        }
    }
}

impl ServeOptions {
    /// Returns whether the tools of workers are offered.
    pub(super) fn is_gateway(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.remote.is_some();
        #[cfg(not(feature = "cluster"))]
        false
    }
}

/// An MCP server that loads plugins in the background, connects to servers, and follows changes of
/// files.
pub struct Service {
    server: Server,
    running: Arc<RunningService>,
    loader: Loader,
    follows_changes: bool,
    call_log: Option<Arc<CallLog>>,
    metrics: Option<Arc<CallMetrics>>,
    operator: Operator,
    #[cfg(feature = "cluster")]
    _following: Option<DropGuard>,
}

impl Service {
    /// Starts a server. Plugins that have to be compiled are loaded later, while it serves.
    ///
    /// # Errors
    /// Returns an error if the selection or its configuration is invalid, or if a plugin could
    /// write a file that controls its grants.
    pub async fn start(engine: Engine, options: ServeOptions, operator: Operator) -> Result<Self> {
        let news = ChangeSignal::default();
        #[cfg(feature = "cluster")]
        let following = options.remote.as_ref().map(|remote| remote.follow(Arc::clone(&news)));
        let (offering, loader) =
            Box::pin(ServedState::start(&engine, &options, None, &news, &operator)).await?;
        offering.unavailable().for_each(|plugin| plugin.note(&operator));
        let mut server_options = options.server.clone();
        server_options.only_as_task = offering.only_as_task();
        let server = Server::new(offering.offer(&options)?, server_options)
            .context("the server does not start")?;
        #[cfg(feature = "cluster")]
        if let Some(remote) = &options.remote {
            remote.share(&server);
        }
        let follows_changes = options.follows_changes;
        let (call_log, metrics) = (offering.call_log(), offering.metrics());
        let target = Arc::new(server.clone());
        let running =
            RunningService::new(target, engine, options, offering, news, operator.clone());
        let running = Arc::new(running);
        server.set_grantor(Arc::clone(&running) as Arc<dyn Grantor>);
        Ok(Self {
            server,
            running,
            loader,
            follows_changes,
            call_log,
            metrics,
            operator,
            #[cfg(feature = "cluster")]
            _following: following,
        })
    }

    /// Serves `/healthz`, and `/metrics` if the options count calls, until `stop` is canceled.
    /// Every client that can connect to `listener` may read them: they have the names of tools and
    /// plugins, but nothing of the calls themselves.
    pub fn serve_monitoring(&self, listener: TcpListener, stop: CancellationToken) {
        let served = MonitoredService {
            log: self.call_log.clone(),
            metrics: self.metrics.clone(),
            #[cfg(feature = "cluster")]
            remote: self.running.options.remote.clone(),
        };
        monitoring::serve(listener, served, stop);
    }

    /// Returns the tools that clients see, for the pages of an inspector.
    #[cfg(feature = "inspector")]
    #[must_use]
    pub fn workbench(&self) -> Arc<dyn crate::inspector::Workbench> {
        let (server, call_log) = (self.server.clone(), self.call_log.clone());
        let config = self.running.options.selection.config.clone();
        let engine = self.running.engine().clone();
        Arc::new(super::workbench::ServedTools { server, call_log, config, engine })
    }

    /// Returns the permissions of the plugins, for the pages of an inspector.
    #[cfg(feature = "inspector")]
    #[must_use]
    pub fn grants(&self) -> crate::inspector::GrantSource {
        let running = Arc::clone(&self.running);
        Arc::new(move || Ok(Some(running.grants())))
    }

    /// Returns a replayer of the calls in a log, for the pages of an inspector.
    #[cfg(feature = "inspector")]
    #[must_use]
    pub fn replayer(&self, log: std::path::PathBuf) -> Arc<dyn crate::inspector::CallReplayer> {
        let config = self.running.options.selection.config.clone();
        let engine = self.running.engine().clone();
        Arc::new(crate::inspector::EngineReplayer::of_engine(engine, config, log))
    }

    /// Serves one client on standard input and output, until the input ends or `stop` is canceled.
    ///
    /// # Errors
    /// Returns an error if no part of the selection can be used, or the output is closed.
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<()> {
        let server = self.server.clone();
        let serving = stop.clone();
        let served =
            async move { server.serve_stdio(serving).await.context("the client cannot be served") };
        self.run(stop, Box::pin(served)).await
    }

    /// Serves clients over HTTP until `stop` is canceled.
    ///
    /// # Errors
    /// Returns an error if no part of the selection can be used, or the options do not fit the
    /// address.
    pub async fn serve_http(
        self,
        listener: TcpListener,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> Result<()> {
        let server = self.server.clone();
        let serving = stop.clone();
        let served = async move {
            let served = server.serve_http(listener, options, serving).await;
            served.map_err(|error| Error::invalid(error.to_string()))
        };
        self.run(stop, Box::pin(served)).await
    }

    async fn run(
        self,
        stop: CancellationToken,
        serving: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let Self { running, loader, follows_changes, call_log, operator, .. } = self;
        let following_servers = Arc::clone(&running);
        let following_servers =
            tokio::spawn(async move { following_servers.follow_servers().await });
        let (loading_running, loading_stop) = (Arc::clone(&running), stop.clone());
        let loading = tokio::spawn(async move {
            let loading = loading_running.finish_loading(loader, &loading_stop);
            let finished =
                Box::pin(loading_stop.run_until_cancelled(loading)).await.unwrap_or(Ok(()));
            if finished.is_err() {
                loading_stop.cancel();
            }
            finished
        });
        let following = follows_changes.then(|| {
            tokio::spawn(async move {
                if let Err(error) = follow(running).await {
                    operator.note(&format!("error: {error:#}"));
                }
            })
        });
        let served = serving.await;
        for following in following.into_iter().chain([following_servers]) {
            following.abort();
        }
        // If loading has failed, its error ends the server; if it is still running, it is stopped.
        stop.cancel();
        let loaded = tokio::time::timeout(END_WAIT, loading).await;
        if let Some(log) = call_log {
            log.finish().await;
        }
        match loaded {
            Ok(Ok(Err(error))) => Err(error),
            _ => served,
        }
    }
}

/// Part of a server that monitoring systems see: it is unwell if it cannot record its calls, or
/// cannot reach the workers that run them.
struct MonitoredService {
    log: Option<Arc<CallLog>>,
    metrics: Option<Arc<CallMetrics>>,
    #[cfg(feature = "cluster")]
    remote: Option<RemoteTools>,
}

impl MonitoredService {
    fn state(&self) -> HealthReport {
        #[cfg(feature = "cluster")]
        if let Some(remote) = &self.remote {
            return remote.health();
        }
        HealthReport::new(true, "serving")
    }
}

impl MonitoringSource for MonitoredService {
    fn health(&self) -> HealthReport {
        self.state().with_log(self.log.as_deref())
    }

    fn metrics(&self) -> Option<String> {
        self.metrics.as_ref().map(|metrics| metrics.prometheus())
    }
}
