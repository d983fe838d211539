//! State of a running service: loaded plugins, servers, and the tools that the configuration
//! selects. It can be reloaded completely or plugin by plugin.

#[cfg(feature = "inspector")]
mod grants;
mod missing;
#[cfg(feature = "cluster")]
mod rollout;
#[cfg(feature = "cluster")]
mod worker;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_code::{CodeMode, RUN_CODE};
use cofferdam_engine::{Engine, Plugin};
use cofferdam_files::FileAccessTools;
use cofferdam_mcp::client::RemoteServer;
use cofferdam_mcp::{Offer, PolicyDigest, PromptOffer, ResourceOffer, ResourceSource, SourceFacts};
use cofferdam_record::CallMetrics;
#[cfg(feature = "skills")]
use cofferdam_skills::SkillTools;
use cofferdam_tool::pattern::ToolPattern;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{ToolSource, Toolset};

use super::ServeOptions;
use super::agent_sources::AgentSources;
#[cfg(feature = "skills")]
use super::skill_offers::{SkillPrompts, SkillResources};
use super::store_resources::StoreResources;
use crate::artifacts::Locator;
#[cfg(feature = "cluster")]
use crate::cluster::{RemoteTools, Rollout};
use crate::code_mode::{self, CodeOffer, CodePlan};
use crate::compose::{self, HostPlan, PluginSpec, ToolsetParts};
use crate::config::ConfigFile;
use crate::file_version::FileVersion;
use crate::granting::Values;
use crate::loading::{LoadState, Loader, Order, Unavailable};
use crate::pins::Pins;
use crate::policy_files::ServedFiles;
use crate::records::{self, CallLog};
use crate::servers::{self, ChangeSignal, SupervisedServer};
use crate::toolsets::KnownTools;
use crate::{Error, Operator, columns, loading, skill_tools, text};

/// Maximum time that a call waits for the first build of a project. A client may give up sooner,
/// which cancels the call.
const BUILD_WAIT: Duration = Duration::from_mins(10);

/// Percentile of the callers that get a canary last.
const LAST_PERCENTILE: u8 = 99;

/// Everything that is loaded. A clone shares the plugins and can be changed independently.
#[derive(Clone)]
pub(crate) struct ServedState {
    plugins: Vec<(PluginSpec, LoadState)>,
    files: Option<Arc<FileAccessTools>>,
    #[cfg(feature = "skills")]
    skills: Option<Arc<SkillTools>>,
    config: Option<Arc<ConfigFile>>,
    resources: Vec<Arc<dyn ResourceSource>>,
    /// Versions of files that are not tracked by a component, taken before the files were read.
    versions: Vec<(PathBuf, Option<FileVersion>)>,
    servers: Vec<Arc<SupervisedServer>>,
    /// Sources of tools that are neither plugins nor servers.
    sources: Vec<Arc<dyn ToolSource>>,
    /// Tools of workers on other machines.
    #[cfg(feature = "cluster")]
    remote: Option<RemoteTools>,
    /// Versions of these tools that are offered.
    #[cfg(feature = "cluster")]
    rollout: Rollout,
    /// Log of the calls, which stays open when the configuration changes.
    call_log: Option<Arc<CallLog>>,
    /// Counts of the calls; they pass the calls on to the log.
    metrics: Option<Arc<CallMetrics>>,
    /// Programs of clients that call the tools.
    code: Option<(CodeOffer, Arc<CodeMode>)>,
    /// Files that stores of served agents may not contain.
    served_files: ServedFiles,
    operator: Operator,
}

impl ServedState {
    /// Loads everything that the options and the configuration name and that is fast to load. The
    /// returned loader loads the rest.
    ///
    /// `before` is the previous state: its `--files` store, which may be in memory, and its
    /// connections outlive a change of the configuration. `news` fires when servers change.
    pub(super) async fn start(
        engine: &Engine,
        options: &ServeOptions,
        before: Option<&Self>,
        news: &ChangeSignal,
        operator: &Operator,
    ) -> crate::Result<(Self, Loader)> {
        let mut versions: Vec<_> = options
            .selection
            .config
            .iter()
            .map(|path| (path.clone(), FileVersion::of(path)))
            .collect();
        let files_before = before.and_then(|before| before.files.as_deref());
        let agent_files = options.agents.paths();
        versions.extend(agent_files.iter().map(|path| (path.clone(), FileVersion::of(path))));
        let plan = HostPlan::new(&options.selection, Values::Read, &agent_files, files_before)?;
        let plan = match agent_files.is_empty() && !options.is_gateway() {
            true => plan.require_tools(&options.selection)?,
            // An agent is a tool, and needs no other. The tools of workers may come later.
            false => plan,
        };
        #[cfg(feature = "skills")]
        let protected = plan.protected_from_skills();
        let served_files = plan.served_files();
        let code = match CodePlan::new(&options.selection, plan.config.as_ref())? {
            Some(plan) => {
                let before = before.and_then(|before| before.code.as_ref());
                Some(plan.serve(engine, before, operator).await?)
            }
            None => None,
        };
        let HostPlan { config, mut specs, files, records, .. } = plan;
        #[cfg(feature = "registry")]
        crate::advisories::note(config.as_ref(), operator);
        #[cfg(feature = "cluster")]
        let rollout = config.as_ref().map(Rollout::of_config).transpose()?.unwrap_or_default();
        let call_log = match (before, records) {
            (Some(before), _) => before.call_log.clone(),
            (None, Some(planned)) => planned.open(&specs, operator)?,
            (None, None) => None,
        };
        let metrics = match before {
            Some(before) => before.metrics.clone(),
            None => options.counts_calls.then(|| {
                Arc::new(CallMetrics::new(records::sink(call_log.as_ref(), &options.selection)))
            }),
        };
        if let Some(build) = options.first_build.as_ref().filter(|build| !build.is_built()) {
            let is_built =
                |spec: &&mut PluginSpec| spec.config.is_none() && spec.path == build.component();
            specs
                .iter_mut()
                .filter(is_built)
                .for_each(|spec| spec.first_build = Some(build.clone()));
        }
        // Components for which the operating system gives no file version.
        let unclear =
            specs.iter().filter(|spec| !spec.component.has_version()).map(|spec| &spec.path);
        let unclear = unclear.flat_map(|path| [path.clone(), path.with_extension("toml")]);
        versions.extend(unclear.map(|path| (path.clone(), FileVersion::of(&path))));
        let mut resources =
            config.as_ref().map(StoreResources::of_config).transpose()?.unwrap_or_default();
        #[cfg(feature = "skills")]
        let skills = skill_tools::tools(
            engine,
            &options.selection,
            config.as_ref(),
            Values::Read,
            &protected,
            operator,
        )
        .await?;
        #[cfg(feature = "skills")]
        resources.extend(
            skills.iter().map(|skills| Arc::new(SkillResources(Arc::clone(skills))) as Arc<_>),
        );
        let loader = Loader::start(engine, specs, operator)?;
        let plugins = loader.plugins.clone();
        let servers = servers::selected(&options.selection, config.as_ref(), operator)?;
        let config = config.map(Arc::new);
        let before = before.map(|before| before.servers.as_slice()).unwrap_or_default();
        let servers = servers::start_all(servers, before, news, operator);
        let (operator, sources) = (operator.clone(), options.selection.sources.clone());
        let offering = Self {
            plugins,
            files,
            #[cfg(feature = "skills")]
            skills,
            config,
            resources,
            versions,
            servers,
            sources,
            #[cfg(feature = "cluster")]
            remote: options.remote.clone(),
            #[cfg(feature = "cluster")]
            rollout,
            call_log,
            metrics,
            code,
            served_files,
            operator,
        };
        Ok((offering, loader))
    }

    /// Stores the result of loading the plugin at `index`, unless it was reloaded in the
    /// meantime.
    pub(super) fn set(&mut self, index: usize, loaded: LoadState) {
        if let Some((spec, plugin @ LoadState::Loading)) = self.plugins.get_mut(index) {
            let build = spec.first_build.take_if(|build| build.is_built());
            if let Some(component) = build.and_then(|build| build.built_component()) {
                spec.component = component;
            }
            *plugin = loaded;
        }
    }

    /// Loads everything again, and waits until it is loaded.
    pub(super) async fn load_again(
        engine: &Engine,
        options: &ServeOptions,
        before: &Self,
        news: &ChangeSignal,
    ) -> crate::Result<Self> {
        let started = Self::start(engine, options, Some(before), news, &before.operator).await?;
        let state = started.0.loaded(started.1).await?;
        servers::wait_for_all(&state.servers, &state.operator).await;
        Ok(state)
    }

    /// Loads what [`start`](Self::start) has left.
    async fn loaded(mut self, mut loader: Loader) -> crate::Result<Self> {
        loader.finish(Order::AsNamed, |index, loaded| self.set(index, loaded)).await?;
        tokio::task::spawn_blocking(move || loader.batch.save());
        self.unavailable().for_each(|plugin| plugin.note(&self.operator));
        Ok(self)
    }

    /// Returns the plugins that are left out.
    pub(super) fn unavailable(&self) -> impl Iterator<Item = &Unavailable> {
        self.plugins.iter().filter_map(|(_, plugin)| match plugin {
            LoadState::Unavailable(unavailable) => Some(unavailable),
            _ => None,
        })
    }

    /// Returns the first plugin that is left out, if all plugins are left out and there are no
    /// other tools. A project that does not build yet counts as a plugin.
    pub(super) fn nothing(&self) -> Option<&Unavailable> {
        let is_nothing = self.other_sources(LAST_PERCENTILE).is_empty() && self.servers.is_empty();
        let has_plugin = |(spec, plugin): &(PluginSpec, LoadState)| {
            spec.first_build.is_some() || !matches!(plugin, LoadState::Unavailable(_))
        };
        if !is_nothing || self.plugins.iter().any(has_plugin) {
            None
        } else {
            self.unavailable().next()
        }
    }

    /// Returns the sources that are neither plugins nor servers, for callers with this percentile.
    fn other_sources(&self, percentile: u8) -> Vec<Arc<dyn ToolSource>> {
        let sources =
            compose::other_sources(self.files.as_ref(), self.skill_source(), &self.sources);
        #[cfg(feature = "cluster")]
        let remote = self.remote.iter().flat_map(|it| it.sources(&self.rollout, percentile));
        #[cfg(feature = "cluster")]
        let sources = sources.into_iter().chain(remote).collect();
        sources
    }

    fn skill_source(&self) -> Option<Arc<dyn ToolSource>> {
        #[cfg(feature = "skills")]
        return self.skills.clone().map(|skills| skills as Arc<dyn ToolSource>);
        #[cfg(not(feature = "skills"))]
        None
    }

    pub(crate) fn metrics(&self) -> Option<Arc<CallMetrics>> {
        self.metrics.clone()
    }

    /// Returns the log of the calls.
    pub(crate) fn call_log(&self) -> Option<Arc<CallLog>> {
        self.call_log.clone()
    }

    /// Returns the servers, so that the caller can wait for them.
    pub(super) fn servers(&self) -> Vec<Arc<SupervisedServer>> {
        self.servers.clone()
    }

    /// Returns an error for a mount of the command line that no plugin asks for.
    pub(super) fn check_mounts(&self, selection: &crate::Selection) -> crate::Result<()> {
        compose::check_mounts_are_asked_for(selection, self.ready())
    }

    fn ready(&self) -> impl Iterator<Item = (&PluginSpec, &Arc<Plugin>)> {
        self.plugins.iter().filter_map(|(spec, plugin)| match plugin {
            LoadState::Ready(plugin) => Some((spec, plugin)),
            _ => None,
        })
    }

    /// Returns the sources that are not loaded yet, with the maximum time that a call waits for
    /// each.
    fn loading(&self) -> BTreeMap<String, Duration> {
        let plugins =
            self.plugins.iter().filter(|(_, plugin)| matches!(plugin, LoadState::Loading));
        let wait = |spec: &PluginSpec| match spec.first_build {
            Some(_) => BUILD_WAIT,
            None => spec.options.limits.wall(),
        };
        let plugins = plugins.map(|(spec, _)| (spec.options.name.to_string(), wait(spec)));
        let servers = self.servers.iter().filter(|server| !server.is_tried());
        plugins
            .chain(servers.map(|server| (server.name().to_owned(), server.call_wait())))
            .collect()
    }

    /// Reloads the plugins whose component or manifest is `path`, including those that are left
    /// out. No other plugin and no grant changes. Returns the names of the plugins
    /// that were reloaded or tried.
    pub(super) async fn reload(
        &mut self,
        engine: &Engine,
        path: &Path,
    ) -> crate::Result<Vec<String>> {
        let mut names = Vec::new();
        for (spec, plugin) in &mut self.plugins {
            if !belongs_to(spec, path) {
                continue;
            }
            let component = spec.current_component();
            let is_same = spec.component.has_changed() == Some(false)
                && matches!(plugin, LoadState::Ready(_));
            let is_awaited = spec.first_build.is_some() && matches!(plugin, LoadState::Loading);
            if is_same || is_awaited {
                continue;
            }
            names.push(spec.options.name.to_string());
            match (loading::load_again(engine, spec, &self.operator).await, &plugin) {
                (Ok(loaded), _) => {
                    *plugin = LoadState::Ready(loaded);
                    spec.component = component;
                }
                (Err(error), LoadState::Unavailable(before)) => {
                    let unavailable = before.because(error);
                    unavailable.note(&self.operator);
                    *plugin = LoadState::Unavailable(unavailable);
                }
                // Still loading, and reloaded after that.
                (Err(_), LoadState::Loading) => {}
                // Without its code, the previous version needs the file.
                (Err(error), LoadState::Ready(before)) if before.code_copies() == 0 => {
                    let unavailable = Unavailable::of_loaded(before, error);
                    unavailable.note(&self.operator);
                    *plugin = LoadState::Unavailable(unavailable);
                }
                (Err(error), LoadState::Ready(_)) => return Err(error),
            }
        }
        Ok(names)
    }

    /// Tries to load the plugins that may wait for consent and whose pins are in the lock file at
    /// `path`: those that are left out, and those whose component has changed since it was loaded.
    /// Returns the names of those that load.
    pub(super) async fn retry(&mut self, engine: &Engine, path: &Path) -> Vec<String> {
        let mut names = Vec::new();
        for (spec, plugin) in &mut self.plugins {
            let is_waiting = match plugin {
                LoadState::Unavailable(_) => true,
                LoadState::Ready(_) => spec.component.has_changed() == Some(true),
                LoadState::Loading => false,
            };
            let is_its = spec.config.as_deref().is_some_and(|config| Pins::path_of(config) == path);
            let component = spec.current_component();
            if is_waiting
                && is_its
                && let Ok(loaded) = loading::load_again(engine, spec, &self.operator).await
            {
                *plugin = LoadState::Ready(loaded);
                spec.component = component;
                names.push(spec.options.name.to_string());
            }
        }
        names
    }

    /// Returns the files that have changed since they were first read.
    pub(super) fn changed(&self) -> Vec<PathBuf> {
        let changed =
            self.versions.iter().filter(|(path, before)| FileVersion::of(path) != *before);
        let specs = self.plugins.iter().map(|(spec, _)| spec);
        let components = specs.filter(|spec| spec.component.has_changed() == Some(true));
        changed.map(|(path, _)| path).chain(components.map(|spec| &spec.path)).cloned().collect()
    }

    /// Returns the components of the plugins at `indices` that have changed since they were first
    /// seen.
    pub(super) fn changed_of(&self, indices: &BTreeSet<usize>) -> Vec<PathBuf> {
        let specs = self.plugins.iter().map(|(spec, _)| spec).enumerate();
        let specs = specs.filter(|(index, _)| indices.contains(index));
        let changed = specs.filter(|(_, spec)| spec.component.has_changed() == Some(true));
        changed.map(|(_, spec)| spec.path.clone()).collect()
    }

    /// Returns the tools that run only as tasks.
    pub(super) fn only_as_task(&self) -> BTreeSet<String> {
        self.config.as_ref().map(|file| file.config.serve.only_as_task.clone()).unwrap_or_default()
    }

    /// Returns patterns for the names of tools that clients see beside the two of a search.
    fn always_listed(&self) -> Vec<ToolPattern> {
        self.config.as_ref().map(|file| file.config.serve.always_load.clone()).unwrap_or_default()
    }

    /// Returns the component files of the plugins, except those in the artifact store, which never
    /// change.
    pub(super) fn components(&self) -> impl Iterator<Item = &PathBuf> {
        let specs = self.plugins.iter().map(|(spec, _)| spec);
        specs.filter(|spec| !spec.is_fetched()).map(|spec| &spec.path)
    }

    /// Returns whether the lock file names other components than those in use.
    pub(super) fn has_other_components(&self) -> crate::Result<bool> {
        let Some(file) = &self.config else { return Ok(false) };
        let locator = Locator::new(file)?;
        let has_other = |spec: &PluginSpec| {
            let name = spec.options.name.as_str();
            let plugin = file.config.plugins.get(name).filter(|_| spec.is_fetched());
            plugin.is_some_and(|it| !spec.is_at(&locator.locate(name, it.component.get_ref())))
        };
        Ok(self.plugins.iter().any(|(spec, _)| has_other(spec)))
    }

    /// Returns everything that clients are offered.
    pub(super) fn offer(&self, options: &ServeOptions) -> crate::Result<Offer> {
        let offer = self.offer_to(LAST_PERCENTILE, options)?;
        #[cfg(feature = "cluster")]
        let offer = Offer { variants: self.variants(options)?, ..offer };
        Ok(offer)
    }

    /// Returns everything that callers with this percentile are offered.
    fn offer_to(&self, percentile: u8, options: &ServeOptions) -> crate::Result<Offer> {
        let mut toolset = self.toolset(percentile)?;
        let facts = |(_, plugin): (&PluginSpec, &Arc<Plugin>)| {
            let (icons, plugin) = (plugin.icons().to_vec(), Arc::clone(plugin));
            let name = plugin.name().to_owned();
            let policy_digest = Some(PolicyDigest::new(move || policy_digest(&plugin)));
            (name, SourceFacts { policy_digest, icons })
        };
        let sources: HashMap<_, _> = self.ready().map(facts).collect();
        let (mut prompts, resources) = self.build_offers(&toolset)?;
        #[cfg(feature = "skills")]
        if let Some(skills) = &self.skills {
            // Prompts of the configuration take precedence over prompts of skills.
            let of_skills =
                SkillPrompts::new(skills, |name| prompts.iter().any(|prompt| prompt.name == name))?;
            prompts.extend(of_skills.offers());
            toolset.add(Arc::new(of_skills)).map_err(|error| Error::invalid(error.to_string()))?;
        }
        self.observe_calls(&mut toolset, options);
        // The tools of an agent may not be loaded yet. Clients wait for what is loading.
        let loading = self.loading();
        if loading.is_empty() {
            let for_agents = self.tools_of_agents(&toolset)?;
            toolset = options.agents.add_to(&AgentSources {
                offered: &toolset,
                toolset: &for_agents,
                is_complete: self.is_complete(),
                #[cfg(feature = "skills")]
                skills: self.skills.as_ref(),
                config: self.config.as_deref(),
                call_log: self.call_log.as_ref(),
                files: &self.served_files,
                operator: &self.operator,
            })?;
        }
        #[cfg(feature = "agent")]
        let rules = super::call_rules::of_config(
            self.config.as_deref(),
            Some(&toolset).filter(|_| self.is_complete()),
            &self.operator,
        )?;
        #[cfg(not(feature = "agent"))]
        let rules = None;
        let (toolset, only) = self.selected(toolset, options)?;
        Ok(Offer {
            only,
            toolset,
            prompts,
            resources,
            resource_sources: self.resources.clone(),
            remote: self.forwarded_servers(options),
            expects_prompts: !self.servers.is_empty(),
            sources,
            loading,
            unavailable: self.unavailable().map(|plugin| plugin.name.to_string()).collect(),
            rules,
            always_listed: self.always_listed(),
            variants: Vec::new(),
        })
    }

    /// Returns the tools of all sources, for callers with this percentile.
    fn toolset(&self, percentile: u8) -> crate::Result<Toolset> {
        let servers = self.servers.iter().filter_map(|server| server.server());
        let parts = ToolsetParts {
            plugins: self.ready().map(|(spec, plugin)| spec.source(plugin)).collect(),
            others: self.other_sources(percentile),
            unavailable: self.unavailable().map(Unavailable::tools).collect(),
            servers: servers.map(|server| server as Arc<dyn ToolSource>).collect(),
        };
        compose::toolset(parts, &self.operator)
    }

    /// Sends the calls of all tools to the counts and the log.
    fn observe_calls(&self, toolset: &mut Toolset, options: &ServeOptions) {
        if let Some(log) = &self.call_log {
            log.note_plugins(self.ready().map(|(_, plugin)| plugin));
        }
        let sink = match &self.metrics {
            Some(metrics) => Some(Arc::clone(metrics) as Arc<dyn CallSink>),
            None => records::sink(self.call_log.as_ref(), &options.selection),
        };
        if let Some(sink) = sink {
            toolset.set_sink(sink);
        }
    }

    /// Returns the tools that served agents can name: all, and `run_code` if it is offered.
    fn tools_of_agents(&self, toolset: &Toolset) -> crate::Result<Toolset> {
        let Some((_, mode)) = &self.code else { return Ok(toolset.clone()) };
        let mode = mode.over(toolset);
        let mode = mode.map_err(|error| Error::invalid(format!("code mode: {error}")))?;
        code_mode::offered(CodeOffer::Both, toolset, mode)
    }

    /// Returns the tools with `run_code`, if it is offered, and the names of the selected ones;
    /// `None` means all.
    fn selected(
        &self,
        toolset: Toolset,
        options: &ServeOptions,
    ) -> crate::Result<(Toolset, Option<BTreeSet<String>>)> {
        let known = KnownTools {
            config: self.config.as_deref(),
            toolset: &toolset,
            is_complete: self.is_complete(),
        };
        let only = known.selected(&options.selection)?;
        self.with_code(toolset, only)
    }

    /// Adds `run_code`, if it is offered, to the tools and to the names of those that clients see;
    /// to the tools once all sources are loaded, because its program may call any of them.
    fn with_code(
        &self,
        mut toolset: Toolset,
        only: Option<BTreeSet<String>>,
    ) -> crate::Result<(Toolset, Option<BTreeSet<String>>)> {
        let Some((offer, mode)) = &self.code else { return Ok((toolset, only)) };
        let invalid = |error: &dyn std::fmt::Display| Error::invalid(format!("code mode: {error}"));
        let is_offered = |name: &str| only.as_ref().is_none_or(|only| only.contains(name));
        if self.loading().is_empty() {
            let callable = toolset.restrict(|tool| is_offered(tool.name.as_str()));
            let mode = mode.over(&callable).map_err(|error| invalid(&error))?;
            toolset.add(Arc::new(mode)).map_err(|error| invalid(&error))?;
        }
        let own = || BTreeSet::from([RUN_CODE.to_owned()]);
        let only = match offer {
            CodeOffer::Only => Some(own()),
            CodeOffer::Both => only.map(|only| only.into_iter().chain(own()).collect()),
        };
        Ok((toolset, only))
    }

    /// Returns the servers whose resources and prompts clients see: all servers, or those of the
    /// selected toolsets.
    fn forwarded_servers(&self, options: &ServeOptions) -> Vec<Arc<RemoteServer>> {
        let is_asked_for = |name: &str| {
            let toolsets = self.config.iter().flat_map(|file| &file.config.toolsets);
            let selection = &options.selection;
            let mut asked = toolsets.filter(|(name, _)| selection.toolsets.contains(*name));
            selection.selects_all_tools()
                || asked
                    .any(|(_, table)| table.servers.iter().any(|server| server.get_ref() == name))
        };
        let servers = self.servers.iter().filter(|server| is_asked_for(server.name()));
        servers.filter_map(|server| server.server()).collect()
    }

    /// Returns the prompts and resources that tools produce.
    fn build_offers(
        &self,
        toolset: &Toolset,
    ) -> crate::Result<(Vec<PromptOffer>, Vec<ResourceOffer>)> {
        let Some(file) = &self.config else { return Ok(Default::default()) };
        let known = |tool: &str, at: std::ops::Range<usize>| match toolset.definition(tool) {
            Ok(_) => Ok(Some(tool.to_owned())),
            // The tool may belong to a server or plugin that is not connected yet.
            Err(_) if !self.is_complete() => Ok(None),
            Err(error) => Err(file.error(at, error.to_string())),
        };
        let mut prompts = Vec::new();
        for (name, table) in &file.config.serve.prompts {
            let Some(tool) = known(&table.get_ref().tool, table.span())? else { continue };
            prompts.push(PromptOffer { name: name.clone(), tool });
        }
        let mut resources = Vec::new();
        for (uri, table) in &file.config.serve.resources {
            let Some(tool) = known(&table.get_ref().tool, table.span())? else { continue };
            let media_type = table.get_ref().media_type.clone();
            resources.push(ResourceOffer { uri: uri.clone(), tool, media_type });
        }
        Ok((prompts, resources))
    }

    /// Returns whether all plugins are loaded and all servers connected. If so, an unknown tool
    /// does not exist. A worker may bring it at any time.
    fn is_complete(&self) -> bool {
        let is_ready =
            |(_, plugin): &(PluginSpec, LoadState)| matches!(plugin, LoadState::Ready(_));
        let is_there =
            |server: &Arc<SupervisedServer>| server.server().is_some() && !server.has_changed();
        #[cfg(feature = "cluster")]
        if self.remote.is_some() {
            return false;
        }
        self.plugins.iter().all(is_ready) && self.servers.iter().all(is_there)
    }
}

/// Returns whether a file is a plugin's component or the manifest beside it.
fn belongs_to(spec: &PluginSpec, path: &Path) -> bool {
    spec.path == path || spec.path.with_extension("toml") == path
}

/// Returns a digest of a plugin's grants, computed from the form in which operators see them.
fn policy_digest(plugin: &Plugin) -> String {
    text::digest(columns::json(&columns::rows(plugin)).to_string().as_bytes())
}
