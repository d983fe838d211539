//! Builds everything that a command works with: engine, plugins, toolset.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use cofferdam_engine::{
    Access, Compiler, Component, Engine, EngineConfig, Grants, LoadError, LoadEvent, LoadObserver, Mount,
    MountName, Plugin, PluginInfo, PluginOptions, PoolSize,
};
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tool::{Declaration, Limits, PluginName, Toolset};
use etcetera::BaseStrategy;

use crate::args::{Global, PluginArgs};
use crate::config::{AccessConfig, ConfigFile, PluginConfig};
use crate::exit::UsageError;
use crate::print;

/// Calls that one command makes at the same time.
const CONCURRENT_CALLS_MAX: u32 = 4;

/// A plugin that is asked for, before it is loaded.
pub(crate) struct PluginSpec {
    pub(crate) path: PathBuf,
    pub(crate) options: PluginOptions,
}

/// A component that is not taken, and which one.
#[derive(Debug, thiserror::Error)]
#[error("{}", .path.display())]
pub(crate) struct PluginError {
    path: PathBuf,
    source: LoadError,
}

impl PluginError {
    /// Why the component is not taken.
    pub(crate) fn cause(&self) -> &LoadError {
        &self.source
    }
}

/// The engine with the cache that the flags name.
pub(crate) fn engine(global: &Global) -> anyhow::Result<Engine> {
    let program = std::env::current_exe().context("cannot find this program to start the compiler")?;
    let mut config = EngineConfig::new(Compiler::Child { program, arguments: vec!["compile-child".into()] });
    config.pool = PoolSize { concurrent_calls_max: CONCURRENT_CALLS_MAX, ..PoolSize::default() };
    config.cache_directory = cache_directory(global)?;
    Ok(Engine::new(config)?)
}

fn cache_directory(global: &Global) -> anyhow::Result<Option<PathBuf>> {
    if global.no_cache {
        return Ok(None);
    }
    if let Some(directory) = &global.cache_dir {
        return Ok(Some(directory.clone()));
    }
    let base = etcetera::choose_base_strategy()
        .context("the home directory is not known; pass --cache-dir DIR or --no-cache")?;
    Ok(Some(base.cache_dir().join("cofferdam")))
}

/// The plugins that the flags and the configuration name.
pub(crate) fn plugin_specs(args: &PluginArgs) -> anyhow::Result<Vec<PluginSpec>> {
    let mut specs = match &args.config {
        Some(path) => specs_of_config(&ConfigFile::read_ambient(path)?)?,
        None => Vec::new(),
    };
    let mounts = args.mounts.iter().map(|text| mount(text)).collect::<anyhow::Result<Vec<_>>>()?;
    for (index, mount) in mounts.iter().enumerate() {
        if mounts.iter().take(index).any(|earlier| earlier.name == mount.name) {
            return Err(usage(format!("two mounts are called `{}`", mount.name)));
        }
    }
    for text in &args.plugins {
        let (name, path) = named_path(text)?;
        let grants = Grants { mounts: mounts.clone(), ..Grants::default() };
        specs.push(PluginSpec { path, options: PluginOptions { name, grants, limits: Limits::default() } });
    }
    if specs.is_empty() {
        return Err(usage("no plugin is named; pass --plugin PATH or --config FILE"));
    }
    if args.plugins.is_empty() && !mounts.is_empty() {
        return Err(usage("--mount is for plugins named with --plugin; a configuration has its own grants"));
    }
    for spec in &mut specs {
        override_limits(&mut spec.options.limits, args);
    }
    Ok(specs)
}

/// What is typed counts: the person at the command line is the one who wrote the configuration, or who chose it.
fn override_limits(limits: &mut Limits, args: &PluginArgs) {
    if let Some(timeout) = args.timeout {
        limits.wall_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    }
    if let Some(mebibytes) = args.memory {
        limits.memory_bytes_max = mebibytes << 20;
    }
}

/// The plugins of a configuration. Every reference is checked here.
pub(crate) fn specs_of_config(file: &ConfigFile) -> anyhow::Result<Vec<PluginSpec>> {
    file.config.plugins.iter().map(|(name, plugin)| spec_of_config(file, name, plugin)).collect()
}

fn spec_of_config(file: &ConfigFile, name: &str, plugin: &PluginConfig) -> anyhow::Result<PluginSpec> {
    let header = format!("[plugins.{name}");
    let name = PluginName::new(name)
        .map_err(|error| file.error_in_table(&header, format!("plugin `{name}`: {error}")))?;
    let path = file.resolve(plugin.component.as_ref());
    if !path.is_file() {
        let message = format!("there is no file {}", path.display());
        return Err(file.error(plugin.component.span(), message).into());
    }
    let mut mounts = Vec::new();
    for (store, access) in &plugin.grants.files {
        let Some(config) = file.config.stores.get(store) else {
            let known: Vec<_> = file.config.stores.keys().map(|k| format!("`{k}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("there is no store `{store}`; stores of this file: {known}");
            return Err(file.error(access.span(), message).into());
        };
        let name = MountName::new(store.as_str()).map_err(|e| file.error(access.span(), e.to_string()))?;
        let access = match access.as_ref() {
            AccessConfig::ReadOnly => Access::ReadOnly,
            AccessConfig::ReadWrite => Access::ReadWrite,
        };
        let directory = file.resolve(config.directory.as_ref());
        let store = open_directory(&directory, access)
            .map_err(|e| file.error(config.directory.span(), format!("{e:#}")))?;
        mounts.push(Mount { name, store, access });
    }
    let limits = plugin.limits.clone().unwrap_or_else(|| file.config.limits.clone());
    if limits.wall_ms_max == 0 || limits.memory_bytes_max == 0 || limits.output_bytes_max == 0 {
        let message = format!("plugin `{name}`: a limit of 0 lets no call succeed");
        return Err(file.error_in_table("limits", message).into());
    }
    let grants = Grants { mounts, ..Grants::default() };
    Ok(PluginSpec { path, options: PluginOptions { name, grants, limits } })
}

/// Reads `NAME=DIR[:ro|:rw]`.
fn mount(text: &str) -> anyhow::Result<Mount> {
    let form = "write --mount NAME=DIR, or NAME=DIR:ro for reading only";
    let Some((name, directory)) = text.split_once('=') else {
        return Err(usage(format!("`{text}` is not a mount: {form}")));
    };
    let (directory, access) = match directory.rsplit_once(':') {
        Some((directory, "ro")) => (directory, Access::ReadOnly),
        Some((directory, "rw")) => (directory, Access::ReadWrite),
        _ => (directory, Access::ReadWrite),
    };
    if directory.is_empty() {
        return Err(usage(format!("`{text}` names no directory: {form}")));
    }
    let name = MountName::new(name).map_err(|error| usage(error.to_string()))?;
    let store = open_directory(Path::new(directory), access).map_err(|error| usage(format!("{error:#}")))?;
    Ok(Mount { name, store, access })
}

fn open_directory(directory: &Path, access: Access) -> anyhow::Result<Arc<DirectoryStore>> {
    let options =
        DirectoryOptions { is_read_only: access == Access::ReadOnly, ..DirectoryOptions::default() };
    let store = DirectoryStore::open_ambient(directory, options)
        .with_context(|| format!("the directory {} cannot be mounted", directory.display()))?;
    Ok(Arc::new(store))
}

/// Reads `[NAME=]PATH`. Without a name the plugin is called like the file.
fn named_path(text: &str) -> anyhow::Result<(PluginName, PathBuf)> {
    if let Some((name, path)) = text.split_once('=')
        && !name.contains(['/', '.'])
    {
        let name = PluginName::new(name).map_err(|e| usage(format!("plugin name `{name}`: {e}")))?;
        return Ok((name, PathBuf::from(path)));
    }
    let path = PathBuf::from(text);
    let name = name_of_file(&path)
        .with_context(|| format!("`{text}` gives no name for the plugin; write --plugin NAME=PATH"))
        .map_err(|error| usage(format!("{error:#}")))?;
    Ok((name, path))
}

/// The name of a plugin that was given none: the file's, without its ending and with `_` for what a name cannot hold.
pub(crate) fn name_of_file(path: &Path) -> anyhow::Result<PluginName> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name: String = stem.chars().map(|c| if fits(c) { c } else { '_' }).take(64).collect();
    Ok(PluginName::new(name)?)
}

/// Loads plugins in order, telling the person what takes long.
pub(crate) async fn load(engine: &Engine, specs: Vec<PluginSpec>) -> anyhow::Result<Vec<Arc<Plugin>>> {
    let mut plugins = Vec::new();
    for spec in specs {
        plugins.push(Arc::new(load_one(engine, spec.path, spec.options).await?));
    }
    Ok(plugins)
}

/// Loads one plugin.
pub(crate) async fn load_one(
    engine: &Engine,
    path: PathBuf,
    options: PluginOptions,
) -> anyhow::Result<Plugin> {
    let component = Component::from_file_ambient(&path);
    let progress = Progress { name: options.name.to_string() };
    let loaded = engine.load(&component, options, &progress).await;
    Ok(loaded.map_err(|source| PluginError { path, source })?)
}

/// What a component declares, without judging it.
pub(crate) async fn examine(engine: &Engine, path: &Path) -> anyhow::Result<(PluginInfo, Vec<Declaration>)> {
    let name = name_of_file(path).map_err(|error| usage(error.to_string()))?;
    let progress = Progress { name: name.to_string() };
    let examined = engine.examine(&Component::from_file_ambient(path), &name, &progress).await;
    Ok(examined.map_err(|source| PluginError { path: path.to_owned(), source })?)
}

/// One toolset over `plugins`.
pub(crate) fn toolset(plugins: &[Arc<Plugin>]) -> anyhow::Result<Toolset> {
    let mut toolset = Toolset::new();
    for plugin in plugins {
        toolset.add(Arc::clone(plugin) as _).map_err(|error| {
            usage(format!("{error}; the second one is in plugin `{}`", plugin.info().identity.name))
        })?;
    }
    Ok(toolset)
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Tells the person on standard error what a load is doing.
struct Progress {
    name: String,
}

/// Components below this size compile before anybody wonders, in bytes.
const QUIET_BYTES_MAX: u64 = 512 * 1024;

impl LoadObserver for Progress {
    fn on_event(&self, event: LoadEvent) {
        let name = &self.name;
        match event {
            LoadEvent::Compiling { component_bytes } if component_bytes > QUIET_BYTES_MAX => {
                print::note(&format!("compiling {name} ({}), once …", print::bytes(component_bytes)));
            }
            LoadEvent::CacheRejected => {
                print::note(&format!(
                    "warning: a cache entry of {name} was not written by this installation and is ignored"
                ));
            }
            LoadEvent::CacheUnwritable => {
                print::note(&format!(
                    "warning: the cache cannot be written; {name} is compiled again next time"
                ));
            }
            _ => {}
        }
    }
}
