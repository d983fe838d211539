//! WebAssembly components as scripts (`SKILL-20`).
//!
//! A script is a plugin: a component with a tool called `run`, or with exactly one tool. If all
//! that this tool takes is `args`, it gets the `args` of the call as they are: as JSON text if it
//! declares a string, as a value otherwise. If it takes anything else, `args` is the object of its
//! arguments, decoded by its schema, which is then shown to the model.
//!
//! What runs components is not known here ([`LoadComponent`]). The file is read, and its digest
//! compared, at each use; what was loaded is kept for the next use of the same content of the same
//! folder.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use cofferdam_files::FileStore;
use cofferdam_tool::{
    CallContext, Completion, ErrorType, Outcome, ToolDefinition, ToolError, ToolSource, Toolset,
};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::program::undecoded;
use super::{ScriptFile, ScriptRunner};

/// The tool that is a script, where a component has several.
const RUN: &str = "run";
/// The argument that gets the `args` of a call as they are.
const ARGS: &str = "args";
/// Largest script in bytes: that of a component which the engine loads by default.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;
/// Scripts that stay loaded. Each holds its compiled code.
const KEPT_MAX: usize = 16;

/// Makes a plugin of a component's bytes, for one script of one skill.
#[async_trait]
pub trait LoadComponent: Send + Sync {
    /// Loads a component as a source of tools whose calls each have a sandbox of their own, with
    /// `script.folder` to read as `/skill` and with what else the operator has
    /// granted to skills.
    ///
    /// # Errors
    /// Any; it is for records and never shown to a model.
    async fn load(
        &self,
        script: &ScriptFile,
        component: Arc<[u8]>,
    ) -> Result<Arc<dyn ToolSource>, BoxError>;
}

/// The name of the mount under which a script finds the folder of its skill: `/skill`.
pub const SCRIPT_FOLDER: &str = "skill";

/// Runs `.wasm` files as scripts.
pub struct ComponentScripts {
    loader: Arc<dyn LoadComponent>,
    /// The one that was used last is at the end.
    kept: Mutex<Vec<Arc<LoadedScript>>>,
}

/// A script that is loaded.
struct LoadedScript {
    skill: String,
    name: String,
    folder: Arc<dyn FileStore>,
    digest: [u8; 32],
    toolset: Toolset,
    interface: ScriptInterface,
}

/// Interface of a script's component.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ScriptInterface {
    /// The tool that is the script.
    pub tool: Arc<ToolDefinition>,
    /// Handling of `args`.
    pub passes: Passes,
}

/// Handling of the `args` of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Passes {
    /// They are the tool's argument `args`.
    AsArgs,
    /// They are that as JSON text.
    AsText,
    /// They are the object of the tool's arguments.
    AsArguments,
}

impl ScriptInterface {
    /// The tool of `definitions` that is the script: the one called `run`, or the only one. `None`
    /// if there is neither.
    #[must_use]
    pub fn of(definitions: &[Arc<ToolDefinition>]) -> Option<Self> {
        let run = definitions.iter().find(|definition| definition.name.as_str() == RUN);
        let only = match definitions {
            [only] => Some(only),
            _ => None,
        };
        let tool = Arc::clone(run.or(only)?);
        let passes = passes(tool.input.published());
        Some(Self { tool, passes })
    }

    /// The schema that a model is shown, if the script takes something of its own.
    #[must_use]
    pub fn parameters(&self) -> Option<&Value> {
        (self.passes == Passes::AsArguments).then(|| self.tool.input.published())
    }

    /// The text of the tool's arguments.
    fn arguments(&self, args: Value) -> String {
        let args = match self.passes {
            Passes::AsArguments => return args.to_string(),
            Passes::AsArgs => args,
            Passes::AsText => Value::String(args.to_string()),
        };
        Value::Object(Map::from_iter([(ARGS.to_owned(), args)])).to_string()
    }
}

fn passes(schema: &Value) -> Passes {
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(args) =
        properties.filter(|properties| properties.len() == 1).and_then(|only| only.get(ARGS))
    else {
        return Passes::AsArguments;
    };
    match args.get("type").and_then(Value::as_str) {
        Some("string") => Passes::AsText,
        _ => Passes::AsArgs,
    }
}

impl ComponentScripts {
    /// Scripts that `loader` loads.
    pub fn new(loader: Arc<dyn LoadComponent>) -> Self {
        Self { loader, kept: Mutex::default() }
    }

    /// Loads a script and says how it is called.
    ///
    /// # Errors
    /// What is wrong with it, for the operator.
    pub async fn interface(&self, script: &ScriptFile) -> Result<ScriptInterface, BoxError> {
        self.loaded(script).await.map(|loaded| loaded.interface.clone())
    }

    async fn loaded(&self, script: &ScriptFile) -> Result<Arc<LoadedScript>, BoxError> {
        let bytes = script.folder.read(&script.path, SCRIPT_BYTES_MAX).await?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        if let Some(kept) = self.kept(script, &digest) {
            return Ok(kept);
        }
        let source = self.loader.load(script, bytes.into()).await?;
        let interface = ScriptInterface::of(&source.definitions())
            .ok_or("a script has a tool called `run`, or exactly one tool")?;
        let mut toolset = Toolset::new();
        toolset.add(source)?;
        let loaded = Arc::new(LoadedScript {
            skill: script.skill.clone(),
            name: script.name.clone(),
            folder: Arc::clone(&script.folder),
            digest,
            toolset,
            interface,
        });
        self.keep(&loaded);
        Ok(loaded)
    }

    fn kept(&self, script: &ScriptFile, digest: &[u8; 32]) -> Option<Arc<LoadedScript>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place =
            kept.iter().position(|loaded| loaded.is_of(script) && loaded.digest == *digest)?;
        let loaded = kept.remove(place);
        kept.push(Arc::clone(&loaded));
        Some(loaded)
    }

    fn keep(&self, loaded: &Arc<LoadedScript>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX {
            kept.remove(0);
        }
        kept.push(Arc::clone(loaded));
    }
}

impl LoadedScript {
    /// Returns whether it is this script of this folder. A folder that was found anew is another
    /// one.
    fn is_of(&self, script: &ScriptFile) -> bool {
        self.name == script.name
            && self.skill == script.skill
            && Arc::ptr_eq(&self.folder, &script.folder)
    }
}

#[async_trait]
impl ScriptRunner for ComponentScripts {
    fn extensions(&self) -> &[&str] {
        &["wasm"]
    }

    async fn parameters(&self, script: &ScriptFile) -> Option<Value> {
        match self.loaded(script).await {
            Ok(loaded) => loaded.interface.parameters().cloned(),
            Err(error) => {
                tracing::warn!(skill = script.skill, script = script.name, %error, "a script cannot be loaded");
                None
            }
        }
    }

    async fn run(&self, script: &ScriptFile, args: Value, context: &CallContext) -> Completion {
        let loaded = tokio::select! {
            biased;
            () = context.given_up() => return Completion::ended(Outcome::Cancelled, context),
            loaded = self.loaded(script) => loaded,
        };
        let loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                let error =
                    ToolError::new(ErrorType::PluginUnavailable).with_detail(error.to_string());
                return Completion::ended(Outcome::Error(error), context);
            }
        };
        let (tool, arguments) =
            (loaded.interface.tool.name.as_str(), loaded.interface.arguments(args));
        match loaded.toolset.call(tool, Some(arguments.as_bytes()), context).await {
            Ok(completion) => completion,
            Err(refused) => undecoded(&refused, context),
        }
    }
}

impl fmt::Debug for ComponentScripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComponentScripts").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
