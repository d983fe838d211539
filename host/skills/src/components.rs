//! WebAssembly components as scripts (`SKILL-20`).
//!
//! A script is a plugin: a component with a tool called `run`, or with exactly one tool.
//!
//! * If `args` is the only parameter of this tool, it receives the `args` of the call unchanged: as
//!   a JSON string if it declares a string, and as a value otherwise.
//! * Otherwise, `args` is the object of the tool's arguments. The tool's schema decodes it and is
//!   shown to the model.
//!
//! The caller provides the loader of components ([`LoadComponent`]). The file is read, and its
//! digest compared, at each use. A loaded script is cached for further uses of the same content in
//! the same directory.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::BoxError;
use cofferdam_files::FileStore;
use cofferdam_tool::{
    CallContext, Completion, ErrorType, Outcome, ToolDefinition, ToolError, ToolSource, Toolset,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::program::undecoded;
use super::{ScriptFile, ScriptRunner};

/// Name of the tool that is the script, if a component has several tools.
const RUN: &str = "run";
/// Name of the parameter that receives the `args` of a call unchanged.
const ARGS: &str = "args";
/// Maximum bytes of a script, which is the engine's default for components.
const SCRIPT_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of cached scripts. Each holds its compiled code in memory.
const CACHED_MAX: usize = 16;

/// Loads a component as a plugin, for one script of one skill.
#[async_trait]
pub trait LoadComponent: Send + Sync {
    /// Loads a component as a source of tools. Each call runs in its own sandbox, in which
    /// `script.folder` is mounted read-only as `/skill`, with the other permissions that the
    /// operator grants to skills.
    ///
    /// # Errors
    /// Any error; it is logged and never shown to a model.
    async fn load(
        &self,
        script: &ScriptFile,
        component: Arc<[u8]>,
    ) -> Result<Arc<dyn ToolSource>, BoxError>;
}

/// Name of the mount at which a script finds the directory of its skill: `/skill`.
pub const SCRIPT_FOLDER: &str = "skill";

/// Runner of `.wasm` files as scripts.
pub struct ComponentScripts {
    loader: Arc<dyn LoadComponent>,
    /// Cached scripts, the most recently used one last.
    cached: Mutex<Vec<Arc<LoadedScript>>>,
}

/// Loaded script.
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
    /// Tool that is the script.
    pub tool: Arc<ToolDefinition>,
    /// Form in which the tool receives `args`.
    pub passes: ArgumentMode,
}

/// Form in which a tool receives the `args` of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentMode {
    /// As the value of the parameter `args`.
    AsArgs,
    /// As a JSON string in the parameter `args`.
    AsText,
    /// As the object of the tool's arguments.
    AsArguments,
}

impl ScriptInterface {
    /// Returns the interface of the script among `definitions`: the tool called `run`, or the only
    /// one. Returns `None` if there is neither.
    #[must_use]
    pub fn of(definitions: &[Arc<ToolDefinition>]) -> Option<Self> {
        let run = definitions.iter().find(|definition| definition.name.as_str() == RUN);
        let only = match definitions {
            [only] => Some(only),
            _ => None,
        };
        let tool = Arc::clone(run.or(only)?);
        let passes = argument_mode(tool.input.published());
        Some(Self { tool, passes })
    }

    /// Returns the schema to show to a model, unless `args` is the only parameter.
    #[must_use]
    pub fn parameters(&self) -> Option<&Value> {
        (self.passes == ArgumentMode::AsArguments).then(|| self.tool.input.published())
    }

    /// Returns the JSON of the tool's arguments.
    fn arguments(&self, args: Value) -> String {
        let args = match self.passes {
            ArgumentMode::AsArguments => return args.to_string(),
            ArgumentMode::AsArgs => args,
            ArgumentMode::AsText => Value::String(args.to_string()),
        };
        Value::Object(Map::from_iter([(ARGS.to_owned(), args)])).to_string()
    }
}

fn argument_mode(schema: &Value) -> ArgumentMode {
    let properties = schema.get("properties").and_then(Value::as_object);
    let Some(args) =
        properties.filter(|properties| properties.len() == 1).and_then(|only| only.get(ARGS))
    else {
        return ArgumentMode::AsArguments;
    };
    match args.get("type").and_then(Value::as_str) {
        Some("string") => ArgumentMode::AsText,
        _ => ArgumentMode::AsArgs,
    }
}

impl ComponentScripts {
    /// Creates a runner of the scripts that `loader` loads.
    pub fn new(loader: Arc<dyn LoadComponent>) -> Self {
        Self { loader, cached: Mutex::default() }
    }

    /// Loads a script and returns its interface.
    ///
    /// # Errors
    /// The reason why the script cannot be loaded, for the operator.
    pub async fn interface(&self, script: &ScriptFile) -> Result<ScriptInterface, BoxError> {
        self.loaded(script).await.map(|loaded| loaded.interface.clone())
    }

    async fn loaded(&self, script: &ScriptFile) -> Result<Arc<LoadedScript>, BoxError> {
        let bytes = script.folder.read(&script.path, SCRIPT_BYTES_MAX).await?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        if let Some(cached) = self.cached_script(script, &digest) {
            return Ok(cached);
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
        self.cache_script(&loaded);
        Ok(loaded)
    }

    fn cached_script(&self, script: &ScriptFile, digest: &[u8; 32]) -> Option<Arc<LoadedScript>> {
        let mut cached = self.cached.lock();
        let index =
            cached.iter().position(|loaded| loaded.is_of(script) && loaded.digest == *digest)?;
        let loaded = cached.remove(index);
        cached.push(Arc::clone(&loaded));
        Some(loaded)
    }

    fn cache_script(&self, loaded: &Arc<LoadedScript>) {
        let mut cached = self.cached.lock();
        if cached.len() >= CACHED_MAX {
            cached.remove(0);
        }
        cached.push(Arc::clone(loaded));
    }
}

impl LoadedScript {
    /// Returns whether this is the given script of the given directory. A directory that was
    /// discovered again counts as another one.
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
            () = context.cancelled() => return Completion::ended(Outcome::Cancelled, context),
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
