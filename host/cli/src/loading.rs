//! Loads the plugins of a command: in the order of the configuration as far as anybody can see, several at the same time where
//! there is something to compile.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use cofferdam_engine::{Component, Engine, Known, LoadError, LoadEvent, LoadObserver, Plugin, PluginOptions};
use cofferdam_tool::PluginName;
use futures_util::stream::{self, BoxStream, StreamExt as _};

use crate::compose::{self, PluginSpec};
use crate::consent::Consent;
use crate::side_by_side::{at_once, side_by_side};
use crate::{consent, offer, print};

/// Plugins, with what is known of them for the next time.
pub(crate) struct Loaded {
    pub(crate) plugins: Vec<(PluginSpec, Arc<Plugin>)>,
    /// To be saved when there is time for it.
    pub(crate) known: Known,
}

/// A component that is not taken, and which one.
#[derive(Debug, thiserror::Error)]
#[error("{}", .path.display())]
pub(crate) struct PluginError {
    path: PathBuf,
    source: LoadError,
}

impl PluginError {
    pub(crate) fn new(path: &Path, source: LoadError) -> Self {
        Self { path: path.to_owned(), source }
    }

    /// Why the component is not taken.
    pub(crate) fn cause(&self) -> &LoadError {
        &self.source
    }
}

/// Loads plugins in order, telling the person what takes long. A change of a pinned plugin needs consent.
pub(crate) async fn load(engine: &Engine, specs: Vec<PluginSpec>) -> anyhow::Result<Loaded> {
    load_and(engine, specs, |_, _| Ok(false)).await
}

/// The same, for calling: asks the person at the terminal for grants that are missing.
pub(crate) async fn load_to_call(engine: &Engine, specs: Vec<PluginSpec>) -> anyhow::Result<Loaded> {
    load_and(engine, specs, consent::ask_for_missing).await
}

async fn load_and(
    engine: &Engine,
    specs: Vec<PluginSpec>,
    widen: fn(&Plugin, &mut PluginSpec) -> anyhow::Result<bool>,
) -> anyhow::Result<Loaded> {
    let directory = std::env::current_dir().context("the working directory is not known")?;
    let paths: Vec<_> = specs.iter().map(|spec| spec.path.clone()).collect();
    let known = engine.known(&directory, &paths);
    let mut consent = Consent::new(&specs, &known);
    let mut plugins = Vec::with_capacity(specs.len());
    let loaded = load_each(engine, &known, &specs, &mut consent, widen, &mut plugins).await;
    // What was accepted until something failed stays accepted.
    consent.end(&known, loaded.is_ok());
    loaded?;
    Ok(Loaded { plugins, known })
}

async fn load_each(
    engine: &Engine,
    known: &Known,
    specs: &[PluginSpec],
    consent: &mut Consent,
    widen: fn(&Plugin, &mut PluginSpec) -> anyhow::Result<bool>,
    plugins: &mut Vec<(PluginSpec, Arc<Plugin>)>,
) -> anyhow::Result<()> {
    let recalled = recall_all(engine, known, specs);
    let notes: Vec<_> = specs.iter().map(|spec| Progress::later(&spec.options.name)).collect();
    let new = specs.iter().zip(&notes).enumerate().zip(&recalled).filter(|(_, recalled)| recalled.is_none());
    let mut loading =
        load_new(engine, known, new.map(|((place, (spec, notes)), _)| (place, spec, notes)).collect());
    for ((spec, progress), recalled) in specs.iter().zip(&notes).zip(recalled) {
        progress.tell();
        let was_known = recalled.is_some();
        let mut plugin = match recalled {
            Some(recalled) => recalled.map_err(|source| PluginError::new(&spec.path, source))?,
            None => match loading.next().await {
                Some(loaded) => loaded?,
                None => break,
            },
        };
        let mut spec = spec.clone();
        consent.check(&spec, &plugin, was_known)?;
        if widen(&plugin, &mut spec)? {
            // What was granted just now may be a directory that nobody has looked at yet.
            let deciding = offer::resolved(&compose::deciding(specs));
            offer::check_mounts(&spec.options.grants.mounts, &deciding)?;
            plugin = Arc::new(load_one(engine, spec.path.clone(), spec.options.clone()).await?);
        }
        plugins.push((spec, plugin));
    }
    Ok(())
}

/// The plugins that are known, at their places.
fn recall_all(
    engine: &Engine,
    known: &Known,
    specs: &[PluginSpec],
) -> Vec<Option<Result<Arc<Plugin>, LoadError>>> {
    side_by_side(specs, |place, spec| {
        let component = Component::from_file_ambient(&spec.path);
        let recalled = engine.recall(known, place, &component, spec.files, &spec.options);
        recalled.map(|plugin| plugin.map(Arc::new)).transpose()
    })
}

/// Loads the others, in order, as many at a time as there are processors: compiling is a process of its own for each.
fn load_new<'a>(
    engine: &'a Engine,
    known: &'a Known,
    new: Vec<(usize, &'a PluginSpec, &'a Progress)>,
) -> BoxStream<'a, Result<Arc<Plugin>, PluginError>> {
    let load = async move |(place, spec, progress): (usize, &'a PluginSpec, &'a Progress)| {
        let (component, options) = (Component::from_file_ambient(&spec.path), spec.options.clone());
        let loaded = engine.load_known(known, place, &component, spec.files, options, progress).await;
        loaded.map(Arc::new).map_err(|source| PluginError::new(&spec.path, source))
    };
    stream::iter(new).map(load).buffered(at_once()).boxed()
}

/// Loads one plugin.
pub(crate) async fn load_one(
    engine: &Engine,
    path: PathBuf,
    options: PluginOptions,
) -> anyhow::Result<Plugin> {
    let component = Component::from_file_ambient(&path);
    let progress = Progress::new(&options.name);
    let loaded = engine.load(&component, options, &progress).await;
    Ok(loaded.map_err(|source| PluginError { path, source })?)
}

/// Loads the plugin of `spec` again. A change of it needs consent.
pub(crate) async fn load_again(engine: &Engine, spec: &PluginSpec) -> anyhow::Result<Arc<Plugin>> {
    let plugin = load_one(engine, spec.path.clone(), spec.options.clone()).await?;
    if let Some(config) = spec.config.as_ref().filter(|_| spec.is_pinned) {
        consent::check_pin(&plugin, config)?;
    }
    Ok(Arc::new(plugin))
}

/// Tells the person on standard error what a load is doing.
pub(crate) struct Progress {
    name: PluginName,
    has_compiled: AtomicBool,
    /// What is to be told when it is this plugin's turn; `None` when it is.
    waiting: Mutex<Option<Vec<String>>>,
}

impl Progress {
    pub(crate) fn new(name: &PluginName) -> Self {
        Self::of(name, None)
    }

    /// Keeps what there is to tell until [`Progress::tell`].
    fn later(name: &PluginName) -> Self {
        Self::of(name, Some(Vec::new()))
    }

    fn of(name: &PluginName, waiting: Option<Vec<String>>) -> Self {
        Self { name: name.clone(), has_compiled: AtomicBool::new(false), waiting: waiting.into() }
    }

    /// Whether the component was compiled.
    pub(crate) fn has_compiled(&self) -> bool {
        self.has_compiled.load(Ordering::Relaxed)
    }

    fn tell(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        waiting.into_iter().flatten().for_each(|note| print::note(&note));
    }

    fn note(&self, note: String) {
        match self.waiting.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(waiting) => waiting.push(note),
            None => print::note(&note),
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
                self.note(format!("compiling {name} ({}), once …", print::bytes(component_bytes)));
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
