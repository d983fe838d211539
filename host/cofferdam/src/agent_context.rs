//! Context providers of agents, which flags, agent files or the configuration switch on.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cofferdam_agent::{AgentBuilder, MemoryFiles, PlanMode, TodoList};
use cofferdam_files::{FileStore, StoreSharing};
use cofferdam_tool::{FileAccess, MountName};
use cofferdam_workflow::definition::MemoryDefinition;

use crate::agent_file::DefinedAgent;
use crate::compose::HostPlan;
use crate::config::{ConfigError, ConfigFile};
use crate::granting::{self, Values};
use crate::policy_files::{self, PolicyFile, ServedFiles};
use crate::stores::{self, Stores};
use crate::{Error, Result, Selection, StoreLocation};

/// Memory files, a todo list and a plan mode, each off by default.
#[derive(Debug, Clone, Default)]
pub struct ContextOptions {
    /// Location of the memory files, which all sessions share.
    pub memory: Option<StoreLocation>,
    /// True if the agent has a todo list.
    pub todos: bool,
    /// True if a conversation begins in the mode in which only tools that change nothing run.
    pub plan_mode: bool,
}

/// Settings of context providers. Options come before the keys of an agent's definition, and these
/// before `[agent]` of the configuration.
pub struct ContextSettings<'a> {
    options: ContextOptions,
    config: Option<&'a ConfigFile>,
    files: FilesOfHost<'a>,
    /// Files that no store of memory files may contain, once they are needed.
    policy_files: OnceLock<Vec<PolicyFile>>,
}

/// Host whose tools the agents use.
enum FilesOfHost<'a> {
    /// Host of one user: its selection, and files that no tool may write.
    Selected(&'a Selection, &'a [PathBuf]),
    /// Server, whose callers are separated.
    Served(&'a ServedFiles),
}

/// Opened providers, which agents of one conversation share.
#[derive(Clone, Default)]
pub struct AgentContext {
    memory: Option<MemoryFiles>,
    todos: Option<TodoList>,
    plan_mode: Option<PlanMode>,
}

/// Store of memory files that a file names, and the file for errors about it.
struct NamedStore<'a> {
    name: &'a str,
    error: Box<dyn Fn(String) -> ConfigError + 'a>,
}

impl<'a> ContextSettings<'a> {
    /// Creates the settings of agents that use the tools of a selection. No store of memory files
    /// may contain `protected` files or others that control grants.
    #[must_use]
    pub fn new(
        options: ContextOptions,
        config: Option<&'a ConfigFile>,
        selection: &'a Selection,
        protected: &'a [PathBuf],
    ) -> Self {
        let files = FilesOfHost::Selected(selection, protected);
        Self { options, config, files, policy_files: OnceLock::new() }
    }

    /// Creates the settings of agents that are served as tools. Each caller has its own memory
    /// files.
    pub(crate) fn served(config: Option<&'a ConfigFile>, files: &'a ServedFiles) -> Self {
        let (options, files) = (ContextOptions::default(), FilesOfHost::Served(files));
        Self { options, config, files, policy_files: OnceLock::new() }
    }

    /// Opens the providers of an agent; without a definition, those of the options and the
    /// configuration.
    ///
    /// # Errors
    /// Returns an error if the store of the memory files cannot be opened, or if it contains files
    /// that control grants. Callers of served agents could read the notes of others in a store that
    /// is granted to tools, so it is an error there. So is a plan mode in a loop without a
    /// conversation.
    pub fn open(&self, agent: Option<DefinedAgent<'_>>) -> Result<AgentContext> {
        let table = self.config.map(|file| &file.config.agent);
        let definition = agent.map(|agent| agent.definition);
        let is_on =
            |option: bool, key: Option<bool>, configured: bool| option || key.unwrap_or(configured);
        let mut context = AgentContext::default();
        if let Some(store) = self.memory_store(agent)? {
            granting::check_store(
                "the memory",
                &*store,
                FileAccess::ReadWrite,
                self.policy_files()?,
            )?;
            let memory = MemoryFiles::new(store).map_err(internal)?;
            context.memory = Some(match self.files {
                FilesOfHost::Served(_) => memory.per_caller(),
                FilesOfHost::Selected(..) => memory.sharing(StoreSharing::Shared),
            });
        }
        let todos = definition.and_then(|definition| definition.todos);
        if is_on(self.options.todos, todos, table.is_some_and(|table| table.todos)) {
            context.todos = Some(TodoList::new().map_err(internal)?);
        }
        let plan_mode = definition.and_then(|definition| definition.plan_mode);
        if is_on(self.options.plan_mode, plan_mode, table.is_some_and(|table| table.plan_mode)) {
            if let Some(agent) = agent.filter(DefinedAgent::is_bounded) {
                let message = "the agent is `bounded`: each iteration begins without a \
                               conversation, so it can have no plan mode; set `plan-mode: false`";
                return Err(agent.file.error_anywhere(message).into());
            }
            context.plan_mode = Some(PlanMode::new().map_err(internal)?);
        }
        Ok(context)
    }

    /// Opens the store of the memory files, if there are any.
    fn memory_store(&self, agent: Option<DefinedAgent<'_>>) -> Result<Option<Arc<dyn FileStore>>> {
        if let Some(location) = &self.options.memory {
            return stores::open_location(location, FileAccess::ReadWrite).map(Some);
        }
        let defined = match agent.and_then(|agent| agent.memory_files()) {
            Some(named) => Some(named?),
            None => None,
        };
        let Some(named) = defined.unwrap_or_else(|| self.config.and_then(of_config)) else {
            return Ok(None);
        };
        let Some(file) = self.config else {
            let message = "memory files need a store of a configuration; pass --config FILE";
            return Err((named.error)(message.to_owned()).into());
        };
        let store = open(&named, &Stores::new(file, Values::Read))?;
        if let FilesOfHost::Served(files) = self.files
            && (file.is_granted(named.name) || files.can_read(&*store))
        {
            let message = format!(
                "tools or clients can read the store `{}`, so callers of the agent could read each \
                 other's notes; name a store that nothing else can read",
                named.name
            );
            return Err((named.error)(message).into());
        }
        Ok(Some(store))
    }

    fn policy_files(&self) -> Result<&[PolicyFile]> {
        if let Some(files) = self.policy_files.get() {
            return Ok(files);
        }
        let files = match self.files {
            FilesOfHost::Served(files) => policy_files::locate(&files.policy_files),
            FilesOfHost::Selected(selection, protected) => {
                let plan = HostPlan::new(selection, Values::Leave, protected, None)?;
                policy_files::locate(&plan.policy_files())
            }
        };
        Ok(self.policy_files.get_or_init(|| files))
    }
}

impl<'a> DefinedAgent<'a> {
    /// Returns the store of memory files that the definition names, or `Some(None)` if it switches
    /// them off.
    fn memory_files(self) -> Option<Result<Option<NamedStore<'a>>, ConfigError>> {
        let named = self.definition.memory_files.as_ref()?;
        let error = move |message: String| self.file.error(named.referenced, message);
        Some(match &named.value {
            MemoryDefinition::Store(name) => Ok(Some(NamedStore { name, error: Box::new(error) })),
            MemoryDefinition::Switch(false) => Ok(None),
            MemoryDefinition::Switch(true) => {
                Err(error("expected the name of a store of [stores], or false".to_owned()))
            }
        })
    }
}

/// Returns the store that `memory-files` of `[agent]` names.
fn of_config(file: &ConfigFile) -> Option<NamedStore<'_>> {
    let named = file.config.agent.memory_files.as_ref()?;
    let error = move |message: String| file.error(named.span(), message);
    Some(NamedStore { name: named.get_ref(), error: Box::new(error) })
}

fn open(named: &NamedStore<'_>, stores: &Stores<'_>) -> Result<Arc<dyn FileStore>, ConfigError> {
    let mount = MountName::new(named.name).map_err(|error| (named.error)(error.to_string()))?;
    let store = stores.open_named(&mount, FileAccess::ReadWrite, &*named.error)?;
    if stores.sharing(&mount) == StoreSharing::PerSession {
        let message = format!(
            "the store `{mount}` has a directory for each session, and memory files outlive sessions"
        );
        return Err((named.error)(message));
    }
    Ok(store)
}

/// Checks the store that `[agent]` of a configuration names.
pub(crate) fn check(file: &ConfigFile) -> Result<()> {
    let Some(named) = of_config(file) else { return Ok(()) };
    open(&named, &Stores::new(file, Values::Leave))?;
    Ok(())
}

impl AgentContext {
    /// Returns the plan mode of the agents, if they have one.
    #[must_use]
    pub fn plan_mode(&self) -> Option<&PlanMode> {
        self.plan_mode.as_ref()
    }

    /// Adds the providers to an agent.
    pub fn add_to(&self, mut builder: AgentBuilder) -> AgentBuilder {
        if let Some(memory) = &self.memory {
            builder = builder.context_provider(memory.clone());
        }
        if let Some(todos) = &self.todos {
            builder = builder.context_provider(todos.clone());
        }
        if let Some(plan_mode) = &self.plan_mode {
            builder = builder.context_provider(plan_mode.clone());
        }
        builder
    }
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::failed(error.to_string())
}
