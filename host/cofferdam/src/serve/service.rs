//! An MCP server over everything that is selected, which follows changes while it runs.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::Engine;
use cofferdam_mcp::{Grantor, HttpOptions, Server, ServerOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{RunningService, ServedState, follow};
use crate::error::Context as _;
use crate::loading::Loader;
use crate::servers::News;
use crate::{Error, FirstBuild, Operator, Result, Selection};

/// Maximum time that the end waits for a compiler to stop.
const END_WAIT: Duration = Duration::from_millis(50);

/// Choice of what a [`Service`] offers, and of how.
#[derive(Clone)]
pub struct ServeOptions {
    /// Plugins, servers, skills and files.
    pub selection: Selection,
    /// Toolsets of the configuration; with these or `tools` nothing else is offered.
    pub toolsets: Vec<String>,
    /// Tools that are offered.
    pub tools: Vec<String>,
    /// True if changes of plugins and of the configuration are followed.
    pub follows_changes: bool,
    /// Build that one of the plugins has to wait for.
    pub first_build: Option<FirstBuild>,
    /// Behavior of the MCP server.
    pub server: ServerOptions,
}

impl ServeOptions {
    /// Returns options that offer everything of a selection and follow its changes.
    #[must_use]
    pub fn new(selection: Selection) -> Self {
        let server = ServerOptions {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..ServerOptions::default()
        };
        let (toolsets, tools) = (Vec::new(), Vec::new());
        Self { selection, toolsets, tools, follows_changes: true, first_build: None, server }
    }
}

/// An MCP server that loads its plugins while it runs, connects to servers, and takes over changes
/// of files.
pub struct Service {
    server: Server,
    running: Arc<RunningService>,
    loader: Loader,
    follows_changes: bool,
    operator: Operator,
}

impl Service {
    /// Starts a server. Plugins that have to be compiled are loaded once it serves.
    ///
    /// # Errors
    /// When the selection or its configuration is invalid, or a plugin could write what decides
    /// about its grants.
    pub async fn start(engine: Engine, options: ServeOptions, operator: Operator) -> Result<Self> {
        let news = News::default();
        let (offering, loader) =
            Box::pin(ServedState::start(&engine, &options, None, &news, &operator)).await?;
        offering.unavailable().for_each(|plugin| plugin.note(&operator));
        let mut server_options = options.server.clone();
        server_options.only_as_task = offering.only_as_task();
        let server = Server::new(offering.offer(&options)?, server_options)
            .context("the server does not start")?;
        let follows_changes = options.follows_changes;
        let running =
            RunningService::new(server.clone(), engine, options, offering, news, operator.clone());
        let running = Arc::new(running);
        server.set_grantor(Arc::clone(&running) as Arc<dyn Grantor>);
        Ok(Self { server, running, loader, follows_changes, operator })
    }

    /// Serves one client on standard input and output, until the input ends or `stop` is cancelled.
    ///
    /// # Errors
    /// When nothing of the selection can be used, or the output is closed.
    pub async fn serve_stdio(self, stop: CancellationToken) -> Result<()> {
        let server = self.server.clone();
        let serving = stop.clone();
        let served =
            async move { server.serve_stdio(serving).await.context("the client cannot be served") };
        self.run(stop, Box::pin(served)).await
    }

    /// Serves clients over HTTP, until `stop` is cancelled.
    ///
    /// # Errors
    /// When nothing of the selection can be used, or the options do not fit the address.
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
        let Self { running, loader, follows_changes, operator, .. } = self;
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
        // A start that has failed ends the server; one that is still under way ends with it.
        stop.cancel();
        match tokio::time::timeout(END_WAIT, loading).await {
            Ok(Ok(Err(error))) => Err(error),
            _ => served,
        }
    }
}
