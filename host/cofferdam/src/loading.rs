//! Loads the plugins of a command: in the order of the configuration as far as anybody can see, several at the same time where
//! there is something to compile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Context as _;
use cofferdam_engine::{
    Component, Engine, Known, LoadError, LoadEvent, LoadObserver, Plugin, PluginOptions, UnavailablePlugin,
};
use cofferdam_tool::{PluginName, ToolDefinition, ToolSource as _};
use futures_util::stream::{self, BoxStream, StreamExt as _};

use crate::compose::{self, PluginSpec};
use crate::consent::Consent;
use crate::pins::Pins;
use crate::side_by_side::{at_once, side_by_side};
use crate::{Error, Operator, consent, granting, remembered, text};

/// The plugins of a command, with what is known of them for the next time.
pub struct Loaded {
    pub(crate) plugins: Vec<(PluginSpec, Arc<Plugin>)>,
    pub(crate) unavailable: Vec<Unavailable>,
    /// To be saved when there is time for it.
    pub(crate) known: Known,
}

impl Loaded {
    /// Fails with the first reason if no plugin is available. For commands that have no other tools.
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

/// A plugin that is not used, and why. Its known tools answer that it is unavailable.
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
        let source = UnavailablePlugin::new(name.clone(), tools.unwrap_or_default().into(), &error);
        Self { name, source: Arc::new(source), error: Arc::new(error) }
    }

    /// Replaces the reason.
    pub(crate) fn because(&self, error: Error) -> Self {
        let source = UnavailablePlugin::new(self.name.clone(), self.source.definitions(), &error);
        Self { name: self.name.clone(), source: Arc::new(source), error: Arc::new(error) }
    }

    /// The whole reason, for the operator.
    pub fn reason(&self) -> &str {
        self.source.reason()
    }

    /// Tells the operator that the plugin is left out.
    pub fn note(&self, operator: &Operator) {
        operator.note(&format!("warning: the plugin `{}` is left out: {}", self.name, self.reason()));
    }

    /// The error that ends a command which needs the plugin.
    pub(crate) fn into_error(self) -> Error {
        Arc::try_unwrap(self.error).unwrap_or_else(|error| Error::NotAccepted(format!("{error:#}")))
    }
}

/// A plugin on its way from a specification to its tools.
#[derive(Clone)]
pub(crate) enum LoadState {
    Loading,
    Ready(Arc<Plugin>),
    Unavailable(Unavailable),
}

/// A component that is not taken, and which one.
#[derive(Debug, thiserror::Error)]
#[error("{}", .path.display())]
pub struct PluginError {
    path: PathBuf,
    source: LoadError,
}

impl PluginError {
    pub(crate) fn new(path: &Path, source: LoadError) -> Self {
        Self { path: path.to_owned(), source }
    }

    /// The component.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why the component is not taken.
    pub fn cause(&self) -> &LoadError {
        &self.source
    }
}

/// Loads plugins in order and reports those that are left out. A change of a pinned plugin needs consent.
pub async fn load(engine: &Engine, specs: Vec<PluginSpec>, operator: &Operator) -> crate::Result<Loaded> {
    load_and(engine, specs, operator, |_, _, _| Ok(false)).await
}

/// Loads plugins that are called: asks the user at the terminal for grants that are missing.
pub(crate) async fn load_to_call(
    engine: &Engine,
    specs: Vec<PluginSpec>,
    operator: &Operator,
) -> crate::Result<Loaded> {
    load_and(engine, specs, operator, consent::ask_for_missing).await
}

async fn load_and(
    engine: &Engine,
    specs: Vec<PluginSpec>,
    operator: &Operator,
    widen: fn(&Plugin, &mut PluginSpec, &Operator) -> crate::Result<bool>,
) -> crate::Result<Loaded> {
    let mut loader = Loader::start(engine, specs, operator)?;
    let mut plugins = loader.plugins.clone();
    loader
        .finish(engine, Order::AsNamed, |place, loaded| {
            if let Some((_, plugin)) = plugins.get_mut(place) {
                *plugin = loaded;
            }
        })
        .await?;
    let deciding = compose::deciding(&loader.specs);
    let mut loaded = Loaded { plugins: Vec::new(), unavailable: Vec::new(), known: loader.known };
    for (mut spec, plugin) in plugins {
        match plugin {
            LoadState::Ready(mut plugin) => {
                if widen(&plugin, &mut spec, operator)? {
                    // The directory that was granted has not been checked yet.
                    granting::check_mounts(&spec.options.grants.mounts, &granting::policy_files(&deciding))?;
                    plugin = Arc::new(same_component(
                        &plugin,
                        Box::pin(load_spec(engine, &spec, operator)).await?,
                    )?);
                }
                loaded.plugins.push((spec, plugin));
            }
            LoadState::Unavailable(unavailable) => loaded.unavailable.push(unavailable),
            LoadState::Loading => {}
        }
    }
    Ok(loaded)
}

/// The order in which plugins are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// In the order of the configuration, for a user who reads along.
    AsNamed,
    /// Each as soon as it is loaded.
    AsLoaded,
}

/// Loads the plugins of a command: those that are known at once, the others when it is told to.
pub(crate) struct Loader {
    specs: Vec<PluginSpec>,
    pub(crate) known: Known,
    consent: Option<Consent>,
    pub(crate) plugins: Vec<(PluginSpec, LoadState)>,
    operator: Operator,
}

impl Loader {
    /// Takes the known plugins from the index, which reads none of them.
    pub(crate) fn start(engine: &Engine, specs: Vec<PluginSpec>, operator: &Operator) -> crate::Result<Self> {
        let directory = std::env::current_dir().context("the working directory is not known")?;
        let paths: Vec<_> = specs.iter().map(|spec| spec.path.clone()).collect();
        let known = engine.known(&directory, &paths);
        let mut consent = Consent::new(&specs, &known, operator);
        let recalled = recall_all(engine, &known, &specs);
        let mut plugins = Vec::with_capacity(specs.len());
        for (place, (spec, recalled)) in specs.iter().zip(recalled).enumerate() {
            let plugin = match recalled {
                None => LoadState::Loading,
                Some(recalled) => checked(&mut consent, &known, place, spec, recalled, true)?,
            };
            plugins.push((spec.clone(), plugin));
        }
        Ok(Self { specs, known, consent: Some(consent), plugins, operator: operator.clone() })
    }

    /// The places of the plugins that are not loaded yet.
    pub(crate) fn loading(&self) -> impl Iterator<Item = usize> {
        let places = self.plugins.iter().enumerate();
        places.filter(|(_, (_, plugin))| matches!(plugin, LoadState::Loading)).map(|(place, _)| place)
    }

    /// Loads the others, and hands each to `each` with its place.
    pub(crate) async fn finish(
        &mut self,
        engine: &Engine,
        order: Order,
        mut each: impl FnMut(usize, LoadState),
    ) -> crate::Result<()> {
        let Some(mut consent) = self.consent.take() else { return Ok(()) };
        let finished = self.finish_with(engine, order, &mut consent, &mut each).await;
        // What was accepted until something failed stays accepted.
        let is_complete = matches!(&finished, Ok(true));
        consent.end(&self.known, is_complete);
        finished.map(|_| ())
    }

    /// Answers whether every plugin is available.
    async fn finish_with(
        &self,
        engine: &Engine,
        order: Order,
        consent: &mut Consent,
        each: &mut impl FnMut(usize, LoadState),
    ) -> crate::Result<bool> {
        let (known, specs) = (&self.known, &self.specs);
        let is_new = |plugin: &LoadState| matches!(plugin, LoadState::Loading);
        let notes: Vec<_> =
            specs.iter().map(|spec| Progress::ordered(&spec.options.name, order, &self.operator)).collect();
        let new = specs.iter().zip(&notes).enumerate().zip(&self.plugins);
        let new = new.filter(|(_, (_, plugin))| is_new(plugin));
        let new: Vec<_> = new.map(|((place, (spec, notes)), _)| (place, spec, notes)).collect();
        let mut in_turn = new.iter().map(|(_, _, notes)| *notes).collect::<Vec<_>>().into_iter();
        let mut loading = load_new(engine, known, new, order);
        let is_unavailable = |plugin: &LoadState| matches!(plugin, LoadState::Unavailable(_));
        let mut is_complete = !self.plugins.iter().any(|(_, plugin)| is_unavailable(plugin));
        loop {
            in_turn.next().into_iter().for_each(Progress::tell);
            let Some((place, loaded)) = loading.next().await else { break };
            let Some(spec) = specs.get(place) else { continue };
            let plugin = checked(consent, known, place, spec, loaded, false)?;
            is_complete &= !is_unavailable(&plugin);
            each(place, plugin);
        }
        Ok(is_complete)
    }
}

/// Checks the consent to a loaded plugin. A plugin that did not load, or that has changed without consent, is left out.
fn checked(
    consent: &mut Consent,
    known: &Known,
    place: usize,
    spec: &PluginSpec,
    loaded: crate::Result<Arc<Plugin>>,
    was_known: bool,
) -> crate::Result<LoadState> {
    let error = match loaded {
        Err(error) => error,
        Ok(plugin) => match consent.check(spec, &plugin, was_known) {
            Ok(()) => return Ok(LoadState::Ready(plugin)),
            Err(error @ Error::NotAccepted(_)) => error,
            // What was accepted cannot be read, which is about all plugins.
            Err(error) => return Err(error),
        },
    };
    Ok(LoadState::Unavailable(Unavailable::new(spec, known.tools(place), error)))
}

/// The plugins that are known, at their places.
fn recall_all(
    engine: &Engine,
    known: &Known,
    specs: &[PluginSpec],
) -> Vec<Option<crate::Result<Arc<Plugin>>>> {
    side_by_side(specs, |place, spec| {
        if spec.first_build.is_some() {
            // What is there is an older build.
            return None;
        }
        let component = Component::from_file_ambient(&spec.path);
        let recall = |options: &PluginOptions| {
            let recalled = engine.recall(known, place, &component, spec.files, options).transpose()?;
            Some(recalled.map_err(|source| PluginError::new(&spec.path, source).into()))
        };
        let wider = |plugin: Plugin| match remembered::widened(spec, &plugin) {
            Ok(Some(options)) => recall(&options),
            Ok(None) => Some(Ok(plugin)),
            Err(error) => Some(Err(error)),
        };
        let plugin = match recall(&spec.options)? {
            Ok(plugin) => wider(plugin)?,
            failed => failed,
        };
        Some(plugin.map(Arc::new))
    })
}

/// A plugin that was loaded, with its place.
type Placed = (usize, crate::Result<Arc<Plugin>>);

/// Loads the others, as many at a time as there are processors: compiling is a process of its own for each.
fn load_new<'a>(
    engine: &'a Engine,
    known: &'a Known,
    new: Vec<(usize, &'a PluginSpec, &'a Progress)>,
    order: Order,
) -> BoxStream<'a, Placed> {
    let load = async move |(place, spec, progress): (usize, &'a PluginSpec, &'a Progress)| {
        (place, Box::pin(load_known(engine, known, place, spec, progress)).await.map(Arc::new))
    };
    let loading = stream::iter(new).map(load);
    match order {
        Order::AsNamed => loading.buffered(at_once()).boxed(),
        Order::AsLoaded => loading.buffer_unordered(at_once()).boxed(),
    }
}

/// Loads the plugin of `spec` with what is remembered for its component, when it is built. It is known from then on.
async fn load_known(
    engine: &Engine,
    known: &Known,
    place: usize,
    spec: &PluginSpec,
    progress: &Progress,
) -> crate::Result<Plugin> {
    let files = match &spec.first_build {
        None => spec.files,
        Some(build) => build.built().await?,
    };
    let component = Component::from_file_ambient(&spec.path);
    let of_file = |source| PluginError::new(&spec.path, source);
    let options = spec.options.clone();
    let plugin =
        engine.load_known(known, place, &component, files, options, progress).await.map_err(of_file)?;
    let Some(options) = remembered::widened(spec, &plugin)? else { return Ok(plugin) };
    let wider =
        engine.load_known(known, place, &component, files, options, progress).await.map_err(of_file)?;
    same_component(&plugin, wider)
}

/// Loads one plugin.
pub async fn load_one(
    engine: &Engine,
    path: PathBuf,
    options: PluginOptions,
    operator: &Operator,
) -> crate::Result<Plugin> {
    let component = Component::from_file_ambient(&path);
    let progress = Progress::new(&options.name, operator);
    let loaded = engine.load(&component, options, &progress).await;
    Ok(loaded.map_err(|source| PluginError { path, source })?)
}

/// Loads the plugin of `spec` with what is remembered for its component.
async fn load_spec(engine: &Engine, spec: &PluginSpec, operator: &Operator) -> crate::Result<Plugin> {
    let plugin = load_one(engine, spec.path.clone(), spec.options.clone(), operator).await?;
    match remembered::widened(spec, &plugin)? {
        Some(options) => {
            same_component(&plugin, load_one(engine, spec.path.clone(), options, operator).await?)
        }
        None => Ok(plugin),
    }
}

/// Refuses a plugin that is another component than the one that something was granted to.
fn same_component(granted: &Plugin, loaded: Plugin) -> crate::Result<Plugin> {
    if granted.identity().digest == loaded.identity().digest {
        return Ok(loaded);
    }
    let name = &loaded.identity().name;
    let message = format!("the component of `{name}` was changed while it was loaded; start again");
    Err(Error::NotAccepted(message))
}

/// Loads the plugin of `spec` again. A change of it needs consent.
pub(crate) async fn load_again(
    engine: &Engine,
    spec: &PluginSpec,
    operator: &Operator,
) -> crate::Result<Arc<Plugin>> {
    let plugin = load_spec(engine, spec, operator).await?;
    if let Some(config) = spec.config.as_ref().filter(|_| spec.is_pinned) {
        consent::check_pin(&plugin, config, operator)?;
    }
    Ok(Arc::new(plugin))
}

/// Tells the person on standard error what a load is doing.
pub(crate) struct Progress {
    name: PluginName,
    operator: Operator,
    has_compiled: AtomicBool,
    /// What is to be told when it is this plugin's turn; `None` when it is.
    waiting: Mutex<Option<Vec<String>>>,
}

impl Progress {
    pub(crate) fn new(name: &PluginName, operator: &Operator) -> Self {
        Self::of(name, None, operator)
    }

    /// Keeps what there is to tell until [`Progress::tell`] where the order matters.
    fn ordered(name: &PluginName, order: Order, operator: &Operator) -> Self {
        Self::of(name, (order == Order::AsNamed).then(Vec::new), operator)
    }

    fn of(name: &PluginName, waiting: Option<Vec<String>>, operator: &Operator) -> Self {
        let (name, operator) = (name.clone(), operator.clone());
        Self { name, operator, has_compiled: AtomicBool::new(false), waiting: waiting.into() }
    }

    /// Whether the component was compiled.
    pub(crate) fn has_compiled(&self) -> bool {
        self.has_compiled.load(Ordering::Relaxed)
    }

    fn tell(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.into_iter().flatten().for_each(|note| self.operator.note(&note));
    }

    fn note(&self, note: String) {
        match self.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(waiting) => waiting.push(note),
            None => self.operator.note(&note),
        }
    }
}

/// Components below this size compile before anybody wonders, in bytes.
const QUIET_BYTES_MAX: u64 = 512 * 1024;

impl LoadObserver for Progress {
    fn on_event(&self, event: LoadEvent) {
        let name = &self.name;
        if matches!(event, LoadEvent::Compiling { .. }) {
            self.has_compiled.store(true, Ordering::Relaxed);
        }
        match event {
            LoadEvent::Compiling { component_bytes } if component_bytes > QUIET_BYTES_MAX => {
                self.note(format!("compiling {name} ({}), once …", text::bytes(component_bytes)));
            }
            LoadEvent::CacheRejected => self.note(format!(
                "warning: a cache entry of {name} was not written by this installation and is ignored"
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
