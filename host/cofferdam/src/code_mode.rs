//! Code mode: `run_code`, a tool that runs programs of the model, which call the other tools.

#[cfg(feature = "mcp")]
mod ledgers;
#[cfg(feature = "agent")]
mod rules;

use std::any::Any;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use cofferdam_code::{
    CallApprover, CodeApproval, CodeMode, CodeOptions, Language, LedgerSeal, ProgramRules,
    RUN_CODE, Type,
};
use cofferdam_engine::{Engine, Grants, Plugin, PluginOptions};
use cofferdam_record::{CallFilter, Log, PayloadKind};
use cofferdam_tool::{Limits, PluginName, ToolSource, Toolset};
use serde::Deserialize;
use serde_json::Value;

#[cfg(feature = "mcp")]
pub use self::ledgers::Ledgers;

use crate::artifacts::{self, LocatedComponent, Locator};
use crate::config::ConfigFile;
use crate::{Error, Operator, Result, Selection, directories, granting, loading, records};

/// Name of an interpreter as a plugin.
const PLUGIN: &str = "code";
/// Maximum wall-clock time of a program, with the tools that it waits for.
const WALL_MS_MAX: u64 = 10 * 60 * 1000;
/// Maximum CPU time of a program, without the tools that it calls.
const CPU_MS_MAX: u64 = 30 * 1000;
/// Maximum bytes of memory of a program.
const MEMORY_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// Maximum number of recorded calls whose results make types.
const RECORDED_MAX: usize = 512;
/// Folder of interpreters beside a program.
const FOLDER: &str = "code";

/// Tools that are offered with `run_code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeOffer {
    /// `run_code` and all other tools.
    Both,
    /// Only `run_code`; programs call the other tools.
    Only,
}

impl FromStr for CodeOffer {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "both" => Ok(Self::Both),
            "only" => Ok(Self::Only),
            other => Err(format!("expected `both` or `only`, found `{other}`")),
        }
    }
}

/// Code mode of a selection. Missing parts are those of `[code]` in the configuration.
#[derive(Clone, Default)]
pub struct CodeSelection {
    /// Tools that are offered with `run_code`. If neither this nor the configuration says so,
    /// `run_code` is not offered.
    pub offer: Option<CodeOffer>,
    /// Language of programs.
    pub language: Option<Language>,
    /// Language of programs if neither this nor the configuration names one.
    pub default_language: Language,
    /// Component of the interpreter, instead of the installed one.
    pub interpreter: Option<PathBuf>,
    /// Program beside which interpreters are installed, instead of this one.
    pub program: Option<PathBuf>,
    /// Asks about calls of programs that need approval. Without it, the caller of a program is
    /// asked if its client can show a form.
    pub approver: Option<Arc<dyn CallApprover>>,
    /// Seals ledgers of programs that an agent keeps in its session until a user decides. Without
    /// it, no program is kept.
    pub seal: Option<Arc<dyn LedgerSeal>>,
    /// True if the descriptions of tools show no types of recorded results, whose names may be
    /// untrusted.
    pub hides_recorded_types: bool,
}

impl CodeSelection {
    /// Returns the tools that are offered with `run_code`, or `None` if code mode is off.
    #[must_use]
    pub fn offer(&self, file: Option<&ConfigFile>) -> Option<CodeOffer> {
        self.offer.or_else(|| file?.config.code.offer)
    }
}

/// Code mode that is to be set up.
pub(crate) struct CodePlan {
    pub(crate) offer: CodeOffer,
    language: Language,
    interpreter: LocatedComponent,
    approval: CodeApproval,
    approver: Option<Arc<dyn CallApprover>>,
    rules: Option<Arc<dyn ProgramRules>>,
    seal: Option<Arc<dyn LedgerSeal>>,
    limits: Limits,
    observed: BTreeMap<String, Type>,
    replaces: Option<Arc<CodeMode>>,
}

impl CodePlan {
    /// Returns the code mode of a selection and its configuration, or `None` if it is off.
    ///
    /// # Errors
    /// Returns an error if there is no interpreter.
    pub(crate) fn new(selection: &Selection, file: Option<&ConfigFile>) -> Result<Option<Self>> {
        let (chosen, configured) = (&selection.code, file.map(|file| &file.config.code));
        let Some(offer) = chosen.offer(file) else { return Ok(None) };
        let language = chosen.language.or_else(|| configured?.language);
        let language = language.unwrap_or(chosen.default_language);
        let mut limits = limits(file)?;
        if let Some(timeout) = selection.timeout {
            limits.wall_ms_max = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        }
        Ok(Some(Self {
            offer,
            language,
            interpreter: interpreter(chosen, file, language)?,
            approval: configured.map(|table| table.approval).unwrap_or_default(),
            approver: chosen.approver.clone(),
            rules: rules(file)?,
            seal: chosen.seal.clone(),
            limits,
            observed: file
                .filter(|file| !chosen.hides_recorded_types && !has_label_policy(file))
                .map(recorded_types)
                .unwrap_or_default(),
            replaces: None,
        }))
    }

    /// Loads the interpreter for a server, whose tools follow. Stored values and suspended programs
    /// of the mode before a change of the configuration remain.
    ///
    /// # Errors
    /// Returns an error if the component is no interpreter.
    pub(crate) async fn serve(
        mut self,
        engine: &Engine,
        before: Option<&(CodeOffer, Arc<CodeMode>)>,
        operator: &Operator,
    ) -> Result<(CodeOffer, Arc<CodeMode>)> {
        self.replaces = before.map(|(_, mode)| Arc::clone(mode));
        Ok((self.offer, Arc::new(self.load(engine, &Toolset::new(), operator).await?)))
    }

    /// Loads the interpreter, and returns the tool over a set of tools.
    ///
    /// # Errors
    /// Returns an error if the component is no interpreter, or if a tool cannot be called from a
    /// program.
    pub(crate) async fn load(
        self,
        engine: &Engine,
        tools: &Toolset,
        operator: &Operator,
    ) -> Result<CodeMode> {
        let name = PluginName::new(PLUGIN).map_err(|error| Error::failed(error.to_string()))?;
        let grants = Grants { all_tools: true, ..Grants::default() };
        let options = PluginOptions::new(name, grants, self.limits);
        let LocatedComponent { path, digest, .. } = self.interpreter;
        let component = artifacts::component(&path, digest);
        let loading = loading::load_component(engine, path, component, options, operator);
        let interpreter = loading.await?;
        let options = CodeOptions {
            language: self.language,
            approval: self.approval,
            approver: self.approver,
            rules: self.rules,
            seal: self.seal,
            observed: self.observed,
            replaces: self.replaces,
        };
        let mode = CodeMode::new(Arc::new(interpreter), tools, options);
        mode.map_err(|error| Error::invalid(format!("code mode: {error}")))
    }
}

/// Checks `[code.limits]` without looking for an interpreter.
///
/// # Errors
/// Returns an error if no program could succeed.
pub(crate) fn check(file: &ConfigFile) -> Result<()> {
    limits(Some(file)).map(drop)
}

/// Returns the limits of a program.
fn limits(file: Option<&ConfigFile>) -> Result<Limits> {
    let limits = Limits {
        wall_ms_max: WALL_MS_MAX,
        cpu_ms_max: CPU_MS_MAX,
        memory_bytes_max: MEMORY_BYTES_MAX,
        ..Limits::default()
    };
    let Some(file) = file else { return Ok(limits) };
    let limits = file.config.code.limits.over(&limits);
    granting::check_limits(&limits)
        .map_err(|error| file.error_in_table("[code.limits", format!("code: {error}")))?;
    Ok(limits)
}

/// Returns the component of the interpreter: that of the selection, of the configuration, or the
/// installed one.
///
/// # Errors
/// Returns an error if there is none, or if the configuration names one that was not fetched.
fn interpreter(
    chosen: &CodeSelection,
    file: Option<&ConfigFile>,
    language: Language,
) -> Result<LocatedComponent> {
    if let Some(path) = &chosen.interpreter {
        return Ok(LocatedComponent::file(path.clone()));
    }
    let named = file.map(ConfigFile::interpreter).transpose()?.flatten();
    let (Some(file), Some(location)) = (file, named) else {
        let path = installed_beside(chosen.program.clone(), language)?;
        return Ok(LocatedComponent::file(path));
    };
    let located = Locator::new(file)?.locate_interpreter(location);
    match &located.missing {
        Some(missing) => Err(Error::NotAccepted(format!("code mode: {missing}"))),
        None => Ok(located),
    }
}

/// Returns an error if a component is no interpreter of code mode.
pub(crate) fn check_interpreter(plugin: &Plugin) -> Result<()> {
    let definitions = plugin.definitions();
    match definitions.iter().any(|tool| tool.name.as_str() == RUN_CODE) {
        true => Ok(()),
        false => Err(Error::invalid(format!(
            "code mode: `{}` is not an interpreter: it has no tool `{RUN_CODE}`",
            plugin.identity().name
        ))),
    }
}

/// Returns the rules of a configuration about calls of programs, if it has any.
fn rules(file: Option<&ConfigFile>) -> Result<Option<Arc<dyn ProgramRules>>> {
    #[cfg(feature = "agent")]
    return rules::of_config(file);
    #[cfg(not(feature = "agent"))]
    {
        let _ = file;
        Ok(None)
    }
}

/// Returns whether a label policy applies to the agents of a configuration.
fn has_label_policy(file: &ConfigFile) -> bool {
    #[cfg(feature = "labels")]
    return file.config.labels.policy;
    #[cfg(not(feature = "labels"))]
    {
        let _ = file;
        false
    }
}

/// Returns the types of results in the log that a configuration names, by tool. The log in the
/// user's state directory has results of other configurations, whose property names are not for
/// this one. A log that cannot be read has no results.
fn recorded_types(file: &ConfigFile) -> BTreeMap<String, Type> {
    let directory = records::own_directory(file);
    let Some(log) = directory.and_then(|directory| Log::open(directory).ok()) else {
        return BTreeMap::new();
    };
    let filter = CallFilter {
        outcome: Some("ok".to_owned()),
        limit: Some(RECORDED_MAX),
        ..CallFilter::default()
    };
    let mut results: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for entry in log.query(&filter).map(|list| list.calls).unwrap_or_default() {
        let result = log.payload(&entry, PayloadKind::Result).ok().flatten();
        let result = result.and_then(|json| serde_json::from_slice(&json).ok());
        let result = result.filter(|result| !is_contents(result));
        results.entry(entry.tool).or_default().extend(result);
    }
    results.retain(|_, results| !results.is_empty());
    results.iter().map(|(tool, results)| (tool.clone(), Type::observed(results))).collect()
}

/// Returns whether a recorded result is a list of contents, which programs get in another form.
fn is_contents(result: &Value) -> bool {
    let is_content = |item: &Value| {
        item.as_object().is_some_and(|item| {
            item.contains_key("media_type")
                || (item.len() == 1 && (item.contains_key("text") || item.contains_key("json")))
        })
    };
    result.as_array().is_some_and(|items| items.iter().any(is_content))
}

/// Returns the tools with `run_code`, or only `run_code`, for a model.
///
/// # Errors
/// Returns an error if a tool has a name like `run_code`.
pub(crate) fn offered(offer: CodeOffer, tools: &Toolset, mode: CodeMode) -> Result<Toolset> {
    let mut offered = match offer {
        CodeOffer::Both => tools.clone(),
        CodeOffer::Only => tools.restrict(|_| false),
    };
    let mode: Arc<dyn ToolSource> = Arc::new(mode);
    offered.add(mode).map_err(|error| Error::invalid(format!("code mode: {error}")))?;
    Ok(offered)
}

/// Returns the tools of an agent. If the agent names `run_code` and other tools, its programs call
/// only these.
///
/// # Errors
/// Returns an error if a tool cannot be called from a program.
pub(crate) fn of_agent(tools: Toolset) -> Result<Toolset> {
    if tools.source(RUN_CODE).is_none() || tools.definitions().len() == 1 {
        return Ok(tools);
    }
    let mut called = tools.clone();
    called.remove(RUN_CODE);
    Ok(for_agent(CodeOffer::Both, &called, &tools)?.unwrap_or(tools))
}

/// Returns the tools that programs can call, or `None` if `all` has no `run_code`.
pub(crate) fn callable(all: &Toolset) -> Option<&Toolset> {
    mode_of(all).map(CodeMode::callable)
}

/// Returns `run_code` for an agent whose programs call `tools`, with them or instead of them.
/// Returns `None` if `all` has no `run_code`.
///
/// # Errors
/// Returns an error if a tool cannot be called from a program.
pub(crate) fn for_agent(
    offer: CodeOffer,
    tools: &Toolset,
    all: &Toolset,
) -> Result<Option<Toolset>> {
    let Some(mode) = mode_of(all) else { return Ok(None) };
    let mode = mode.over(tools).map_err(|error| Error::invalid(format!("code mode: {error}")))?;
    offered(offer, tools, mode).map(Some)
}

fn mode_of(tools: &Toolset) -> Option<&CodeMode> {
    let source: &dyn Any = &**tools.source(RUN_CODE)?;
    source.downcast_ref()
}

/// Returns the component of the interpreter that is installed with a program, by default this one.
///
/// # Errors
/// Returns an error that says where it is expected.
fn installed_beside(program: Option<PathBuf>, language: Language) -> Result<PathBuf> {
    find(program, language).map_err(|expected| {
        Error::invalid(format!(
            "code mode: there is no interpreter for {language}; expected {}; in a checkout, \
             `cargo xtask guests` builds it; `interpreter` in [code] names another component, such \
             as oci://HOST/REPOSITORY@sha256:…, which `cofferdam fetch` fetches",
            expected.display()
        ))
    })
}

/// Returns the component of the interpreter that is installed with a program, by default this one,
/// or as an error the path at which it is expected.
pub(crate) fn find(program: Option<PathBuf>, language: Language) -> Result<PathBuf, PathBuf> {
    let file = format!("{}.wasm", language.name());
    let paths: Vec<_> = folders(program).into_iter().map(|folder| folder.join(&file)).collect();
    match paths.iter().find(|path| path.is_file()) {
        Some(found) => Ok(found.clone()),
        None => Err(paths.into_iter().next().unwrap_or_default()),
    }
}

/// Returns the folders in which interpreters are looked for: beside the program, in the folder of
/// shared data beside it, in the target folder of a checkout, and among the data of the user.
fn folders(program: Option<PathBuf>) -> Vec<PathBuf> {
    let program = program.or_else(|| std::env::current_exe().ok());
    let beside = program.as_deref().and_then(Path::parent).map(|folder| {
        let above = folder.parent().unwrap_or(folder);
        vec![
            folder.join(FOLDER),
            above.join("share").join("cofferdam").join(FOLDER),
            above.join(FOLDER),
        ]
    });
    let of_user = directories::state().ok().map(|folder| folder.join(FOLDER));
    beside.into_iter().flatten().chain(of_user).collect()
}
