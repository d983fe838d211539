//! A running MCP server or worker, and the events that change its offer: changed files, grants by
//! the operator, and changes of remote servers.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};
use std::time::Duration;

use crate::error::Context as _;
use async_trait::async_trait;
use cofferdam_engine::Engine;
use cofferdam_mcp::{GrantDecision, Grantor, MissingGrant, Server};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::{ServeOptions, ServedState};
use crate::Operator;
use crate::flags;
use crate::loading::{LoadState, Loader, Order};
use crate::pins::Pins;
use crate::servers::{self, ChangeSignal};

/// Time to wait after a change of one server for changes of others.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum number of plugins that are published together.
const ARRIVED_MAX: usize = 1024;

/// Permissions by the name of their source.
type MissingBySource = Vec<(String, Vec<MissingGrant>)>;

/// Publishes the tools of a service.
#[async_trait]
pub(crate) trait OfferTarget: Send + Sync {
    /// Replaces what was published before.
    ///
    /// # Errors
    /// Returns an error if a part of the state does not fit. What was published before stays.
    async fn publish(&self, state: &ServedState, options: &ServeOptions) -> crate::Result<()>;
}

#[async_trait]
impl OfferTarget for Server {
    async fn publish(&self, state: &ServedState, options: &ServeOptions) -> crate::Result<()> {
        Self::publish(self, state.offer(options)?);
        Ok(())
    }
}

/// A service and its state. Changes are serialized by the lock on `offering`.
pub(super) struct RunningService {
    target: Arc<dyn OfferTarget>,
    engine: Engine,
    pub(super) options: ServeOptions,
    offering: Mutex<ServedState>,
    /// Fires when remote servers have changed.
    news: ChangeSignal,
    /// Permissions that the operator could grant, by plugin. Behind a separate lock because every
    /// call reads them.
    missing: SyncMutex<MissingBySource>,
    /// All permissions that plugins ask for and do not have.
    not_granted: SyncMutex<MissingBySource>,
    pub(super) operator: Operator,
}

impl RunningService {
    pub(super) fn new(
        target: Arc<dyn OfferTarget>,
        engine: Engine,
        options: ServeOptions,
        offering: ServedState,
        news: ChangeSignal,
        operator: Operator,
    ) -> Self {
        let missing = SyncMutex::new(offering.missing());
        let not_granted = SyncMutex::new(offering.not_granted());
        let offering = Mutex::new(offering);
        Self { target, engine, options, offering, news, missing, not_granted, operator }
    }

    /// Returns the files to watch: components, manifests, the configuration and its lock file.
    pub(super) async fn files(&self) -> Vec<PathBuf> {
        let offering = self.offering.lock().await;
        let components =
            offering.components().flat_map(|path| [path.clone(), path.with_extension("toml")]);
        let config = self.options.selection.config.as_deref();
        let agents = self.options.agents.paths();
        let of_config = config.map(Path::to_owned).into_iter().chain(config.map(Pins::path_of));
        components.chain(of_config).chain(agents).collect()
    }

    /// Loads the plugins that [`ServedState::start`] has left, on a blocking thread, because
    /// hashing and linking a large component takes as long as many requests. Publishes each plugin
    /// once it is loaded.
    ///
    /// # Errors
    /// Returns an error if the result cannot be offered, or if nothing could be loaded.
    pub(super) async fn finish_loading(
        &self,
        mut loader: Loader,
        stop: &CancellationToken,
    ) -> crate::Result<()> {
        let started: BTreeSet<usize> = loader.loading().collect();
        let (loaded, mut arriving) = unbounded_channel();
        let (handle, stop) = (Handle::current(), stop.clone());
        let loading = tokio::task::spawn_blocking(move || {
            let each = |index, plugin| drop(loaded.send((index, plugin)));
            let finishing = loader.finish(Order::AsLoaded, each);
            let finished = handle.block_on(stop.run_until_cancelled(finishing));
            loader.batch.save();
            finished.unwrap_or(Ok(()))
        });
        let mut arrived = Vec::new();
        // Plugins that arrive at the same time are published together.
        while arriving.recv_many(&mut arrived, ARRIVED_MAX).await > 0 {
            let mut offering = self.offering.lock().await;
            for (index, plugin) in arrived.drain(..) {
                if let LoadState::Unavailable(unavailable) = &plugin {
                    unavailable.note(&self.operator);
                }
                offering.set(index, plugin);
            }
            self.publish(&offering).await?;
        }
        loading.await.context("loading the plugins was interrupted")??;
        let servers = self.offering.lock().await.servers();
        servers::wait_for_all(&servers, &self.operator).await;
        let offering = self.offering.lock().await;
        if let Some(unavailable) = offering.nothing() {
            return Err(unavailable.clone().into_error());
        }
        // A server goes on, because its plugins may be mended while it runs.
        if let Err(error) = offering.check_mounts(&self.options.selection) {
            self.operator.note(&format!("warning: {error:#}"));
        }
        let changed = offering.changed_of(&started);
        drop(offering);
        // Not fatal: the component may be half written, and is watched from here on.
        if !changed.is_empty() {
            self.note_reload(self.reload(&changed).await);
        }
        Ok(())
    }

    /// Notes the result of reloading. Nothing is reloaded if the component is the one that is
    /// loaded already, or if the lock file was written and no plugin waited for it.
    pub(super) fn note_reload(&self, reloaded: crate::Result<String>) {
        match reloaded {
            Ok(what) if what.is_empty() => {}
            Ok(what) => self.operator.note(&format!("reloaded: {what}")),
            Err(error) => {
                self.operator.note(&format!("not reloaded, what was there before stays: {error:#}"))
            }
        }
    }

    /// Returns the permissions of the plugins, for the pages of an inspector. Blocks the thread.
    #[cfg(feature = "inspector")]
    pub(super) fn grants(&self) -> Vec<crate::inspector::PluginGrants> {
        self.offering.blocking_lock().grants(self.options.selection.config.as_deref())
    }

    /// Returns the engine.
    #[cfg(feature = "inspector")]
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Publishes the tools as they are after the start.
    pub(super) async fn publish_first(&self) -> crate::Result<()> {
        self.publish(&*self.offering.lock().await).await
    }

    async fn publish(&self, offering: &ServedState) -> crate::Result<()> {
        self.target.publish(offering, &self.options).await?;
        self.note_missing(offering);
        Ok(())
    }

    /// Returns the files that changed after they were read and before they were watched.
    pub(super) async fn unnoticed_changes(&self) -> Vec<PathBuf> {
        self.offering.lock().await.changed()
    }

    /// Reloads and publishes everything.
    pub(super) async fn reload_all(&self) -> crate::Result<String> {
        let mut offering = self.offering.lock().await;
        let new =
            ServedState::load_again(&self.engine, &self.options, &offering, &self.news).await?;
        self.publish(&new).await?;
        *offering = new;
        Ok("the configuration".to_owned())
    }

    /// Reloads and publishes the plugins that `paths` belong to. Returns their names. Reloads
    /// everything if the lock file names other components.
    pub(super) async fn reload(&self, paths: &[PathBuf]) -> crate::Result<String> {
        let mut offering = self.offering.lock().await;
        let mut names = BTreeSet::new();
        let mut changed = offering.clone();
        let lock = self.options.selection.config.as_deref().map(Pins::path_of);
        if lock.as_ref().is_some_and(|lock| paths.contains(lock))
            && offering.has_other_components()?
        {
            drop(offering);
            return self.reload_all().await;
        }
        for path in paths {
            if Some(path) == lock.as_ref() {
                names.extend(changed.retry(&self.engine, path).await);
                continue;
            }
            names.extend(changed.reload(&self.engine, path).await?);
        }
        if names.is_empty() {
            return Ok(String::new());
        }
        self.publish(&changed).await?;
        *offering = changed;
        Ok(names.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Publishes the offer again whenever remote servers change, until the process ends.
    pub(super) async fn follow_servers(&self) {
        loop {
            self.news.notified().await;
            // Servers that change at the same time are published together.
            tokio::time::sleep(QUIET).await;
            let offering = self.offering.lock().await;
            if let Err(error) = self.target.publish(&offering, &self.options).await {
                self.operator
                    .note(&format!("error: what a server offers now is not offered: {error:#}"));
            }
        }
    }

    fn note_missing(&self, offering: &ServedState) {
        *self.missing.lock().unwrap_or_else(PoisonError::into_inner) = offering.missing();
        *self.not_granted.lock().unwrap_or_else(PoisonError::into_inner) = offering.not_granted();
    }

    async fn grant(&self, source: &str, is_lasting: bool) -> crate::Result<()> {
        let mut offering = self.offering.lock().await;
        let mut changed = offering.clone();
        let granted = changed.grant_missing(&self.engine, source, is_lasting).await?;
        self.publish(&changed).await?;
        *offering = changed;
        self.operator.note(&format!("granted to {source}: {}", granted.join(", ")));
        Ok(())
    }
}

#[async_trait]
impl Grantor for RunningService {
    fn missing(&self, source: &str) -> Vec<MissingGrant> {
        of_source(&self.missing, source)
    }

    fn not_granted(&self, source: &str) -> Vec<MissingGrant> {
        of_source(&self.not_granted, source)
    }

    async fn decide(&self, source: &str, decision: GrantDecision) -> Result<(), String> {
        match decision {
            GrantDecision::No => {
                self.missing
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .retain(|(name, _)| name != source);
                Ok(())
            }
            GrantDecision::Once | GrantDecision::Always => {
                let granted = self.grant(source, decision == GrantDecision::Always).await;
                granted.map_err(|error| {
                    // The error may contain a path of the host, which only the operator may see.
                    self.operator
                        .note(&format!("error: nothing was granted to {source}: {error:#}"));
                    format!("Nothing was granted to {source}; the server's log says why.")
                })
            }
        }
    }

    fn how_to_grant(&self, source: &str, permission: &str) -> Option<String> {
        let permission: cofferdam_tool::Permission = permission.parse().ok()?;
        let config = self.options.selection.config.as_deref().and_then(Path::file_name);
        Some(match config {
            Some(config) => format!(
                "Whoever runs the server can grant it: cofferdam grant {source} {} --config {}",
                flags::word(&permission.to_string()),
                flags::word(&config.to_string_lossy())
            ),
            None => match flags::permission(&permission, None) {
                Some(flag) => {
                    format!("Whoever runs the server can grant it with {}", flags::typed(flag))
                }
                None => format!(
                    "Whoever runs the server can grant it in a configuration, with \
                     [plugins.{source}.grants]"
                ),
            },
        })
    }
}

fn of_source(missing: &SyncMutex<MissingBySource>, source: &str) -> Vec<MissingGrant> {
    let missing = missing.lock().unwrap_or_else(PoisonError::into_inner);
    let of_source = missing.iter().find(|(name, _)| name == source);
    of_source.map(|(_, missing)| missing.clone()).unwrap_or_default()
}
