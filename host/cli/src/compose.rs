//! Builds what a command works with: engine, plugins, toolset.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use cofferdam_agent::skills::SkillTools;
use cofferdam_engine::{
    Compiler, Component, Engine, EngineConfig, Grants, Mount, Plugin, PluginInfo, PluginOptions, PoolSize,
};
use cofferdam_files::{FileAccessTools, SpillOptions};
use cofferdam_mcp::client::RemoteServer;
use cofferdam_tool::{Declaration, FileAccess, Limits, PluginName, ToolSource, Toolset};
use etcetera::BaseStrategy;

use crate::args::{Global, PluginArgs};
use crate::config::{ConfigError, ConfigFile, PluginConfig};
use crate::exit::UsageError;
use crate::loading::{PluginError, Progress, Unavailable};
use crate::offer::Values;
use crate::rebuild::FirstBuild;
use crate::servers::Login;
use crate::side_by_side::side_by_side;
use crate::stores::Stores;
use crate::{offer, print, remembered, servers, skills, workspace};

/// Calls that one command makes at the same time, inner ones included.
const CONCURRENT_CALLS_MAX: u32 = 8;

/// Retries of one call that a configuration may ask for. A call that loses more often than that needs another design.
const RETRIES_MAX: u32 = 100;

/// A plugin that is asked for, before it is loaded.
#[derive(Clone)]
pub(crate) struct PluginSpec {
    pub(crate) path: PathBuf,
    /// The component at that path, in the version that was there before anything was read.
    pub(crate) component: Component,
    pub(crate) options: PluginOptions,
    /// The configuration that names it, if one does.
    pub(crate) config: Option<PathBuf>,
    /// What decides about the servers of that configuration, and what else no tool may write to.
    protected: Arc<[PathBuf]>,
    /// Files that decide about the grants of any plugin of the command.
    policy_files: Arc<[PathBuf]>,
    /// Whether a change of it needs consent.
    pub(crate) is_pinned: bool,
    /// The build that has to succeed before the component can be loaded for the first time.
    pub(crate) first_build: Option<FirstBuild>,
}

impl PluginSpec {
    /// Adds what no tool may write to.
    pub(crate) fn protect(&mut self, paths: &[PathBuf]) {
        if !paths.is_empty() {
            self.protected = self.protected.iter().chain(paths).cloned().collect();
        }
    }
}

/// The engine with the cache that the flags name.
pub(crate) fn engine(global: &Global) -> anyhow::Result<Engine> {
    engine_for(global, CONCURRENT_CALLS_MAX)
}

/// The same, for so many calls at the same time.
pub(crate) fn engine_for(global: &Global, concurrent_calls_max: u32) -> anyhow::Result<Engine> {
    let program = std::env::current_exe().context("cannot find this program to start the compiler")?;
    let mut config = EngineConfig::new(Compiler::Child { program, arguments: vec!["compile-child".into()] });
    config.pool = PoolSize { concurrent_calls_max, ..PoolSize::default() };
    config.cache_directory = cache_directory(global)?;
    config.idle_hook = Some(crate::memory::release);
    config.spill = config.cache_directory.as_deref().and_then(spill);
    Ok(Engine::new(config)?)
}

/// Changes of a call that are too large for memory go beside the cache. Where that directory cannot be made they stay in
/// memory, and a call that changes too much is told so.
fn spill(cache: &Path) -> Option<SpillOptions> {
    let directory = cache.join("spill");
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(&directory).ok()?;
    let directory_ambient = directory.canonicalize().ok()?;
    Some(SpillOptions { directory_ambient, bytes_max: 256 << 20, file_bytes_min: 1 << 20 })
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

/// The configuration that the flags name. It is read once: what is made of it belongs together.
pub(crate) fn config(args: &PluginArgs) -> anyhow::Result<Option<ConfigFile>> {
    Ok(args.config.as_deref().map(ConfigFile::read_ambient).transpose()?)
}

/// The plugins that the flags and the configuration name. It is an error if there are no tools at all.
pub(crate) fn plugin_specs(
    args: &PluginArgs,
    file: Option<&ConfigFile>,
    values: Values,
) -> anyhow::Result<Vec<PluginSpec>> {
    let specs = any_plugin_specs(args, file, values)?;
    let has_servers = file.is_some_and(|file| !file.config.servers.is_empty());
    let has_files = args.files.is_some() || file.is_some_and(|file| !file.config.files.is_empty());
    if specs.is_empty() && !has_files && !has_servers && !skills::are_named(args, file) {
        return Err(usage("no tools are named; pass --plugin PATH, --config FILE or --files STORE"));
    }
    Ok(specs)
}

/// The plugins that the flags and the configuration name, if any.
pub(crate) fn any_plugin_specs(
    args: &PluginArgs,
    file: Option<&ConfigFile>,
    values: Values,
) -> anyhow::Result<Vec<PluginSpec>> {
    let mut specs = match file {
        Some(file) => specs_of_config(file, values)?,
        None => Vec::new(),
    };
    let server_files: Arc<[PathBuf]> = file.map(servers::deciding_files).unwrap_or_default().into();
    let mounts = args.mounts.iter().map(|text| offer::mount(text)).collect::<anyhow::Result<Vec<_>>>()?;
    for (index, mount) in mounts.iter().enumerate() {
        if mounts.iter().take(index).any(|earlier| earlier.name == mount.name) {
            return Err(usage(format!("two mounts are called `{}`", mount.name)));
        }
    }
    for text in &args.plugins {
        let (name, path) = named_path(text)?;
        let grants = Grants { mounts: mounts.clone(), ..Grants::default() };
        let options = PluginOptions { name, grants, limits: Limits::default(), retries_max: 0 };
        specs.push(PluginSpec {
            component: Component::from_file_ambient(&path),
            path,
            options,
            config: None,
            protected: Arc::clone(&server_files),
            policy_files: Arc::default(),
            is_pinned: false,
            first_build: None,
        });
    }
    if args.plugins.is_empty() && !mounts.is_empty() {
        return Err(usage("--mount is for plugins named with --plugin; a configuration has its own grants"));
    }
    let policy_files: Arc<[PathBuf]> =
        if args.plugins.is_empty() { Arc::default() } else { deciding(&specs).into() };
    for spec in &mut specs {
        override_limits(spec, args);
        spec.policy_files = Arc::clone(&policy_files);
    }
    check_reach(&specs)?;
    Ok(specs)
}

/// The file-access tools that the flags and the configuration name, beside the plugins of `specs`. They may not write to
/// `protected` either. A store that was typed outlives `before`.
pub(crate) fn file_tools(
    args: &PluginArgs,
    file: Option<&ConfigFile>,
    specs: &[PluginSpec],
    values: Values,
    protected: &[PathBuf],
    before: Option<&FileAccessTools>,
) -> anyhow::Result<Option<Arc<FileAccessTools>>> {
    let mut deciding = deciding(specs);
    deciding.extend_from_slice(protected);
    if let Some(file) = file {
        deciding.extend(servers::deciding_files(file));
        deciding.push(file.path.clone());
    }
    Ok(workspace::tools(args.files.as_deref(), file, values, &deciding, before)?.map(Arc::new))
}

/// No plugin may write what decides about its own grants or another's.
pub(crate) fn check_reach(specs: &[PluginSpec]) -> anyhow::Result<()> {
    let can_write = |mounts: &&Vec<Mount>| mounts.iter().any(|mount| mount.access != FileAccess::ReadOnly);
    let mut granted = specs.iter().map(|spec| &spec.options.grants.mounts).filter(can_write);
    let Some(first) = granted.next() else { return Ok(()) };
    let deciding = offer::policy_files(&deciding(specs));
    std::iter::once(first).chain(granted).try_for_each(|mounts| offer::check_mounts(mounts, &deciding))
}

/// The files that decide about grants.
pub(crate) fn deciding<'a>(specs: impl IntoIterator<Item = &'a PluginSpec>) -> Vec<PathBuf> {
    let files = |spec: &PluginSpec| [Some(spec.path.clone()), spec.config.clone()];
    let of = |spec| files(spec).into_iter().flatten().chain(spec.protected.iter().cloned());
    specs.into_iter().flat_map(of).chain(remembered::path()).collect()
}

/// The files that decide about grants, for a plugin that is looked at by itself.
pub(crate) fn deciding_beside(spec: &PluginSpec) -> Vec<PathBuf> {
    deciding([spec]).into_iter().chain(spec.policy_files.iter().cloned()).collect()
}

/// What is typed counts: the person at the command line is the one who wrote the configuration, or who chose it.
fn override_limits(spec: &mut PluginSpec, args: &PluginArgs) {
    let limits = &mut spec.options.limits;
    if let Some(timeout) = args.timeout {
        limits.wall_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        // Who gives a tool more time than it could compute for by default means computing too, where nobody has set that.
        if spec.config.is_none() {
            limits.cpu_ms_max = limits.cpu_ms_max.max(limits.wall_ms_max);
        }
    }
    if let Some(mebibytes) = args.memory {
        limits.memory_bytes_max = mebibytes << 20;
    }
}

/// The plugins of a configuration. Every reference is checked here, those of its servers as well.
pub(crate) fn specs_of_config(file: &ConfigFile, values: Values) -> anyhow::Result<Vec<PluginSpec>> {
    let stores = Stores::new(file, values);
    let protected = servers::deciding_files(file).into();
    let plugins: Vec<_> = file.config.plugins.iter().collect();
    let found = side_by_side(&plugins, |_, (_, plugin)| Found::look(file, plugin));
    let specs: Vec<_> = plugins
        .into_iter()
        .zip(found)
        .map(|((name, plugin), found)| spec_of_plugin(file, name, plugin, found, &stores, values, &protected))
        .collect::<anyhow::Result<_>>()?;
    servers::of_config(file, Values::Leave, Login::Refused)?;
    check_reach(&specs)?;
    Ok(specs)
}

/// Refuses a configuration that names a component which does not exist. Commands that call tools leave such a plugin out.
pub(crate) fn check_components(file: &ConfigFile) -> Result<(), ConfigError> {
    let missing = file.config.plugins.values().map(|plugin| &plugin.component);
    let mut missing = missing.filter(|component| !file.resolve(component.as_ref()).is_file());
    match missing.next() {
        Some(component) => {
            let message = format!("there is no file {}", file.resolve(component.as_ref()).display());
            Err(file.error(component.span(), message))
        }
        None => Ok(()),
    }
}

/// One plugin of a configuration.
pub(crate) fn spec_of_config(
    file: &ConfigFile,
    name: &str,
    plugin: &PluginConfig,
    stores: &Stores<'_>,
    values: Values,
) -> anyhow::Result<PluginSpec> {
    let found = Found::look(file, plugin);
    spec_of_plugin(file, name, plugin, found, stores, values, &servers::deciding_files(file).into())
}

/// Where the component of a plugin is, and what is there.
struct Found {
    path: PathBuf,
    component: Component,
}

impl Found {
    fn look(file: &ConfigFile, plugin: &PluginConfig) -> Self {
        let path = file.resolve(plugin.component.as_ref());
        Self { component: Component::from_file_ambient(&path), path }
    }
}

fn spec_of_plugin(
    file: &ConfigFile,
    name: &str,
    plugin: &PluginConfig,
    Found { path, component }: Found,
    stores: &Stores<'_>,
    values: Values,
    protected: &Arc<[PathBuf]>,
) -> anyhow::Result<PluginSpec> {
    let header = format!("[plugins.{name}");
    let plugin_name = PluginName::new(name)
        .map_err(|error| file.error_in_table(&header, format!("plugin `{name}`: {error}")))?;
    let grants = offer::of_config(file, name, plugin, stores, values)?;
    let limits = plugin.limits.over(&file.config.limits);
    if limits.wall_ms_max == 0 || limits.memory_bytes_max == 0 || limits.output_bytes_max == 0 {
        let message = format!("plugin `{name}`: a limit of 0 lets no call succeed");
        return Err(file.error_in_table("limits", message).into());
    }
    if plugin.retries > RETRIES_MAX {
        let message =
            format!("plugin `{name}`: `retries` is {}; at most {RETRIES_MAX} are made", plugin.retries);
        return Err(file.error_in_table(&header, message).into());
    }
    let options = PluginOptions { name: plugin_name, grants, limits, retries_max: plugin.retries };
    let protected = Arc::clone(protected);
    let (config, is_pinned) = (Some(file.path.clone()), plugin.pin);
    let policy_files = Arc::default();
    Ok(PluginSpec { path, component, options, config, protected, policy_files, is_pinned, first_build: None })
}

/// Reads `[NAME=]PATH`. Without a name the plugin is called like the file.
pub(crate) fn named_path(text: &str) -> anyhow::Result<(PluginName, PathBuf)> {
    if let Some((name, path)) = text.split_once('=')
        && !name.contains(['/', '.'])
    {
        let name = PluginName::new(name).map_err(|e| usage(format!("plugin name `{name}`: {e}")))?;
        return Ok((name, PathBuf::from(path)));
    }
    let path = PathBuf::from(text);
    let name = cofferdam::plugin_name(&path)
        .with_context(|| format!("`{text}` gives no name for the plugin; write --plugin NAME=PATH"))
        .map_err(|error| usage(format!("{error:#}")))?;
    Ok((name, path))
}

/// What a component is and declares, without judging it.
pub(crate) struct Examined {
    pub(crate) info: PluginInfo,
    pub(crate) declarations: Vec<Declaration>,
    /// Whether it was compiled for that; otherwise it had been before.
    pub(crate) was_compiled: bool,
}

/// Asks a component for its declarations.
pub(crate) async fn examine(engine: &Engine, path: &Path) -> anyhow::Result<Examined> {
    let name = cofferdam::plugin_name(path).map_err(|error| usage(error.to_string()))?;
    let progress = Progress::new(&name);
    let examined = engine.examine(&Component::from_file_ambient(path), &name, &progress).await;
    let (info, declarations) = examined.map_err(|source| PluginError::new(path, source))?;
    Ok(Examined { info, declarations, was_compiled: progress.has_compiled() })
}

/// One toolset over `plugins`, the file-access tools, those of skills and `servers`. Tools of the same name get that of their source before it.
///
/// A server that takes a name which is still taken then is left out, with a note: what a stranger calls its tools keeps
/// nobody else's away.
pub(crate) fn toolset<'p>(
    plugins: impl IntoIterator<Item = &'p Arc<Plugin>>,
    unavailable: impl IntoIterator<Item = &'p Unavailable>,
    file_tools: Option<Arc<FileAccessTools>>,
    skill_tools: Option<Arc<SkillTools>>,
    mut servers: Vec<Arc<RemoteServer>>,
) -> anyhow::Result<Toolset> {
    let plugins = plugins.into_iter().map(|plugin| Arc::clone(plugin) as Arc<dyn ToolSource>);
    let own = plugins.chain(file_tools.map(|tools| tools as Arc<dyn ToolSource>));
    let own: Vec<_> = own.chain(skill_tools.map(|tools| tools as Arc<dyn ToolSource>)).collect();
    let unavailable = unavailable.into_iter().map(|plugin| Arc::clone(&plugin.source) as Arc<dyn ToolSource>);
    let mut unavailable: Vec<_> = unavailable.collect();
    loop {
        let own = own.iter().chain(&unavailable);
        let remote = servers.iter().map(|server| Arc::clone(server) as Arc<dyn ToolSource>);
        let error = match Toolset::join(own.cloned().chain(remote)) {
            Ok(toolset) => return Ok(toolset),
            Err(error) => error,
        };
        let is_named =
            |name: &str| [&error.source_name, &error.taken_by].into_iter().any(|named| named == name);
        // Remembered tools keep no other tool away.
        if let Some(at) = unavailable.iter().rposition(|plugin| is_named(plugin.name())) {
            unavailable.remove(at);
            continue;
        }
        let is_in = |server: &Arc<RemoteServer>| is_named(server.name());
        let Some(at) = servers.iter().rposition(is_in) else { return Err(usage(error.to_string())) };
        let left_out = servers.remove(at);
        print::note(&format!("warning: the server `{}` is left out: {error}", left_out.name()));
    }
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}
