//! Loads the plugins of a command, several at the same time if there is something to compile.
//! Results are reported in the order of the configuration if the caller wants that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::error::Context as _;
use cofferdam_engine::{
    Component, Confinement, Engine, LoadError, LoadEvent, LoadObserver, LoadRequest, Plugin,
    PluginBatch, PluginOptions, UnavailablePlugin,
};
use cofferdam_tool::{PluginName, ToolDefinition, ToolSource};
use parking_lot::Mutex;

use crate::compose::{self, PluginSpec};
use crate::consent::Consent;
use crate::pins::Pins;
use crate::{Error, ErrorKind, Operator, Work, consent, granting, policy_files, remembered, text};

/// Loaded plugins of a command, with the index for the next start.
pub struct LoadedPlugins {
    pub(crate) plugins: Vec<(PluginSpec, Arc<Plugin>)>,
    pub(crate) unavailable: Vec<Unavailable>,
    /// Saved by the caller when it has time.
    pub(crate) batch: PluginBatch,
}

impl LoadedPlugins {
    /// Returns the first reason as an error if no plugin is available. For commands that have no
    /// other tools.
    pub(crate) fn require_any(&mut self, operator: &Operator) -> crate::Result<()> {
        if !self.plugins.is_empty() || self.unavailable.is_empty() {
            return Ok(());
        }
        let others = self.unavailable.split_off(1);
        others.iter().for_each(|plugin| plugin.note(operator));
        match self.unavailable.pop() {
            Some(first) => Err(first.into_error()),
            None => Ok(()),
        }
    }
}

/// A plugin that cannot be used, with the reason. Calls of its known tools return an error.
#[derive(Clone)]
pub struct Unavailable {
    /// Name of the plugin.
    pub name: PluginName,
    pub(crate) source: Arc<UnavailablePlugin>,
    error: Arc<Error>,
}

impl Unavailable {
    fn new(spec: &PluginSpec, known_tools: Option<Vec<Arc<ToolDefinition>>>, error: Error) -> Self {
        let name = spec.options.name.clone();
        let accepted = spec.config.as_deref().filter(|_| spec.is_pinned);
        let tools = accepted.and_then(|config| Pins::accepted_tools(config, &name)).or(known_tools);
        Self::with_tools(name, tools.unwrap_or_default().into(), error)
    }

    fn with_tools(name: PluginName, tools: Arc<[Arc<ToolDefinition>]>, error: Error) -> Self {
        let source = UnavailablePlugin::new(name.clone(), tools, &error);
        Self { name, source: Arc::new(source), error: Arc::new(error) }
    }

    /// Returns a loaded plugin as one that cannot be used.
    pub(crate) fn of_loaded(plugin: &Plugin, error: Error) -> Self {
        Self::with_tools(plugin.identity().name.clone(), plugin.definitions(), error)
    }

    /// Replaces the reason.
    pub(crate) fn because(&self, error: Error) -> Self {
        Self::with_tools(self.name.clone(), self.source.definitions(), error)
    }

    /// Returns a source with the known tools of the plugin, whose calls return an error.
    pub(crate) fn tools(&self) -> Arc<dyn ToolSource> {
        Arc::clone(&self.source) as Arc<dyn ToolSource>
    }

    /// Returns the complete reason, for the operator.
    pub fn reason(&self) -> &str {
        self.source.reason()
    }

    /// Warns the operator that the plugin is left out.
    pub fn note(&self, operator: &Operator) {
        operator.note(&format!(
            "warning: the plugin `{}` is left out: {}",
            self.name,
            self.reason()
        ));
    }

    /// Returns the reason.
    #[cfg(all(feature = "inspector", feature = "mcp"))]
    pub(crate) fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the error for a command that cannot continue without the plugin.
    pub(crate) fn into_error(self) -> Error {
        Arc::try_unwrap(self.error).unwrap_or_else(|shared| {
            let message = format!("{shared:#}");
            match shared.kind() {
                ErrorKind::Invalid => Error::Invalid(message),
                ErrorKind::Unavailable => Error::NotAccepted(message),
                ErrorKind::Failed => Error::failed(message),
            }
        })
    }
}

/// State of a plugin while it is loaded.
#[derive(Clone)]
pub(crate) enum LoadState {
    Loading,
    Ready(Arc<Plugin>),
    Unavailable(Unavailable),
}

/// Error of a component that cannot be loaded, with the path of its file.
#[derive(Debug)]
pub struct PluginError {
    path: PathBuf,
    cause: LoadError,
}

impl std::fmt::Display for PluginError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.cause)
    }
}

impl std::error::Error for PluginError {
    /// Returns the cause of the cause, because the message contains that of the cause.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}

impl PluginError {
    pub(crate) fn new(path: &Path, cause: LoadError) -> Self {
        Self { path: path.to_owned(), cause }
    }

    /// Returns the path of the component.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the reason why the component cannot be used.
    pub fn cause(&self) -> &LoadError {
        &self.cause
    }
}

/// Loads plugins in order and notes those that are left out. A pinned plugin that has changed needs
/// consent.
pub async fn load(
    engine: &Engine,
    specs: Vec<PluginSpec>,
    operator: &Operator,
) -> crate::Result<LoadedPlugins> {
    load_and(engine, specs, operator, |_, _, _| Ok(false)).await
}

/// Like [`load`], for plugins whose tools are called: also asks the operator for missing grants.
pub async fn load_to_call(
    engine: &Engine,
    specs: Vec<PluginSpec>,
    operator: &Operator,
) -> crate::Result<LoadedPlugins> {
    load_and(engine, specs, operator, consent::ask_for_missing).await
}

async fn load_and(
    engine: &Engine,
    specs: Vec<PluginSpec>,
    operator: &Operator,
    widen: fn(&Plugin, &mut PluginSpec, &Operator) -> crate::Result<bool>,
) -> crate::Result<LoadedPlugins> {
    let mut loader = Loader::start(engine, specs, operator)?;
    let mut plugins = loader.plugins.clone();
    loader
        .finish(Order::AsNamed, |index, loaded| {
            if let Some((_, plugin)) = plugins.get_mut(index) {
                *plugin = loaded;
            }
        })
        .await?;
    let deciding = compose::policy_files_of(&loader.specs);
    let mut loaded =
        LoadedPlugins { plugins: Vec::new(), unavailable: Vec::new(), batch: loader.batch };
    for (mut spec, plugin) in plugins {
        match plugin {
            LoadState::Ready(plugin) => {
                let plugin = match widen(&plugin, &mut spec, operator)? {
                    true => with_new_grants(&plugin, &spec, &deciding)?,
                    false => plugin,
                };
                loaded.plugins.push((spec, plugin));
            }
            LoadState::Unavailable(unavailable) => loaded.unavailable.push(unavailable),
            LoadState::Loading => {}
        }
    }
    Ok(loaded)
}

/// Asks the operator for the permissions that a plugin asks for and does not have. Returns the
/// plugin with those that are granted.
#[cfg(feature = "cluster")]
pub(crate) fn ask_for_grants(
    plugin: &Arc<Plugin>,
    spec: &mut PluginSpec,
    deciding: &[PathBuf],
    operator: &Operator,
) -> crate::Result<Arc<Plugin>> {
    match consent::ask_for_missing(plugin, spec, operator)? {
        true => with_new_grants(plugin, spec, deciding),
        false => Ok(Arc::clone(plugin)),
    }
}

/// Returns a plugin with the grants that its `spec` has received.
fn with_new_grants(
    plugin: &Plugin,
    spec: &PluginSpec,
    deciding: &[PathBuf],
) -> crate::Result<Arc<Plugin>> {
    // The newly granted directory has not been checked yet.
    granting::check_mounts(&spec.options.grants.mounts, &policy_files::locate(deciding))?;
    let options = remembered::widened(spec, plugin)?;
    with_changed_options(plugin, spec, options.unwrap_or_else(|| spec.options.clone()))
}

/// Order in which plugins are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// In the order of the configuration, for output that the operator reads.
    AsNamed,
    /// Each once it is loaded.
    AsLoaded,
}

/// Loads the plugins of a command: those in the index at the start, the others in
/// [`Loader::finish`].
pub(crate) struct Loader {
    specs: Vec<PluginSpec>,
    pub(crate) batch: PluginBatch,
    progress: Vec<Arc<LoadProgress>>,
    consent: Option<Consent>,
    pub(crate) plugins: Vec<(PluginSpec, LoadState)>,
}

impl Loader {
    /// Loads the plugins that the index contains and that have not changed, without reading their
    /// components.
    pub(crate) fn start(
        engine: &Engine,
        specs: Vec<PluginSpec>,
        operator: &Operator,
    ) -> crate::Result<Self> {
        let directory = std::env::current_dir().context("the working directory is not known")?;
        let counts = Arc::new(LoadCounts::new(specs.len()));
        let progress = specs.iter().map(|spec| {
            let counts = Arc::clone(&counts);
            Arc::new(LoadProgress { counts, ..LoadProgress::new(&spec.options.name, operator) })
        });
        let progress: Vec<_> = progress.collect();
        let requests = specs.iter().zip(&progress).map(|(spec, progress)| request(spec, progress));
        let mut batch = engine.load_all(&directory, requests.collect());
        let mut consent = Consent::new(&specs, &batch, operator);
        let mut plugins: Vec<_> =
            specs.iter().map(|spec| (spec.clone(), LoadState::Loading)).collect();
        while let Some((index, loaded)) = batch.next_cached() {
            counts.add();
            if let Some((spec, plugin)) = plugins.get_mut(index) {
                *plugin = checked(&mut consent, &batch, index, spec, loaded, true)?;
            }
        }
        Ok(Self { specs, batch, progress, consent: Some(consent), plugins })
    }

    /// Returns the indexes of the plugins that are not loaded yet.
    pub(crate) fn loading(&self) -> impl Iterator<Item = usize> {
        let plugins = self.plugins.iter().enumerate();
        plugins
            .filter(|(_, (_, plugin))| matches!(plugin, LoadState::Loading))
            .map(|(index, _)| index)
    }

    /// Loads the remaining plugins and passes each to `each`, with its index.
    pub(crate) async fn finish(
        &mut self,
        order: Order,
        mut each: impl FnMut(usize, LoadState),
    ) -> crate::Result<()> {
        let Some(mut consent) = self.consent.take() else { return Ok(()) };
        let finished = self.finish_with(order, &mut consent, &mut each).await;
        // Also saves the pins that were accepted before an error.
        let is_complete = matches!(&finished, Ok(true));
        consent.end(&self.batch, is_complete);
        finished.map(|_| ())
    }

    /// Loads the remaining plugins. Returns whether all plugins are available.
    async fn finish_with(
        &mut self,
        order: Order,
        consent: &mut Consent,
        each: &mut impl FnMut(usize, LoadState),
    ) -> crate::Result<bool> {
        if order == Order::AsNamed {
            self.batch.keep_order();
            self.progress.iter().for_each(|progress| progress.hold());
        }
        let in_turn = self.loading().filter_map(|index| self.progress.get(index).map(Arc::clone));
        let mut in_turn = in_turn.collect::<Vec<_>>().into_iter();
        let is_unavailable = |plugin: &LoadState| matches!(plugin, LoadState::Unavailable(_));
        let mut is_complete = !self.plugins.iter().any(|(_, plugin)| is_unavailable(plugin));
        loop {
            in_turn.next().into_iter().for_each(|progress| progress.tell());
            let Some((index, loaded)) = self.batch.next().await else { break };
            if let Some(progress) = self.progress.get(index) {
                progress.counts.add();
                progress.operator.progress(None);
            }
            let Some(spec) = self.specs.get(index) else { continue };
            let plugin = checked(consent, &self.batch, index, spec, loaded, false)?;
            if let (Some(_), LoadState::Ready(plugin)) = (&spec.first_build, &plugin) {
                // A later build replaces the file. The first call returns the error.
                let _ = plugin.preload().await;
            }
            is_complete &= !is_unavailable(&plugin);
            each(index, plugin);
        }
        Ok(is_complete)
    }
}

/// Returns the load request for `spec`, which waits for its first build.
fn request(spec: &PluginSpec, progress: &Arc<LoadProgress>) -> LoadRequest {
    let request = LoadRequest::new(spec.component.clone(), spec.options.clone());
    let request = request.with_observer(Arc::clone(progress) as Arc<dyn LoadObserver>);
    if let Some(missing) = spec.missing.clone() {
        return request.after_build(async move { Err(not_installed(&missing).into()) });
    }
    match spec.first_build.clone() {
        Some(build) => request.after_build(async move { Ok(build.built().await?) }),
        None => request,
    }
}

/// Widens a loaded plugin by its remembered grants, and checks consent. Returns `Unavailable` if
/// the plugin did not load, or has changed without consent.
fn checked(
    consent: &mut Consent,
    batch: &PluginBatch,
    index: usize,
    spec: &PluginSpec,
    loaded: Result<Plugin, LoadError>,
    was_known: bool,
) -> crate::Result<LoadState> {
    let loaded = loaded.map_err(|error| load_error(spec, error));
    let error = match loaded.and_then(|plugin| with_remembered(spec, plugin)) {
        Err(error) => error,
        Ok(plugin) => match consent.check(spec, &plugin, was_known) {
            Ok(()) => return Ok(LoadState::Ready(plugin)),
            Err(error @ Error::NotAccepted(_)) => error,
            // The lock file cannot be read, which concerns all plugins.
            Err(error) => return Err(error),
        },
    };
    Ok(LoadState::Unavailable(Unavailable::new(spec, batch.cached_tools(index), error)))
}

/// Adds the path of the component to a load error. Errors of a build already name it.
fn load_error(spec: &PluginSpec, error: LoadError) -> Error {
    match error {
        LoadError::Build(error) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => Error::Failed {
                message: "the component is not built".to_owned(),
                source: Some(source),
            },
        },
        error => PluginError::new(&spec.path, error).into(),
    }
}

/// Adds the grants that are remembered for the component of a plugin.
fn with_remembered(spec: &PluginSpec, plugin: Plugin) -> crate::Result<Arc<Plugin>> {
    match remembered::widened(spec, &plugin)? {
        Some(options) => with_changed_options(&plugin, spec, options),
        None => Ok(Arc::new(plugin)),
    }
}

/// Returns the component of `plugin` as a plugin with other options.
fn with_changed_options(
    plugin: &Plugin,
    spec: &PluginSpec,
    options: PluginOptions,
) -> crate::Result<Arc<Plugin>> {
    let plugin =
        plugin.with_options(options).map_err(|error| PluginError::new(&spec.path, error))?;
    Ok(Arc::new(plugin))
}

fn not_installed(missing: &str) -> Error {
    Error::NotAccepted(missing.to_owned())
}

/// Loads the current plugin of `spec`.
pub async fn load_spec(
    engine: &Engine,
    spec: &PluginSpec,
    operator: &Operator,
) -> crate::Result<Plugin> {
    if let Some(missing) = &spec.missing {
        return Err(not_installed(missing));
    }
    let (path, options) = (spec.path.clone(), spec.options.clone());
    load_component(engine, path, spec.current_component(), options, operator).await
}

/// Loads one plugin from a file.
pub async fn load_file(
    engine: &Engine,
    path: PathBuf,
    options: PluginOptions,
    operator: &Operator,
) -> crate::Result<Plugin> {
    let component = Component::from_file_ambient(&path);
    load_component(engine, path, component, options, operator).await
}

/// Loads one plugin. Errors name its component as `shown`.
pub(crate) async fn load_component(
    engine: &Engine,
    shown: PathBuf,
    component: Component,
    options: PluginOptions,
    operator: &Operator,
) -> crate::Result<Plugin> {
    let progress = LoadProgress::new(&options.name, operator);
    let loaded = Box::pin(engine.load(&component, options, &progress)).await;
    operator.progress(None);
    Ok(loaded.map_err(|cause| PluginError { path: shown, cause })?)
}

/// Loads the plugin of `spec` again, with its code, so that it stays usable if its file changes. If
/// it has changed, it needs consent.
pub async fn load_again(
    engine: &Engine,
    spec: &PluginSpec,
    operator: &Operator,
) -> crate::Result<Arc<Plugin>> {
    let plugin = load_spec(engine, spec, operator).await?;
    let plugin = with_remembered(spec, plugin)?;
    if let Some(config) = spec.config.as_ref().filter(|_| spec.is_pinned) {
        consent::check_pin(&plugin, config, operator)?;
    }
    plugin.preload().await.map_err(|error| PluginError::new(&spec.path, error))?;
    Ok(plugin)
}

/// Number of plugins that are loaded, of all of a command.
struct LoadCounts {
    done: AtomicU32,
    total: u32,
}

impl LoadCounts {
    fn new(total: usize) -> Self {
        Self { done: AtomicU32::new(0), total: u32::try_from(total).unwrap_or(u32::MAX) }
    }

    fn add(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Notes the progress of a load to the operator.
pub(crate) struct LoadProgress {
    name: PluginName,
    counts: Arc<LoadCounts>,
    operator: Operator,
    has_compiled: AtomicBool,
    /// Notes that wait for the turn of this plugin; `None` once they need not wait.
    waiting: Mutex<Option<Vec<String>>>,
}

impl LoadProgress {
    pub(crate) fn new(name: &PluginName, operator: &Operator) -> Self {
        let (name, operator) = (name.clone(), operator.clone());
        let counts = Arc::new(LoadCounts::new(1));
        let has_compiled = AtomicBool::new(false);
        Self { name, counts, operator, has_compiled, waiting: Mutex::default() }
    }

    /// Holds back notes until [`LoadProgress::tell`], so that they appear in order.
    fn hold(&self) {
        *self.waiting.lock() = Some(Vec::new());
    }

    /// Returns whether the component was compiled.
    pub(crate) fn has_compiled(&self) -> bool {
        self.has_compiled.load(Ordering::Relaxed)
    }

    fn tell(&self) {
        let waiting = self.waiting.lock().take();
        waiting.into_iter().flatten().for_each(|note| self.operator.note(&note));
    }

    fn note(&self, note: String) {
        match self.waiting.lock().as_mut() {
            Some(waiting) => waiting.push(note),
            None => self.operator.note(&note),
        }
    }
}

/// Components below this size, in bytes, compile without a message.
const QUIET_BYTES_MAX: u64 = 512 * 1024;

/// True once this process has said how the compiler is confined, which is the same for all plugins.
static HAS_NOTED_CONFINEMENT: AtomicBool = AtomicBool::new(false);

/// Returns the note about a compiler that is not fully confined.
fn unconfined(level: Confinement) -> String {
    let (found, accepted) = match level {
        Confinement::Partial => {
            ("only in part: it has its limits, and your files and network", "partial")
        }
        _ => ("not at all: it has its limits, and all your rights", "none"),
    };
    format!(
        "warning: this system confines the compiler of plugins {found}; accept that with \
         `--confinement {accepted}`, or refuse it with `--confinement full`"
    )
}

impl LoadObserver for LoadProgress {
    fn on_event(&self, event: LoadEvent) {
        let name = &self.name;
        if matches!(event, LoadEvent::Compiling { .. }) {
            self.has_compiled.store(true, Ordering::Relaxed);
        }
        match event {
            LoadEvent::Compiling { component_bytes } if component_bytes > QUIET_BYTES_MAX => {
                self.note(format!("compiling {name} ({}), once …", text::bytes(component_bytes)));
                self.operator.progress(Some(&Work {
                    label: format!("compiling {name}"),
                    done: self.counts.done.load(Ordering::Relaxed),
                    total: self.counts.total,
                }));
            }
            LoadEvent::Compiled { .. } => self.operator.progress(None),
            LoadEvent::Unconfined { level }
                if !HAS_NOTED_CONFINEMENT.swap(true, Ordering::Relaxed) =>
            {
                self.note(unconfined(level));
            }
            LoadEvent::CacheRejected => self.note(format!(
                "warning: a cache entry of {name} was not written by this installation and is \
                 ignored"
            )),
            LoadEvent::CacheUnwritable => {
                self.note(format!(
                    "warning: the cache cannot be written; {name} is compiled again next time"
                ));
            }
            _ => {}
        }
    }
}
