//! Interface for running script files (`SKILL-9`, `SKILL-20`).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_files::{FileStore, StorePath};
use cofferdam_tool::{CallContext, Completion};
use serde_json::Value;

/// Runs script files with certain extensions. The embedding program adds runners; no built-in
/// runner starts a process of the host.
#[async_trait]
pub trait ScriptRunner: Send + Sync {
    /// Returns the extensions of the files that it runs, in lower case and without the dot.
    fn extensions(&self) -> &[&str];

    /// Returns the JSON Schema of a script's parameters, if it declares any. Called when a model
    /// loads the skill.
    async fn parameters(&self, script: &ScriptFile) -> Option<Value> {
        let _ = script;
        None
    }

    /// Runs a script to its end. `args` is an object, a list of strings or null, as the model wrote
    /// it.
    ///
    /// Every result is an [`Outcome`](cofferdam_tool::Outcome), as for a
    /// [`ToolSource`](cofferdam_tool::ToolSource::invoke). If the context is canceled, the runner
    /// stops the script and returns `Cancelled`.
    async fn run(&self, script: &ScriptFile, args: Value, context: &CallContext) -> Completion;
}

/// Script file of a skill. The file may have changed since discovery, so the runner reads it at
/// each use, and only through the store.
#[derive(Clone)]
#[non_exhaustive]
pub struct ScriptFile {
    /// Name of the skill.
    pub skill: String,
    /// Name of the script in the list of the skill.
    pub name: String,
    /// Path of the file in the folder.
    pub path: StorePath,
    /// Directory of the skill, read-only. It is the same object until the skill is discovered
    /// again.
    pub folder: Arc<dyn FileStore>,
}

impl fmt::Debug for ScriptFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptFile")
            .field("skill", &self.skill)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
