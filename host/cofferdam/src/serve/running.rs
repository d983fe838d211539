//! A running MCP server or worker, and the events that change its offer: changed files, grants by
//! the operator, and changes of remote servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::error::Context as _;
use cofferdam_engine::Engine;
use cofferdam_mcp::{GrantDecision, Grantor, MissingGrant, Server};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use parking_lot::MutexGuard;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::{ServeOptions, ServedState};
use crate::flags;
use crate::loading::{LoadState, Loader, Order};
use crate::pins::Pins;
use crate::servers::{self, ChangeSignal};
use crate::{Operator, consent};

/// Time to wait after a change of one server for changes of others.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum number of plugins that are published together.
const ARRIVED_MAX: usize = 1024;

/// Permissions by the name of their source.
type MissingBySource = Vec<(String, Vec<MissingGrant>)>;

/// Publishes the tools of a service.
pub(crate) trait OfferTarget: Send + Sync {
    /// Replaces what was published before.
    ///
    /// # Errors
    /// Returns an error if a part of the state does not fit. What was published before stays.
    fn publish<'a>(
        &'a self,
        state: &'a ServedState,
        options: &'a ServeOptions,
    ) -> BoxFuture<'a, crate::Result<()>>;
}

impl OfferTarget for Server {
    fn publish<'a>(
        &'a self,
        state: &'a ServedState,
        options: &'a ServeOptions,
    ) -> BoxFuture<'a, crate::Result<()>> {
        let offered = state.offer(options).map(|offer| Self::publish(self, offer));
        ready(offered).boxed()
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
    missing: parking_lot::Mutex<MissingBySource>,
    /// All permissions that plugins ask for and do not have.
    not_granted: parking_lot::Mutex<MissingBySource>,
    decisions: parking_lot::Mutex<Decisions>,
    pub(super) operator: Operator,
}

/// Decisions of the user about permissions, by plugin, which hold while the server runs.
#[derive(Default)]
struct Decisions {
    /// Permissions that are not asked for again.
    declined: BTreeMap<String, BTreeSet<String>>,
    /// Permissions that were granted, and that no file contains.
    granted_once: BTreeMap<String, BTreeSet<String>>,
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
        let missing = parking_lot::Mutex::new(offering.missing());
        let not_granted = parking_lot::Mutex::new(offering.not_granted());
        let (offering, decisions) = (Mutex::new(offering), parking_lot::Mutex::default());
        Self { target, engine, options, offering, news, missing, not_granted, decisions, operator }
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

    /// Loads the plugins that [`ServedState::start`] has left, on a blocking thread, because the
    /// lock file and the index are read and written there. Publishes each plugin once it is loaded.
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
            Err(error) => self
                .operator
                .note(&format!("not reloaded; the previous version stays in use: {error:#}")),
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
        let mut new =
            ServedState::load_again(&self.engine, &self.options, &offering, &self.news).await?;
        let granted = lock(&self.decisions).granted_once.clone();
        for (source, permissions) in granted {
            if let Err(error) = new.grant_missing(&self.engine, &source, &permissions, false).await
            {
                self.operator.note(&format!("warning: no longer granted to {source}: {error:#}"));
            }
        }
        self.publish(&new).await?;
        *offering = new;
        Ok("the configuration".to_owned())
    }

    /// Reloads and publishes the plugins that `paths` belong to. Returns their names. A plugin that
    /// cannot be loaded stays as it is. Reloads everything if the lock file names other components.
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
        let mut failed = None;
        for path in paths {
            if Some(path) == lock.as_ref() {
                names.extend(changed.retry(&self.engine, path).await);
                continue;
            }
            match changed.reload(&self.engine, path).await {
                Ok(name) => names.extend(name),
                Err(error) => {
                    // Noted here unless it is the only result, and other plugins are reloaded.
                    if let Some(earlier) = failed.replace(error) {
                        self.note_reload(Err(earlier));
                    }
                }
            }
        }
        if names.is_empty() {
            return failed.map_or(Ok(String::new()), Err);
        }
        if let Some(error) = failed {
            self.note_reload(Err(error));
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
                self.operator.note(&format!(
                    "error: the changed tools of a server cannot be published: {error:#}"
                ));
            }
        }
    }

    fn note_missing(&self, offering: &ServedState) {
        *lock(&self.missing) = offering.missing();
        *lock(&self.not_granted) = offering.not_granted();
    }

    async fn grant(
        &self,
        source: &str,
        permissions: &BTreeSet<String>,
        is_lasting: bool,
    ) -> crate::Result<()> {
        let mut offering = self.offering.lock().await;
        let mut changed = offering.clone();
        let granted = changed.grant_missing(&self.engine, source, permissions, is_lasting).await?;
        self.publish(&changed).await?;
        *offering = changed;
        if !is_lasting {
            let mut decisions = lock(&self.decisions);
            let once = decisions.granted_once.entry(source.to_owned()).or_default();
            once.extend(granted.iter().cloned());
        }
        self.operator.note(&format!("granted to {source}: {}", granted.join(", ")));
        Ok(())
    }
}

impl Grantor for RunningService {
    fn missing(&self, source: &str) -> Vec<MissingGrant> {
        let mut missing = of_source(&self.missing, source);
        if let Some(declined) = lock(&self.decisions).declined.get(source) {
            missing.retain(|missing| !declined.contains(&missing.permission));
        }
        missing
    }

    fn not_granted(&self, source: &str) -> Vec<MissingGrant> {
        of_source(&self.not_granted, source)
    }

    fn decide<'a>(
        &'a self,
        source: &'a str,
        shown: &'a [MissingGrant],
        decision: GrantDecision,
    ) -> BoxFuture<'a, Result<(), String>> {
        let permissions: BTreeSet<_> =
            shown.iter().map(|missing| missing.permission.clone()).collect();
        if decision == GrantDecision::No {
            let mut decisions = lock(&self.decisions);
            decisions.declined.entry(source.to_owned()).or_default().extend(permissions);
            return ready(Ok(())).boxed();
        }
        async move {
            let is_lasting = decision == GrantDecision::Always;
            self.grant(source, &permissions, is_lasting).await.map_err(|error| {
                // The error may contain a path of the host, which only the operator may see.
                self.operator.note(&format!("error: nothing was granted to {source}: {error:#}"));
                format!("Nothing was granted to {source}; the server's log says why.")
            })
        }
        .boxed()
    }

    fn how_to_grant(&self, source: &str, permission: &str) -> Option<String> {
        let permission = consent::exact_permission(permission)?;
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

fn of_source(missing: &parking_lot::Mutex<MissingBySource>, source: &str) -> Vec<MissingGrant> {
    let missing = lock(missing);
    let of_source = missing.iter().find(|(name, _)| name == source);
    of_source.map(|(_, missing)| missing.clone()).unwrap_or_default()
}

fn lock<T>(mutex: &parking_lot::Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
