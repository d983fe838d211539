//! Tools of a run, which can change while it is running (`LOOP-7`, `MW-16`).

use std::any::Any;
use std::sync::Arc;

use cofferdam_tool::invoke::{LiveRun, ToolChangeError};
use cofferdam_tool::{ToolDefinition, ToolName, ToolSource, Toolset};
use parking_lot::Mutex;

use crate::{TokenBudget, TokenUsage, UsageMeter};

/// Handle to the tools of a run. Changes take effect in the next iteration; after the run they fail
/// (`MW-17`).
#[derive(Clone)]
pub struct LiveTools {
    inner: Arc<Mutex<Live>>,
    nested: Arc<NestedRuns>,
}

/// Context of the agents that tools of a run run.
#[derive(Debug, Default)]
pub(crate) struct NestedRuns {
    /// Number of agents that they are nested in.
    pub(crate) depth: u32,
    /// Budgets that they count to.
    pub(crate) budgets: Vec<TokenBudget>,
    /// Tokens that they have used.
    pub(crate) usage: UsageMeter,
    /// Session of the outermost tool call.
    pub(crate) caller: Option<Arc<str>>,
}

struct Live {
    tools: Option<RunTools>,
    is_terminated: bool,
}

/// Tools that can be called in a run, and functions that are only declared.
#[derive(Clone)]
pub(crate) struct RunTools {
    toolset: Toolset,
    declared: Arc<[Arc<ToolDefinition>]>,
    /// Definitions of both. The list stays the same until something changes, so that clients can
    /// cache its serialized form.
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl RunTools {
    pub(crate) fn new(toolset: Toolset, declared: Arc<[Arc<ToolDefinition>]>) -> Self {
        let definitions = toolset.definitions().chain(declared.iter()).cloned().collect();
        Self { toolset, declared, definitions }
    }

    /// Returns the tools that the host runs.
    pub(crate) fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// Returns the functions that the caller runs: they are advertised, but the loop does not call
    /// them (`LOOP-26`).
    pub(crate) fn declared(&self) -> &[Arc<ToolDefinition>] {
        &self.declared
    }

    /// Returns the definitions to advertise, tools first.
    pub(crate) fn definitions(&self) -> &Arc<[Arc<ToolDefinition>]> {
        &self.definitions
    }

    /// Returns whether a function is only declared.
    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.declared.iter().any(|definition| definition.name.as_str() == name)
    }

    fn add(&mut self, source: Arc<dyn ToolSource>) -> Result<(), ToolChangeError> {
        let duplicate = |name: &ToolName| ToolChangeError::Duplicate { name: name.to_string() };
        let added = source.definitions();
        if let Some(taken) =
            added.iter().find(|definition| self.is_declared(definition.name.as_str()))
        {
            return Err(duplicate(&taken.name));
        }
        self.toolset.add(source).map_err(|error| duplicate(&error.name))?;
        *self = Self::new(self.toolset.clone(), Arc::clone(&self.declared));
        Ok(())
    }

    fn remove(&mut self, names: &[&str]) {
        for name in names {
            self.toolset.remove(name);
        }
        let is_retained = |tool: &&Arc<ToolDefinition>| !names.contains(&tool.name.as_str());
        let declared = self.declared.iter().filter(is_retained).cloned().collect();
        *self = Self::new(self.toolset.clone(), declared);
    }
}

impl LiveTools {
    pub(crate) fn new(tools: RunTools, nested: NestedRuns) -> Self {
        let live = Live { tools: Some(tools), is_terminated: false };
        Self { inner: Arc::new(Mutex::new(live)), nested: Arc::new(nested) }
    }

    /// Returns the tools of a run of this crate.
    pub(crate) fn of_run(run: &dyn LiveRun) -> Option<&Self> {
        let run: &dyn Any = run;
        run.downcast_ref()
    }

    /// Returns the context of the agents that tools of the run run.
    pub(crate) fn nested(&self) -> &NestedRuns {
        &self.nested
    }

    /// Returns the tokens that nested runs have used since the last call.
    pub(crate) fn take_usage(&self) -> Option<TokenUsage> {
        self.nested.usage.take()
    }

    /// Returns the definitions of all tools of the run; none after the run.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.inner
            .lock()
            .tools
            .iter()
            .flat_map(|tools| tools.definitions().iter())
            .cloned()
            .collect()
    }

    /// Adds the tools of a source, all of them or none, from the next iteration on.
    ///
    /// # Errors
    /// If a name is taken or the run is over.
    pub fn add_tools(&self, source: Arc<dyn ToolSource>) -> Result<(), ToolChangeError> {
        self.inner.lock().tools.as_mut().ok_or(ToolChangeError::AddedTooLate)?.add(source)
    }

    /// Removes tools from the next iteration on. Unknown names are ignored.
    ///
    /// # Errors
    /// If the run is over.
    pub fn remove_tools(&self, names: &[&str]) -> Result<(), ToolChangeError> {
        self.inner.lock().tools.as_mut().ok_or(ToolChangeError::RemovedTooLate)?.remove(names);
        Ok(())
    }

    /// Returns the current tools.
    pub(crate) fn snapshot(&self) -> RunTools {
        self.inner
            .lock()
            .tools
            .clone()
            .unwrap_or_else(|| RunTools::new(Toolset::new(), Arc::from([])))
    }

    /// Returns whether a tool has asked to end the loop, and resets this.
    pub(crate) fn take_termination(&self) -> bool {
        std::mem::take(&mut self.inner.lock().is_terminated)
    }

    /// Ends access to the tools when the run is over.
    pub(crate) fn close(&self) {
        self.inner.lock().tools = None;
    }
}

impl LiveRun for LiveTools {
    fn add_tools(&self, source: Arc<dyn ToolSource>) -> Result<(), ToolChangeError> {
        LiveTools::add_tools(self, source)
    }

    fn remove_tools(&self, names: &[&str]) -> Result<(), ToolChangeError> {
        LiveTools::remove_tools(self, names)
    }

    fn terminate(&self) {
        self.inner.lock().is_terminated = true;
    }
}

impl std::fmt::Debug for LiveTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveTools").finish_non_exhaustive()
    }
}
