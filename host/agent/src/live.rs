//! The tools of a run, which change while it is going on (`LOOP-7`, `MW-16`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofferdam_tool::invoke::{LiveRun, NotChanged};
use cofferdam_tool::{ToolDefinition, ToolName, ToolSource, Toolset};

/// The tools of a run. Changes count from the next iteration on; after the run there is nothing to
/// change (`MW-17`).
#[derive(Clone)]
pub struct LiveTools {
    inner: Arc<Mutex<Live>>,
}

struct Live {
    tools: Option<RunTools>,
    is_terminated: bool,
}

/// What can be called in a run, and what of it is only declared.
#[derive(Clone)]
pub(crate) struct RunTools {
    toolset: Toolset,
    declared: Arc<[Arc<ToolDefinition>]>,
    /// Both together. The same list for as long as nothing changes, so that clients need not write
    /// it again.
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl RunTools {
    pub(crate) fn new(toolset: Toolset, declared: Arc<[Arc<ToolDefinition>]>) -> Self {
        let definitions = toolset.definitions().chain(declared.iter()).cloned().collect();
        Self { toolset, declared, definitions }
    }

    /// What the host runs.
    pub(crate) fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// What the caller runs: a model is told of these, and nothing here calls them (`LOOP-26`).
    pub(crate) fn declared(&self) -> &[Arc<ToolDefinition>] {
        &self.declared
    }

    /// What is advertised, tools first.
    pub(crate) fn definitions(&self) -> &Arc<[Arc<ToolDefinition>]> {
        &self.definitions
    }

    /// Whether a tool is only declared.
    pub(crate) fn is_declared(&self, name: &str) -> bool {
        self.declared.iter().any(|definition| definition.name.as_str() == name)
    }

    fn add(&mut self, source: Arc<dyn ToolSource>) -> Result<(), NotChanged> {
        let duplicate = |name: &ToolName| NotChanged::Duplicate { name: name.to_string() };
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
        let is_kept = |tool: &&Arc<ToolDefinition>| !names.contains(&tool.name.as_str());
        let declared = self.declared.iter().filter(is_kept).cloned().collect();
        *self = Self::new(self.toolset.clone(), declared);
    }
}

impl LiveTools {
    pub(crate) fn new(tools: RunTools) -> Self {
        Self { inner: Arc::new(Mutex::new(Live { tools: Some(tools), is_terminated: false })) }
    }

    /// The definitions that are advertised by now; none after the run.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.live().tools.iter().flat_map(|tools| tools.definitions().iter()).cloned().collect()
    }

    /// Adds the tools of a source from the next iteration on: all of them or none.
    ///
    /// # Errors
    /// A name is taken, or the run is over.
    pub fn add_tools(&self, source: Arc<dyn ToolSource>) -> Result<(), NotChanged> {
        self.live().tools.as_mut().ok_or(NotChanged::AddedTooLate)?.add(source)
    }

    /// Takes tools away from the next iteration on. Names that are not known are passed over.
    ///
    /// # Errors
    /// The run is over.
    pub fn remove_tools(&self, names: &[&str]) -> Result<(), NotChanged> {
        self.live().tools.as_mut().ok_or(NotChanged::RemovedTooLate)?.remove(names);
        Ok(())
    }

    /// The tools as they are now.
    pub(crate) fn snapshot(&self) -> RunTools {
        self.live().tools.clone().unwrap_or_else(|| RunTools::new(Toolset::new(), Arc::from([])))
    }

    /// Whether a tool has asked for the end of the loop. Asking counts once.
    pub(crate) fn take_termination(&self) -> bool {
        std::mem::take(&mut self.live().is_terminated)
    }

    /// The run is over.
    pub(crate) fn close(&self) {
        self.live().tools = None;
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        // What a panicking thread left is whole: a toolset takes a source or leaves it.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveRun for LiveTools {
    fn add_tools(&self, source: Arc<dyn ToolSource>) -> Result<(), NotChanged> {
        LiveTools::add_tools(self, source)
    }

    fn remove_tools(&self, names: &[&str]) -> Result<(), NotChanged> {
        LiveTools::remove_tools(self, names)
    }

    fn terminate(&self) {
        self.live().is_terminated = true;
    }
}

impl std::fmt::Debug for LiveTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveTools").finish_non_exhaustive()
    }
}
