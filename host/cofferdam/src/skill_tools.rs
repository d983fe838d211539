//! Tools of the skills that the selection and the configuration name, and the engine for their
//! scripts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use cofferdam_engine::{Component, Engine, Grants, Mount, PluginOptions};
use cofferdam_files::{DirectoryOptions, DirectoryStore, StoreSharing};
use cofferdam_skills::{
    ComponentScripts, LoadComponent, SCRIPT_FOLDER, ScriptFile, SkillRoot, SkillTool, SkillTools,
    Skills, SkillsBuilder,
};
use cofferdam_tool::{FileAccess, Limits, MountName, PluginName, ToolSource, Toolset};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::config::ConfigFile;
use crate::granting::Values;
use crate::stores::Stores;
use crate::{Error, Operator, Selection, granting, policy_files, servers};

/// Name of the source of the tools.
const SOURCE: &str = "skills";

/// Runs component scripts on an engine. Each call runs in a sandbox that can read the folder of its
/// skill.
pub struct OnEngine {
    engine: Engine,
    /// Grants of scripts in addition to that folder.
    grants: Grants,
    limits: Limits,
}

impl OnEngine {
    /// Creates a runner whose scripts have no other grants.
    pub fn new(engine: &Engine) -> Self {
        Self { engine: engine.clone(), grants: Grants::default(), limits: Limits::default() }
    }

    /// Loads a plugin. The future is boxed here because the compiler takes seconds to check it for
    /// `Send` under the lifetime bounds of `async_trait`.
    fn load_plugin(
        &self,
        component: Component,
        options: PluginOptions,
    ) -> BoxFuture<'_, Result<Arc<dyn ToolSource>, BoxError>> {
        let loading = async move { self.engine.load(&component, options, &()).await };
        let loaded = loading.map(|plugin| Ok(Arc::new(plugin?) as Arc<dyn ToolSource>));
        loaded.boxed()
    }
}

#[async_trait]
impl LoadComponent for OnEngine {
    async fn load(
        &self,
        script: &ScriptFile,
        component: Arc<[u8]>,
    ) -> Result<Arc<dyn ToolSource>, BoxError> {
        let folder = MountName::new(SCRIPT_FOLDER)?;
        let mut grants = self.grants.clone();
        grants
            .mounts
            .insert(0, Mount::new(folder, Arc::clone(&script.folder), FileAccess::ReadOnly));
        let options =
            PluginOptions::new(PluginName::new(&script.skill)?, grants, self.limits.clone());
        self.load_plugin(Component::from_bytes(component), options).await
    }
}

/// Returns a root of skills in a directory of the host that the operator named.
pub fn root(directory: &Path) -> crate::Result<SkillRoot> {
    let options = DirectoryOptions { is_read_only: true, ..DirectoryOptions::default() };
    let store = DirectoryStore::open_ambient(directory, options).map_err(|error| {
        let reason = std::error::Error::source(&error)
            .map(|source| format!(": {source}"))
            .unwrap_or_default();
        Error::Invalid(format!(
            "skills: {error}{reason}; name a directory with skills in it, or with a SKILL.md"
        ))
    })?;
    // If the root itself is a skill, its directory's name is the name of the skill.
    let name = store.root_ambient().file_name().map(|name| name.to_string_lossy().into_owned());
    let root = SkillRoot::new(Arc::new(store));
    Ok(match name {
        Some(name) => root.named(name),
        None => root,
    })
}

/// Returns whether the selection or the configuration names a location of skills.
pub(crate) fn are_named(selection: &Selection, file: Option<&ConfigFile>) -> bool {
    !selection.skills.is_empty() || file.is_some_and(|file| !file.config.skills.is_empty())
}

/// Returns the directories of skills. No tool may write to them, because a model reads their
/// content and the host runs their scripts.
pub(crate) fn directories(selection: &Selection, file: Option<&ConfigFile>) -> Vec<PathBuf> {
    let configured = file.into_iter().flat_map(|file| {
        let table = &file.config.skills;
        let stores = table.stores.iter().filter_map(|name| {
            let directory = file.config.stores.get(name.get_ref())?.directory.as_ref()?;
            Some(file.resolve(directory.as_ref()))
        });
        let directories =
            table.directories.iter().map(|directory| file.resolve(directory.as_ref()));
        directories.chain(stores).collect::<Vec<_>>()
    });
    selection.skills.iter().cloned().chain(configured).collect()
}

/// Returns the tools for the skills that the selection and the configuration name, or `None` if
/// they name no location. Notes skills that are skipped. No script may write to `protected`.
pub(crate) async fn tools(
    engine: &Engine,
    selection: &Selection,
    file: Option<&ConfigFile>,
    values: Values,
    protected: &[PathBuf],
    operator: &Operator,
) -> crate::Result<Option<Arc<SkillTools>>> {
    if !are_named(selection, file) {
        return Ok(None);
    }
    let mut builder = Skills::builder();
    for directory in &selection.skills {
        builder = builder.root(root(directory)?);
    }
    let mut scripts = OnEngine::new(engine);
    if let Some(file) = file {
        builder = of_config(builder, file, values)?;
        scripts.grants = grants(file, values)?;
        scripts.limits = limits(file)?;
        let mut deciding = protected.to_vec();
        deciding.push(file.path.clone());
        deciding.extend(servers::deciding_files(file));
        granting::check_mounts(&scripts.grants.mounts, &policy_files::locate(&deciding))?;
    }
    if let Some(timeout) = selection.timeout {
        scripts.limits.wall_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        scripts.limits.cpu_ms_max = scripts.limits.cpu_ms_max.max(scripts.limits.wall_ms_max);
    }
    if let Some(bytes) = selection.memory_bytes_max {
        scripts.limits.memory_bytes_max = bytes;
    }
    let skills = builder.runner(ComponentScripts::new(Arc::new(scripts))).build();
    let skills = skills.map_err(|error| Error::failed(error.to_string()))?;
    for skipped in &*skills.skipped().await {
        let directory = skipped.directory.as_str();
        let what = if directory.is_empty() { "the directory of skills" } else { directory };
        operator.note(&format!("skills: {what}: {}", skipped.reason));
    }
    let tools = skills.tools().await;
    if tools.skills().is_empty() {
        operator.note("skills: none were found; `cofferdam skills check DIR` says why");
    }
    Ok(Some(Arc::new(tools)))
}

/// Returns whether a tool is one for skills. Without skills, a plugin may have a tool of its name.
pub(crate) fn has(toolset: &Toolset, tool: &str) -> bool {
    toolset.source(tool).is_some_and(|source| source.name() == SOURCE)
}

/// Returns the tools with `skills` as the only source of skills.
pub(crate) fn replace(
    toolset: &Toolset,
    skills: Option<Arc<SkillTools>>,
) -> crate::Result<Toolset> {
    let mut replaced = toolset.clone();
    for tool in SkillTool::ALL.map(SkillTool::name) {
        if has(toolset, tool) {
            replaced.remove(tool);
        }
    }
    if let Some(skills) = skills {
        replaced.add(skills).map_err(|error| Error::failed(error.to_string()))?;
    }
    Ok(replaced)
}

/// Adds the roots of a configuration, and its tools that need no approval. Checks every reference.
pub fn of_config(
    mut builder: SkillsBuilder,
    file: &ConfigFile,
    values: Values,
) -> crate::Result<SkillsBuilder> {
    let table = &file.config.skills;
    for directory in &table.directories {
        let root = root(&file.resolve(directory.as_ref()));
        builder =
            builder.root(root.map_err(|error| file.error(directory.span(), format!("{error:#}")))?);
    }
    let stores = Stores::new(file, values);
    for name in &table.stores {
        let mount = MountName::new(name.get_ref().as_str())
            .map_err(|error| file.error(name.span(), error.to_string()))?;
        if stores.sharing(&mount) == StoreSharing::PerSession {
            let message = format!(
                "the store `{mount}` has a directory for each session, and skills have none"
            );
            return Err(file.error(name.span(), message).into());
        }
        builder = builder.root(SkillRoot::new(stores.get(&mount, name.span())?));
    }
    for name in &table.free {
        let tool = SkillTool::named(name.get_ref()).ok_or_else(|| {
            let known = SkillTool::ALL.map(SkillTool::name).join(", ");
            file.error(
                name.span(),
                format!("`{}` is not a tool of skills; tools: {known}", name.get_ref()),
            )
        })?;
        builder = builder.without_approval([tool]);
    }
    Ok(builder)
}

/// Returns the grants of scripts in addition to the folder of their skill.
fn grants(file: &ConfigFile, values: Values) -> crate::Result<Grants> {
    let grants = granting::of_table(file, "skills", "grants", &file.config.skills.grants, values)?;
    if grants.mounts.iter().any(|mount| mount.name.as_str() == SCRIPT_FOLDER) {
        let message = format!(
            "a script sees the folder of its skill as /{SCRIPT_FOLDER}; give the store another name"
        );
        return Err(file.error_in_table("[skills.grants", message).into());
    }
    Ok(grants)
}

/// Returns the limits of scripts.
fn limits(file: &ConfigFile) -> crate::Result<Limits> {
    let limits = file.config.skills.limits.over(&file.config.limits);
    granting::check_limits(&limits)
        .map_err(|error| file.error_in_table("[skills.limits", format!("skills: {error}")))?;
    Ok(limits)
}

/// Checks the `[skills]` of a configuration without reading a skill. Returns a description for the
/// operator, or `None` if no skills are configured.
pub fn summary(file: &ConfigFile) -> crate::Result<Option<String>> {
    let table = &file.config.skills;
    let (_, grants) =
        (of_config(Skills::builder(), file, Values::Leave)?, grants(file, Values::Leave)?);
    limits(file)?;
    if table.is_empty() {
        return Ok(None);
    }
    let sources = table
        .directories
        .iter()
        .map(|directory| file.resolve(directory.as_ref()).display().to_string());
    let sources: Vec<_> = sources
        .chain(table.stores.iter().map(|name| format!("store {}", name.get_ref())))
        .collect();
    let mut lines = vec![format!("skills  {}", sources.join(", "))];
    let asked = SkillTool::ALL.map(SkillTool::name).into_iter();
    let asked: Vec<_> =
        asked.filter(|name| !table.free.iter().any(|free| free.get_ref() == name)).collect();
    if !asked.is_empty() {
        lines.push(format!("  each call of {} has to be approved", asked.join(", ")));
    }
    for mount in &grants.mounts {
        lines.push(format!("  scripts are given /{} ({})", mount.name, mount.access));
    }
    Ok(Some(lines.join("\n")))
}
