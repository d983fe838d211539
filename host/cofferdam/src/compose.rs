//! Composes plugins and a toolset from a selection.

mod plan;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_engine::{Component, Engine, Grants, Mount, Plugin, PluginInfo, PluginOptions};
use cofferdam_files::FileAccessTools;
use cofferdam_registry::Digest;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::permission::RequestedPermissions;
use cofferdam_tool::retry::{RetryPolicy, RetryingSource};
use cofferdam_tool::usage::{Usage, UsageLimits};
use cofferdam_tool::{FileAccess, Limits, MountName, PluginName, ToolSource, Toolset};
use toml::Spanned;

pub use self::plan::HostPlan;
use crate::artifacts::{self, LocatedComponent, Locator};
use crate::config::{ConfigFile, PluginConfig, UnexpectedErrors};
use crate::granting::Values;
use crate::loading::{LoadProgress, PluginError};
use crate::stores::Stores;
use crate::{
    Error, FirstBuild, Operator, Selection, StoreMount, granting, policy_files, records,
    remembered, servers, skill_tools, stores,
};

/// Maximum number of retries of one call that a configuration may set.
const RETRIES_MAX: u32 = 100;

/// A selected plugin before it is loaded.
#[derive(Clone)]
pub struct PluginSpec {
    /// Component file.
    pub path: PathBuf,
    /// Component at that path, in the version from before anything was read.
    pub component: Component,
    /// Name, grants and limits.
    pub options: PluginOptions,
    /// Digest that the component must have, for a plugin that was fetched.
    pub(crate) digest: Option<Digest>,
    /// Reason why the component cannot be loaded.
    pub(crate) missing: Option<Arc<str>>,
    /// Configuration that names the plugin, if any.
    pub(crate) config: Option<PathBuf>,
    /// Files that control the servers of that configuration, and other paths that no tool may write
    /// to.
    protected: Arc<[PathBuf]>,
    /// Files that control the grants of any plugin of the command.
    policy_files: Arc<[PathBuf]>,
    /// True if a change of the plugin needs consent.
    pub(crate) is_pinned: bool,
    /// Maximum number of retries after transient failures.
    transient_retries: u32,
    /// Count of calls, for limits on the total. Clones share it.
    usage: Option<Arc<Usage>>,
    /// Build that must succeed before the component can be loaded for the first time.
    pub(crate) first_build: Option<FirstBuild>,
}

impl PluginSpec {
    /// Returns whether the component comes from elsewhere than a file of the operator.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_fetched(&self) -> bool {
        self.digest.is_some() || self.missing.is_some()
    }

    /// Returns whether this is the component `located`, and can be used if that one can.
    #[cfg(feature = "mcp")]
    pub(crate) fn is_at(&self, located: &LocatedComponent) -> bool {
        self.path == located.path && self.missing.is_some() == located.missing.is_some()
    }

    /// Returns the component with the current version of its file.
    pub(crate) fn current_component(&self) -> Component {
        artifacts::component(&self.path, self.digest)
    }
}

/// Tools of one plugin, ready for a toolset.
pub struct PluginSource {
    source: Arc<dyn ToolSource>,
    usage: Option<Arc<Usage>>,
}

/// Sources of a toolset. If names conflict, earlier sources have precedence.
#[derive(Default)]
pub struct ToolsetParts {
    /// Plugins.
    pub plugins: Vec<PluginSource>,
    /// File-access tools, tools of skills, and other sources of the program.
    pub others: Vec<Arc<dyn ToolSource>>,
    /// Plugins that cannot be used, with their known tools.
    pub unavailable: Vec<Arc<dyn ToolSource>>,
    /// MCP servers.
    pub servers: Vec<Arc<dyn ToolSource>>,
}

impl PluginSpec {
    /// Returns the tools of the plugin with its retries after transient failures and its limits on
    /// calls.
    #[must_use]
    pub fn source(&self, plugin: &Arc<Plugin>) -> PluginSource {
        let source = Arc::clone(plugin) as Arc<dyn ToolSource>;
        let source: Arc<dyn ToolSource> = match self.transient_retries {
            0 => source,
            retries_max => {
                Arc::new(RetryingSource::new(source, RetryPolicy::on_transient(retries_max)))
            }
        };
        PluginSource { source, usage: self.usage.clone() }
    }

    /// Adds paths that no tool may write to.
    pub(crate) fn protect(&mut self, paths: &[PathBuf]) {
        if !paths.is_empty() {
            self.protected = self.protected.iter().chain(paths).cloned().collect();
        }
    }
}

/// Returns the plugins of a selection and its configuration.
fn plugin_specs(
    selection: &Selection,
    file: Option<&ConfigFile>,
    values: Values,
) -> crate::Result<Vec<PluginSpec>> {
    let mut specs = match file {
        Some(file) => specs_of_config(file, values)?,
        None => Vec::new(),
    };
    let server_files: Arc<[PathBuf]> = file.map(servers::deciding_files).unwrap_or_default().into();
    let (grants, limits) = offered(selection, values)?;
    for plugin in &selection.plugins {
        let (name, path) = (plugin.to_name()?, plugin.component.clone());
        check_component(&name, &path, &specs)?;
        let (grants, limits) = (grants.clone(), limits.clone());
        let options = PluginOptions {
            shows_errors: selection.shows_errors,
            ..PluginOptions::new(name, grants, limits)
        };
        specs.push(PluginSpec {
            component: Component::from_file_ambient(&path),
            path,
            options,
            digest: None,
            missing: None,
            config: None,
            protected: Arc::clone(&server_files),
            policy_files: Arc::default(),
            is_pinned: false,
            transient_retries: 0,
            usage: None,
            first_build: None,
        });
    }
    let offers_something = !selection.mounts.is_empty() || !selection.permissions.is_empty();
    if selection.plugins.is_empty() && offers_something {
        return Err(Error::invalid(
            "mounts and permissions are for plugins that no configuration names; a configuration \
             has its own grants",
        ));
    }
    let policy_files: Arc<[PathBuf]> =
        if selection.plugins.is_empty() { Arc::default() } else { policy_files_of(&specs).into() };
    for spec in &mut specs {
        override_limits(spec, selection);
        granting::check_limits(&spec.options.limits).map_err(Error::invalid)?;
        spec.policy_files = Arc::clone(&policy_files);
    }
    check_reach(&specs)?;
    Ok(specs)
}

/// Returns an error if a plugin of the command line has the name of another one, or names a
/// configuration.
fn check_component(name: &PluginName, path: &Path, specs: &[PluginSpec]) -> crate::Result<()> {
    let shown = path.display();
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Err(Error::invalid(format!(
            "`{shown}` is not a component; pass a configuration as --config {shown}"
        )));
    }
    if specs.iter().any(|spec| spec.options.name == *name) {
        return Err(Error::invalid(format!(
            "two plugins are named `{name}`; give one another name: --plugin NAME={shown}"
        )));
    }
    Ok(())
}

/// Returns an error if a plugin may write a file that controls its own grants or another plugin's.
pub(crate) fn check_reach(specs: &[PluginSpec]) -> crate::Result<()> {
    let can_write =
        |mounts: &&Vec<Mount>| mounts.iter().any(|mount| mount.access != FileAccess::ReadOnly);
    let mut granted = specs.iter().map(|spec| &spec.options.grants.mounts).filter(can_write);
    let Some(first) = granted.next() else { return Ok(()) };
    let deciding = policy_files::locate(&policy_files_of(specs));
    std::iter::once(first)
        .chain(granted)
        .try_for_each(|mounts| granting::check_mounts(mounts, &deciding))
}

/// Returns an error if a plugin of a configuration may write a file that controls grants. Passes
/// over plugins with other errors.
pub(crate) fn check_reach_of_config(file: &ConfigFile) -> crate::Result<()> {
    let specs = each_spec(file, &Stores::new(file, Values::Leave))?;
    let mut specs: Vec<_> = specs.into_iter().filter_map(Result::ok).collect();
    let protected = protected_directories(&Selection::default(), Some(file));
    specs.iter_mut().for_each(|spec| spec.protect(&protected));
    check_reach(&specs)
}

/// Returns the directories of skills and of the call log, also while nothing is recorded, because
/// the log contains earlier calls.
pub(crate) fn protected_directories(
    selection: &Selection,
    config: Option<&ConfigFile>,
) -> Vec<PathBuf> {
    let log = records::directory_ambient(config);
    skill_tools::directories(selection, config).into_iter().chain(log).collect()
}

/// Returns the files that control grants.
pub(crate) fn policy_files_of<'a>(specs: impl IntoIterator<Item = &'a PluginSpec>) -> Vec<PathBuf> {
    let files = |spec: &PluginSpec| [Some(spec.path.clone()), spec.config.clone()];
    let of = |spec| files(spec).into_iter().flatten().chain(spec.protected.iter().cloned());
    specs
        .into_iter()
        .flat_map(of)
        .chain(remembered::path())
        .chain(records::default_directory())
        .collect()
}

/// Returns the files that control grants, for a plugin that is checked individually.
pub(crate) fn policy_files_beside(spec: &PluginSpec) -> Vec<PathBuf> {
    policy_files_of([spec]).into_iter().chain(spec.policy_files.iter().cloned()).collect()
}

/// Applies the limits of the command line, which override those of the configuration.
fn override_limits(spec: &mut PluginSpec, selection: &Selection) {
    let limits = &mut spec.options.limits;
    if let Some(timeout) = selection.timeout {
        limits.wall_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        // A longer time limit also raises the default CPU limit, but not one that was chosen.
        if spec.config.is_none() && !selection.limits_cpu_time() {
            limits.cpu_ms_max = limits.cpu_ms_max.max(limits.wall_ms_max);
        }
    }
    if let Some(bytes) = selection.memory_bytes_max {
        limits.memory_bytes_max = bytes;
    }
}

/// Returns the plugins of a configuration. Checks every reference, including those of its servers.
pub(crate) fn specs_of_config(file: &ConfigFile, values: Values) -> crate::Result<Vec<PluginSpec>> {
    let specs = each_spec(file, &Stores::new(file, values))?;
    let specs: Vec<_> = specs.into_iter().collect::<crate::Result<_>>()?;
    servers::check(file)?;
    check_reach(&specs)?;
    Ok(specs)
}

/// Returns the plugins of a configuration, or what is wrong with each.
fn each_spec(
    file: &ConfigFile,
    stores: &Stores<'_>,
) -> crate::Result<Vec<crate::Result<PluginSpec>>> {
    let protected = servers::deciding_files(file).into();
    let plugins: Vec<_> = file.config.plugins.iter().collect();
    let locator = Locator::new(file)?;
    let located = plugins.iter().map(|(name, it)| locator.locate(name, it.component.get_ref()));
    let located: Vec<_> = located.collect();
    let paths: Vec<_> = located.iter().map(|located| located.path.clone()).collect();
    let components = Component::from_files_ambient(&paths);
    let found = located.into_iter().zip(components).map(ComponentFile::new);
    let specs = plugins
        .into_iter()
        .zip(found)
        .map(|((name, plugin), found)| spec_of_plugin(name, plugin, found, stores, &protected));
    Ok(specs.collect())
}

/// Returns an error if the configuration names a component that does not exist, be it a plugin or
/// the interpreter of code mode, or advisories that cannot be read. Commands that call tools do not
/// use this: they leave such a plugin out.
pub(crate) fn check_components(file: &ConfigFile) -> crate::Result<()> {
    #[cfg(feature = "registry")]
    crate::advisories::AdvisorySources::of(Some(file)).read_ambient()?;
    let locator = Locator::new(file)?;
    for (name, plugin) in &file.config.plugins {
        let located = locator.locate(name, plugin.component.get_ref());
        let message = match located.missing {
            Some(missing) => missing,
            None if located.path.is_file() => continue,
            None => format!("there is no file {}", located.path.display()),
        };
        return Err(file.error(plugin.component.span(), message).into());
    }
    if let Some(location) = file.interpreter()? {
        let located = locator.locate_interpreter(location);
        let is_file = located.path.is_file();
        let absent = || (!is_file).then(|| format!("there is no file {}", located.path.display()));
        if let Some(message) = located.missing.clone().or_else(absent) {
            let span = file.config.code.interpreter.as_ref().map(Spanned::span).unwrap_or_default();
            return Err(file.error(span, message).into());
        }
    }
    Ok(())
}

/// Returns one plugin of a configuration.
///
/// # Errors
/// Returns an error if the configuration has no such plugin, or if its table is invalid.
pub fn spec_of_config(file: &ConfigFile, name: &str, values: Values) -> crate::Result<PluginSpec> {
    let Some(plugin) = file.config.plugins.get(name) else {
        return Err(Error::invalid(format!("{} has no plugin `{name}`", file.path.display())));
    };
    let stores = Stores::new(file, values);
    spec_of_plugin(
        name,
        plugin,
        ComponentFile::look(file, name, plugin)?,
        &stores,
        &servers::deciding_files(file).into(),
    )
}

/// Component of a plugin, with the version of its file.
struct ComponentFile {
    located: LocatedComponent,
    component: Component,
}

impl ComponentFile {
    fn look(file: &ConfigFile, name: &str, plugin: &PluginConfig) -> crate::Result<Self> {
        let located = Locator::new(file)?.locate(name, plugin.component.get_ref());
        let component = Component::from_file_ambient(&located.path);
        Ok(Self::new((located, component)))
    }

    fn new((located, component): (LocatedComponent, Component)) -> Self {
        let component = artifacts::with_digest(component, located.digest);
        Self { located, component }
    }
}

fn spec_of_plugin(
    name: &str,
    plugin: &PluginConfig,
    ComponentFile { located, component }: ComponentFile,
    stores: &Stores<'_>,
    protected: &Arc<[PathBuf]>,
) -> crate::Result<PluginSpec> {
    let file = stores.file();
    let header = format!("[plugins.{name}");
    let plugin_name = PluginName::new(name)
        .map_err(|error| file.error_in_table(&header, format!("plugin `{name}`: {error}")))?;
    let grants = granting::of_plugin(name, plugin, stores)?;
    let limits = plugin.limits.over(&file.config.limits);
    granting::check_limits(&limits)
        .map_err(|error| file.error_in_table("limits", format!("plugin `{name}`: {error}")))?;
    for (key, retries) in
        [("retries", plugin.retries), ("transient-retries", plugin.transient_retries)]
    {
        if retries > RETRIES_MAX {
            let message =
                format!("plugin `{name}`: `{key}` is {retries}; at most {RETRIES_MAX} are made");
            return Err(file.error_in_table(&header, message).into());
        }
    }
    let options = PluginOptions {
        retries_max: plugin.retries,
        shows_errors: plugin.errors == UnexpectedErrors::Shown,
        ..PluginOptions::new(plugin_name, grants, limits)
    };
    let protected = Arc::clone(protected);
    let (config, is_pinned) = (Some(file.path.clone()), plugin.pin);
    let policy_files = Arc::default();
    let usage =
        (plugin.usage != UsageLimits::default()).then(|| Arc::new(Usage::new(plugin.usage)));
    let transient_retries = plugin.transient_retries;
    Ok(PluginSpec {
        path: located.path,
        component,
        options,
        digest: located.digest,
        missing: located.missing.map(Into::into),
        config,
        protected,
        policy_files,
        is_pinned,
        transient_retries,
        usage,
        first_build: None,
    })
}

/// Returns the grants and limits of plugins that no configuration names, and opens their stores.
fn offered(selection: &Selection, values: Values) -> crate::Result<(Grants, Limits)> {
    let (mut grants, mut limits) = (selection.grants.clone(), selection.limits.clone());
    for offered in &selection.permissions {
        offered.add_to(&mut grants, &mut limits, values)?;
    }
    for StoreMount { name, location, access } in &selection.mounts {
        let name = MountName::new(name.as_str()).map_err(|error| {
            Error::invalid(format!("`{name}` cannot be the name of a mount: {error}"))
        })?;
        if grants.mounts.iter().any(|other| other.name == name) {
            return Err(Error::invalid(format!("two mounts are called `{name}`")));
        }
        let store = stores::open_location(location, *access)
            .map_err(|error| Error::invalid(format!("{error:#}")))?;
        grants.mounts.push(Mount::new(name, store, *access));
    }
    Ok((grants, limits))
}

/// Returns an error if a mount of the selection is for none of its plugins, because they ask for
/// stores of other names.
pub(crate) fn check_mounts_are_asked_for<'a>(
    selection: &Selection,
    loaded: impl Iterator<Item = (&'a PluginSpec, &'a Arc<Plugin>)>,
) -> crate::Result<()> {
    if selection.mounts.is_empty() {
        return Ok(());
    }
    let plugins: Vec<_> = loaded
        .filter(|(spec, _)| spec.config.is_none())
        .map(|(_, plugin)| plugin.requested())
        .collect();
    if plugins.len() < selection.plugins.len() {
        // A plugin that is not available may ask for the store.
        return Ok(());
    }
    let mut asked = BTreeSet::new();
    for plugin in plugins {
        match plugin {
            RequestedPermissions::Stated(stated) if stated.files_any.is_none() => {
                asked.extend(stated.files.keys().map(MountName::as_str));
            }
            _ => return Ok(()),
        }
    }
    let Some(unused) = selection
        .mounts
        .iter()
        .map(|mount| &mount.name)
        .find(|name| !asked.contains(name.as_str()))
    else {
        return Ok(());
    };
    if asked.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = asked.iter().map(|name| format!("`{name}`")).collect();
    let names = names.join(", ");
    Err(Error::invalid(format!("no plugin asks for the store `{unused}`; they ask for {names}")))
}

/// Identity and declarations of a component, not validated.
pub struct ComponentReport {
    /// Identity, size and imports.
    pub info: PluginInfo,
    /// Tools as declared by the component.
    pub declarations: Vec<Declaration>,
    /// True if the component was compiled for this; false if it came from the cache.
    pub was_compiled: bool,
}

/// Reads the declarations of a component.
pub async fn examine(
    engine: &Engine,
    path: &Path,
    operator: &Operator,
) -> crate::Result<ComponentReport> {
    examine_as(engine, path, &Component::from_file_ambient(path), operator).await
}

/// Reads the declarations of a component that will be the file at `path`.
pub async fn examine_bytes(
    engine: &Engine,
    path: &Path,
    component: Vec<u8>,
    operator: &Operator,
) -> crate::Result<ComponentReport> {
    examine_as(engine, path, &Component::from_bytes(component), operator).await
}

async fn examine_as(
    engine: &Engine,
    path: &Path,
    component: &Component,
    operator: &Operator,
) -> crate::Result<ComponentReport> {
    let name = crate::plugin_name(path).map_err(|error| Error::invalid(error.to_string()))?;
    let progress = LoadProgress::new(&name, operator);
    let examined = engine.examine(component, &name, &progress).await;
    let (info, declarations) = examined.map_err(|source| PluginError::new(path, source))?;
    Ok(ComponentReport { info, declarations, was_compiled: progress.has_compiled() })
}

/// Returns the tool sources that are neither plugins nor servers, in order of precedence.
pub(crate) fn other_sources(
    files: Option<&Arc<FileAccessTools>>,
    skills: Option<Arc<dyn ToolSource>>,
    sources: &[Arc<dyn ToolSource>],
) -> Vec<Arc<dyn ToolSource>> {
    let files = files.map(|files| Arc::clone(files) as Arc<dyn ToolSource>);
    files.into_iter().chain(skills).chain(sources.iter().cloned()).collect()
}

/// Returns a toolset of `parts`. A tool whose name is taken by an earlier tool is renamed with the
/// name of its source as prefix.
///
/// If a name of a server still conflicts after that, the server is left out with a note, so that
/// names chosen by a third party cannot displace other tools.
///
/// # Errors
/// Returns an error if two tools have the same name, and neither belongs to a server.
pub fn toolset(parts: ToolsetParts, operator: &Operator) -> crate::Result<Toolset> {
    let ToolsetParts { plugins, others, mut unavailable, mut servers } = parts;
    loop {
        let own = plugins.iter().map(|plugin| &plugin.source).chain(&others).chain(&unavailable);
        let error = match Toolset::join(own.chain(&servers).cloned()) {
            Ok(mut toolset) => {
                plugins.iter().for_each(|plugin| count_usage(&mut toolset, plugin));
                return Ok(toolset);
            }
            Err(error) => error,
        };
        let is_named = |name: &str| {
            [&error.source_name, &error.taken_by].into_iter().any(|named| named == name)
        };
        // Known tools of unavailable plugins must not displace other tools.
        if let Some(at) = unavailable.iter().rposition(|plugin| is_named(plugin.name())) {
            unavailable.remove(at);
            continue;
        }
        let is_in = |server: &Arc<dyn ToolSource>| is_named(server.name());
        let Some(at) = servers.iter().rposition(is_in) else {
            return Err(Error::invalid(error.to_string()));
        };
        let left_out = servers.remove(at);
        operator.note(&format!("warning: the server `{}` is left out: {error}", left_out.name()));
    }
}

/// Counts the calls of all tools of a plugin together.
fn count_usage(toolset: &mut Toolset, plugin: &PluginSource) {
    let Some(usage) = &plugin.usage else { return };
    let names = toolset.definitions().map(|definition| definition.name.to_string());
    let is_its = |name: &String| {
        toolset.source(name).is_some_and(|source| source.name() == plugin.source.name())
    };
    let names: Vec<_> = names.filter(is_its).collect();
    for name in names {
        toolset.count_usage(&name, Arc::clone(usage));
    }
}
