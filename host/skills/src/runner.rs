//! Runners of scripts that are files (`SKILL-9`, `SKILL-20`).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_files::{FileStore, StorePath};
use cofferdam_tool::{CallContext, Completion};
use serde_json::Value;

/// Runs script files of some kinds. The program adds runners; no built-in one starts a process of
/// the host.
#[async_trait]
pub trait ScriptRunner: Send + Sync {
    /// The endings of the files that it runs, in lower case and without the dot.
    fn extensions(&self) -> &[&str];

    /// The JSON Schema of what a script takes, if it takes something of its own. Asked when a model
    /// loads the skill.
    async fn parameters(&self, script: &ScriptFile) -> Option<Value> {
        let _ = script;
        None
    }

    /// Runs a script to its end. `args` is an object, a list of texts or null, as the model wrote
    /// it.
    ///
    /// Every way to end is an [`Outcome`](cofferdam_tool::Outcome), as for a
    /// [`ToolSource`](cofferdam_tool::ToolSource::invoke): when the context is cancelled the runner
    /// stops the script and answers `Cancelled`.
    async fn run(&self, script: &ScriptFile, args: Value, context: &CallContext) -> Completion;
}

/// A script file of one skill. The file may have changed since the skill was found: the runner
/// reads it at each use, and through the store alone.
#[derive(Clone)]
#[non_exhaustive]
pub struct ScriptFile {
    /// The skill.
    pub skill: String,
    /// The script as the skill lists it.
    pub name: String,
    /// Path of the file in the folder.
    pub path: StorePath,
    /// The folder of the skill, for reading alone. The same one for as long as the skill is the one
    /// that was found.
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
