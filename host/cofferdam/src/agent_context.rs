//! Context providers of agents that a command or a configuration switches on.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_agent::{AgentBuilder, MemoryFiles, PlanMode, TodoList};
use cofferdam_files::{FileStore, StoreSharing};
use cofferdam_tool::{FileAccess, MountName};

use crate::compose::{self, HostPlan};
use crate::config::ConfigFile;
use crate::granting::{self, Values};
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

/// Opened providers, which agents of one conversation share.
#[derive(Clone, Default)]
pub struct AgentContext {
    memory: Option<MemoryFiles>,
    todos: Option<TodoList>,
    plan_mode: Option<PlanMode>,
}

impl AgentContext {
    /// Opens what the options and `[agent]` of the selection's configuration switch on.
    ///
    /// # Errors
    /// Returns an error if the store of the memory files cannot be opened, or if it contains
    /// `protected` files or others that control grants.
    pub fn open(
        options: &ContextOptions,
        file: Option<&ConfigFile>,
        selection: &Selection,
        protected: &[PathBuf],
    ) -> Result<Self> {
        let table = file.map(|file| &file.config.agent);
        let mut context = Self::default();
        if let Some(store) = memory_store(options, file)? {
            let plan = HostPlan::new(selection, Values::Leave, protected, None)?;
            let mut deciding = compose::policy_files_of(&plan.specs);
            deciding.extend(protected.iter().cloned());
            deciding.extend(selection.config.clone());
            let deciding = granting::policy_files(&deciding);
            granting::check_store("the memory", &*store, FileAccess::ReadWrite, &deciding)?;
            let memory = MemoryFiles::new(store).map_err(internal)?;
            context.memory = Some(memory.sharing(StoreSharing::Shared));
        }
        if options.todos || table.is_some_and(|table| table.todos) {
            context.todos = Some(TodoList::new().map_err(internal)?);
        }
        if options.plan_mode || table.is_some_and(|table| table.plan_mode) {
            context.plan_mode = Some(PlanMode::new().map_err(internal)?);
        }
        Ok(context)
    }

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

/// Opens the store of the memory files, if there are any.
fn memory_store(
    options: &ContextOptions,
    file: Option<&ConfigFile>,
) -> Result<Option<Arc<dyn FileStore>>> {
    if let Some(location) = &options.memory {
        return stores::open_location(location, FileAccess::ReadWrite).map(Some);
    }
    let Some((file, name)) =
        file.and_then(|file| Some((file, file.config.agent.memory_files.as_ref()?)))
    else {
        return Ok(None);
    };
    let mount = MountName::new(name.get_ref().as_str())
        .map_err(|error| file.error(name.span(), error.to_string()))?;
    Ok(Some(Stores::new(file, Values::Read).get(&mount, name.span())?))
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::failed(error.to_string())
}
