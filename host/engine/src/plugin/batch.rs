//! Loading of many plugins at one start.
//!
//! * **The index first.** The cache holds one index of all plugins that were loaded together. It is
//!   read once, and a plugin whose files are unchanged comes from it at once: nothing of the
//!   component is read before its first call. Files count as unchanged by device, inode, size and
//!   modification times. The code is compared by its digest when it is loaded, so that a file that
//!   was changed unnoticed is rejected there ([`LoadError::Changed`]).
//! * **Then the others**, as many at a time as there are cores. Loading only starts with a call of
//!   [`PluginBatch::next`].
//! * **A failure concerns one plugin.** The others load, and [`PluginBatch::cached_tools`] has the
//!   tools that the failed plugin had when it was last loaded.
//!
//! Without a cache directory every plugin is loaded, and nothing is saved.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use cofferdam_tool::ToolDefinition;
use cofferdam_tool::declaration::DECLARATION_RULES;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use super::load::LoadedComponent;
use super::{Plugin, PluginOptions, PluginParts};
use crate::load::index::{Approval, FileIdentity, StartupIndex};
use crate::load::{CACHE_FORMAT, parallel};
use crate::{Compiler, Component, Engine, LoadError, LoadObserver};

/// Maximum number of plugins of a batch whose freshly compiled code stays in memory. With more
/// plugins, most are not called for a while, and the cache has their code.
const CODE_RETAINED_MAX: usize = 16;

/// Build of a component that must finish before it is loaded.
type Build = Pin<Box<dyn Future<Output = Result<Component, Box<dyn Error + Send + Sync>>> + Send>>;

/// Plugin that [`Engine::load_all`] loads, together with others.
pub struct LoadRequest {
    component: Component,
    options: PluginOptions,
    observer: Arc<dyn LoadObserver>,
    build: Option<Build>,
}

/// Plugins of one start: those of the index, which are ready at once, and the others, which are
/// loaded sequentially or concurrently. Created by [`Engine::load_all`].
///
/// A plugin is identified by its position in the list of requests.
pub struct PluginBatch {
    index: Arc<StartupIndex>,
    cached: VecDeque<(usize, Result<Plugin, LoadError>)>,
    loading: UnindexedPlugins,
}

/// Plugins that are not in the index.
enum UnindexedPlugins {
    Waiting { engine: Engine, requests: Vec<(usize, LoadRequest)>, keeps_order: bool },
    Started(BoxStream<'static, (usize, Result<Plugin, LoadError>)>),
}

impl LoadRequest {
    /// Creates a request for the plugin of a component.
    #[must_use]
    pub fn new(component: Component, options: PluginOptions) -> Self {
        Self { component, options, observer: Arc::new(()), build: None }
    }

    /// Reports the events of the load to `observer`. A plugin that comes from the index has none.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn LoadObserver>) -> Self {
        Self { observer, ..self }
    }

    /// Waits for `build` before the plugin is loaded, and loads the component that it returns,
    /// which should be created once the file is written. The plugin never comes from the index,
    /// because an existing file is the output of an older build.
    ///
    /// An error of the build becomes [`LoadError::Build`].
    #[must_use]
    pub fn after_build(
        self,
        build: impl Future<Output = Result<Component, Box<dyn Error + Send + Sync>>> + Send + 'static,
    ) -> Self {
        Self { build: Some(Box::pin(build)), ..self }
    }
}

impl Engine {
    /// Loads many plugins. Takes unchanged ones from the index, which blocks for about ten
    /// microseconds each, and leaves the others to the returned batch.
    ///
    /// The index belongs to the list of paths; relative paths are relative to `directory`, the
    /// working directory.
    ///
    /// ```no_run
    /// # use std::path::Path;
    /// # use cofferdam_engine::{Component, Engine, LoadRequest, PluginOptions};
    /// # async fn load(engine: Engine, directory: &Path, plugins: Vec<(&str, PluginOptions)>) {
    /// let request = |(path, options)| LoadRequest::new(Component::from_file_ambient(path), options);
    /// let mut batch = engine.load_all(directory, plugins.into_iter().map(request).collect());
    /// while let Some((position, plugin)) = batch.next_cached() {
    ///     // Ready at once. A server offers the tools of these before the next line.
    /// }
    /// while let Some((position, plugin)) = batch.next().await {
    ///     // Read, and compiled if need be.
    /// }
    /// batch.save();
    /// # }
    /// ```
    #[must_use]
    pub fn load_all(&self, directory: &Path, requests: Vec<LoadRequest>) -> PluginBatch {
        let path = |request: &LoadRequest| {
            request.component.file_ambient().unwrap_or(Path::new("")).to_owned()
        };
        let paths: Vec<PathBuf> = requests.iter().map(path).collect();
        let index = Arc::new(self.read_index(directory, &paths));
        let lookups = requests.iter().map(|request| {
            let LoadRequest { component, options, build, .. } = request;
            // For a component that is being built, an older version may exist.
            build.is_none().then_some((component, options))
        });
        let found = parallel::map(&lookups.collect::<Vec<_>>(), |position, lookup| {
            let (component, options) = (*lookup)?;
            self.cached_plugin(&index, position, component, options).transpose()
        });
        let mut cached = VecDeque::new();
        let mut waiting = Vec::new();
        for (position, (request, found)) in requests.into_iter().zip(found).enumerate() {
            match found {
                Some(plugin) => cached.push_back((position, plugin)),
                None => waiting.push((position, request)),
            }
        }
        let loading = UnindexedPlugins::Waiting {
            engine: self.clone(),
            requests: waiting,
            keeps_order: false,
        };
        PluginBatch { index, cached, loading }
    }

    fn read_index(&self, directory: &Path, paths: &[PathBuf]) -> StartupIndex {
        let Some(cache) = &self.inner.cache else { return StartupIndex::disabled() };
        // The compile child is this program, so its version covers the rules for declarations too.
        let program = match &self.inner.config.compiler {
            Compiler::Child { program, .. } => FileIdentity::of_ambient(program),
            _ => None,
        };
        let program = program.map(|program| program.to_bytes()).unwrap_or_default();
        let rules = DECLARATION_RULES.to_le_bytes();
        let inputs = [
            CACHE_FORMAT,
            &self.inner.fingerprint(),
            &rules,
            env!("CARGO_PKG_VERSION").as_bytes(),
            &program,
            directory.as_os_str().as_encoded_bytes(),
        ];
        StartupIndex::read(cache, &inputs, paths)
    }

    /// Creates the plugin of a component from the index, if its files match the record.
    fn cached_plugin(
        &self,
        index: &StartupIndex,
        position: usize,
        component: &Component,
        options: &PluginOptions,
    ) -> Result<Option<Plugin>, LoadError> {
        if component.file_ambient().is_none() {
            return Ok(None);
        }
        let (files, is_counting) = (component.files(), options.limits.fuel_max.is_some());
        let record = index.record(position).filter(|record| Some(record.files) == files);
        let record = record.filter(|record| record.is_counting == is_counting);
        let record = record.filter(|record| component.accepts_digest(&record.digest));
        let Some(parts) = record.and_then(PluginParts::from_record) else { return Ok(None) };
        self.check_mounts(&options.grants)?;
        index.retain(position);
        Plugin::new(self, component, options.clone(), parts).map(Some)
    }
}

impl PluginBatch {
    /// Makes [`next`](Self::next) return the loaded plugins in the order of the requests, instead
    /// of as soon as each is loaded. Has no effect once loading has started.
    pub fn keep_order(&mut self) {
        if let UnindexedPlugins::Waiting { keeps_order, .. } = &mut self.loading {
            *keeps_order = true;
        }
    }

    /// Returns the next plugin that came from the index, with its position. Errors are those of
    /// [`Engine::load`] that concern the grants.
    pub fn next_cached(&mut self) -> Option<(usize, Result<Plugin, LoadError>)> {
        self.cached.pop_front()
    }

    /// Returns the next plugin with its position: first those of the index, if any are left, and
    /// then the others once they are loaded. Cancel safe; loads in progress continue with the next
    /// call.
    pub async fn next(&mut self) -> Option<(usize, Result<Plugin, LoadError>)> {
        if let Some(cached) = self.next_cached() {
            return Some(cached);
        }
        if let UnindexedPlugins::Waiting { engine, requests, keeps_order } = &mut self.loading {
            let (engine, requests) = (engine.clone(), std::mem::take(requests));
            self.loading = UnindexedPlugins::Started(start(
                engine,
                Arc::clone(&self.index),
                requests,
                *keeps_order,
            ));
        }
        match &mut self.loading {
            UnindexedPlugins::Started(loading) => loading.next().await,
            UnindexedPlugins::Waiting { .. } => None,
        }
    }

    /// Loads all plugins, saves the index, and returns the plugins in the order of the requests.
    pub async fn finish(mut self) -> Vec<Result<Plugin, LoadError>> {
        let mut plugins = Vec::new();
        while let Some(plugin) = self.next().await {
            plugins.push(plugin);
        }
        let index = self.index;
        // Without a saved index, the next start only takes longer.
        let _ = tokio::task::spawn_blocking(move || index.save()).await;
        plugins.sort_unstable_by_key(|(position, _)| *position);
        plugins.into_iter().map(|(_, plugin)| plugin).collect()
    }

    /// Returns the tools that the plugin had when it was last loaded, for a plugin that cannot be
    /// loaded now; `None` if the index has none. The index keeps them for the next start.
    #[must_use]
    pub fn cached_tools(&self, position: usize) -> Option<Vec<Arc<ToolDefinition>>> {
        self.index.tools(position)
    }

    /// Returns the mark that an earlier start set, if any. It applies to the plugins that come from
    /// the index, not to those that are loaded now.
    #[must_use]
    pub fn approval(&self) -> Option<Approval> {
        self.index.saved_approval()
    }

    /// Sets the mark to save with the index: all plugins of the batch are approved. `None` removes
    /// the mark.
    pub fn set_approval(&self, approval: Option<Approval>) {
        self.index.set_approval(approval);
    }

    /// Writes the index if it has changed. Blocks for some milliseconds with a thousand plugins.
    pub fn save(&self) {
        self.index.save();
    }
}

/// Loads several plugins at a time: compilation runs in a separate process for each.
fn start(
    engine: Engine,
    index: Arc<StartupIndex>,
    requests: Vec<(usize, LoadRequest)>,
    keeps_order: bool,
) -> BoxStream<'static, (usize, Result<Plugin, LoadError>)> {
    let loading = stream::iter(requests).map(move |(position, request)| {
        let (engine, index) = (engine.clone(), Arc::clone(&index));
        async move { (position, Box::pin(load(&engine, &index, position, request)).await) }
    });
    match keeps_order {
        true => loading.buffered(parallel::available()).boxed(),
        false => loading.buffer_unordered(parallel::available()).boxed(),
    }
}

async fn load(
    engine: &Engine,
    index: &StartupIndex,
    position: usize,
    request: LoadRequest,
) -> Result<Plugin, LoadError> {
    let LoadRequest { component, options, observer, build } = request;
    let component = match build {
        Some(build) => build.await.map_err(LoadError::Build)?,
        None => component,
    };
    // Changes during the load must be detectable.
    let files = component.files().filter(|files| index.is_enabled() && files.are_quiescent());
    let mut loaded = LoadedComponent::load(engine, &component, &options, &*observer).await?;
    let has_changed =
        || component.file_ambient().is_none() || component.has_changed() != Some(false);
    if let Some(record) = files.filter(|_| !has_changed()).and_then(|files| loaded.record(files)) {
        index.replace(position, &record);
    }
    if index.is_enabled() && index.len() > CODE_RETAINED_MAX {
        loaded.drop_code();
    }
    Plugin::new(engine, &component, options, loaded.into_parts())
}
