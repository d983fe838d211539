//! From component bytes to a plugin: read, screen, compile or take from the cache, describe.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_tool::{Annotations, Asked, CallContext, Declaration, Limits, PluginIdentity, PluginName};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmtime::component::Component as WasmComponent;

use crate::cache::{CacheKey, EntryKind, Lookup};
use crate::call::Invocation;
use crate::compile::one_line;
use crate::engine::EngineInner;
use crate::engine_pool::WasmEngine;
use crate::guest::{self, ServedPre, TOOLS_EXPORT};
use crate::imports;
use crate::manifest::{self, MANIFEST_BYTES_MAX, Manifest};
use crate::plugin::PluginContext;
use crate::screen::{Screened, screen};
use crate::state::CallState;
use crate::typed::{self, TypedCode};
use crate::wasi_files::CallFiles;
use crate::{Grants, LoadError, link};

/// The version of what the cache holds. Raised when [`Description`] or the meaning of an entry changes.
pub(crate) const CACHE_FORMAT: &[u8] = b"cofferdam cache 1";
/// The ending of a manifest beside a component, in place of the component's.
pub(crate) const MANIFEST_EXTENSION: &str = "toml";
/// How long a component may take to list its tools, in milliseconds.
const DESCRIBE_WALL_MS_MAX: u64 = 5_000;
/// How much it may say: the 262144 bytes of ARG-43, and room for the lists around them.
const DESCRIBE_BYTES_MAX: u64 = 1024 * 1024;

/// The bytes of a component, or where they are.
#[derive(Clone)]
pub struct Component {
    source: Source,
    manifest: Option<Arc<str>>,
}

#[derive(Clone)]
enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

/// Something that takes long enough for a person to wonder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadEvent {
    /// The component is not in the cache and is being compiled.
    Compiling {
        /// Size of the component in bytes.
        component_bytes: u64,
    },
    /// Compiling has ended well.
    Compiled {
        /// Size of the machine code in bytes.
        artifact_bytes: u64,
    },
    /// An entry of the cache was not what this installation wrote and has been removed.
    CacheRejected,
    /// The compiled code cannot be kept for the next time.
    CacheUnwritable,
}

/// Is told what a load is doing.
pub trait LoadObserver: Send + Sync {
    /// Takes one event. Must not block.
    fn on_event(&self, event: LoadEvent);
}

impl LoadObserver for () {
    fn on_event(&self, _event: LoadEvent) {}
}

/// What is known of a component without its code. Kept in the cache next to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) component_bytes: u64,
    pub(crate) imports: Vec<String>,
    pub(crate) declarations: Vec<Declaration>,
}

/// What a component says about itself.
pub(crate) struct Described {
    pub(crate) description: Description,
    /// What its manifest asks for.
    pub(crate) asked: Asked,
    /// Pictures that the manifest names.
    pub(crate) icons: Vec<String>,
    /// Code, when it had to be compiled to learn this.
    pub(crate) code: Option<Code>,
}

/// Code that is ready to be instantiated.
#[derive(Clone)]
pub(crate) struct Code {
    /// The engine that it was loaded into.
    pub(crate) wasm_engine: Arc<WasmEngine>,
    pub(crate) entry: Entry,
}

/// The way in which code offers tools.
#[derive(Clone)]
pub(crate) enum Entry {
    /// The component declares its tools.
    Declared(Arc<ServedPre<CallState>>),
    /// The component's functions are its tools.
    Typed(Arc<TypedCode>),
}

impl Component {
    /// The component in a file of the host. The path is opened with all rights of this process.
    pub fn from_file_ambient(path: impl Into<PathBuf>) -> Self {
        Self { source: Source::File(path.into()), manifest: None }
    }

    /// A component that is already in memory.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { source: Source::Bytes(bytes.into()), manifest: None }
    }

    /// Adds a manifest, in place of the `<name>.toml` beside the component's own file.
    #[must_use]
    pub fn with_manifest(self, text: impl Into<Arc<str>>) -> Self {
        Self { manifest: Some(text.into()), ..self }
    }

    /// The file of the host that it is in, if its manifest is the one beside that.
    pub(crate) fn file_ambient(&self) -> Option<&Path> {
        match (&self.source, &self.manifest) {
            (Source::File(path), None) => Some(path),
            _ => None,
        }
    }

    /// The text of the manifest beside the component, if there is one.
    async fn read_manifest(&self) -> Result<Option<Arc<str>>, LoadError> {
        match (&self.manifest, &self.source) {
            (Some(text), _) => Ok(Some(Arc::clone(text))),
            (None, Source::Bytes(_)) => Ok(None),
            (None, Source::File(path)) => {
                let path = path.with_extension(MANIFEST_EXTENSION);
                let read = tokio::task::spawn_blocking(move || read_manifest_file(&path));
                read.await.map_err(|_| LoadError::Interrupted)?
            }
        }
    }

    async fn read(&self, bytes_max: u64) -> Result<Arc<[u8]>, LoadError> {
        match &self.source {
            Source::Bytes(bytes) => {
                check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes_max)?;
                Ok(Arc::clone(bytes))
            }
            Source::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path, bytes_max));
                read.await.map_err(|_| LoadError::Interrupted)?
            }
        }
    }
}

fn read_manifest_file(path: &Path) -> Result<Option<Arc<str>>, LoadError> {
    let bytes = match read_file(path, MANIFEST_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(LoadError::Read(error)) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LoadError::ManifestUnreadable(Box::new(error))),
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Some(text.into())),
        Err(_) => Err(LoadError::ManifestUnreadable(Box::new(LoadError::NotText))),
    }
}

fn read_file(path: &Path, bytes_max: u64) -> Result<Arc<[u8]>, LoadError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::InvalidInput => LoadError::NotAFile,
        _ => LoadError::Read(error),
    };
    let file = cofferdam_files::open_named_ambient(path).map_err(failed)?;
    let metadata = file.metadata().map_err(LoadError::Read)?;
    check_size(metadata.len(), bytes_max)?;
    // The file may grow while it is read.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(LoadError::Read)?;
    check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes_max)?;
    Ok(bytes.into())
}

fn check_size(bytes: u64, bytes_max: u64) -> Result<(), LoadError> {
    if bytes > bytes_max { Err(LoadError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}

impl Code {
    /// Makes code out of an artifact that this installation has compiled: one that comes from elsewhere could be anything.
    #[expect(unsafe_code, reason = "loading machine code cannot be checked by the compiler")]
    fn from_trusted(
        wasm_engine: &Arc<WasmEngine>,
        artifact: &[u8],
        has_sockets: bool,
    ) -> Result<Self, LoadError> {
        let interface = |error: wasmtime::Error| LoadError::Interface { reason: one_line(&error) };
        // SAFETY: the callers in this file pass what our own compiler has made.
        let component =
            unsafe { WasmComponent::deserialize(&wasm_engine.wasmtime, artifact) }.map_err(interface)?;
        let linker = link::with_refusals(&wasm_engine.linker, &component, has_sockets).map_err(interface)?;
        let instance_pre = linker.instantiate_pre(&component).map_err(interface)?;
        let entry = if component.get_export_index(None, TOOLS_EXPORT).is_some() {
            Entry::Declared(Arc::new(ServedPre::new(instance_pre).map_err(interface)?))
        } else {
            Entry::Typed(Arc::new(TypedCode::new(&component, instance_pre)?))
        };
        Ok(Self { wasm_engine: Arc::clone(wasm_engine), entry })
    }

    /// The same code for another engine of the same kind. Copies all of it, and blocks for a millisecond or some.
    pub(crate) fn copied_into(
        &self,
        wasm_engine: &Arc<WasmEngine>,
        has_sockets: bool,
    ) -> Result<Self, LoadError> {
        let component = match &self.entry {
            Entry::Declared(code) => code.instance_pre().component(),
            Entry::Typed(code) => code.instance_pre().component(),
        };
        let artifact = component.serialize();
        let artifact = artifact.map_err(|error| LoadError::Interface { reason: one_line(&error) })?;
        Self::from_trusted(wasm_engine, &artifact, has_sockets)
    }
}

/// A component on its way to being a plugin.
pub(crate) struct Loading<'a> {
    engine: &'a EngineInner,
    component: &'a Component,
    plugin: &'a PluginName,
    wasm_engine: &'a Arc<WasmEngine>,
    /// Set if the plugin has an instruction budget. Listing tools has none: it may take its time.
    fuel_max: Option<u64>,
    /// Whether the plugin was granted a connection.
    has_sockets: bool,
    observer: &'a dyn LoadObserver,
    bytes: Arc<[u8]>,
    pub(crate) digest: [u8; 32],
    key: CacheKey,
}

impl<'a> Loading<'a> {
    pub(crate) async fn start(
        engine: &'a EngineInner,
        component: &'a Component,
        plugin: &'a PluginName,
        limits: &Limits,
        grants: &Grants,
        observer: &'a dyn LoadObserver,
    ) -> Result<Self, LoadError> {
        let wasm_engine = engine.first_engine(limits)?;
        let fuel_max = limits.fuel_max.map(|_| u64::MAX);
        let bytes = component.read(engine.config.screen.component_bytes_max).await?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let key = CacheKey::new(&[CACHE_FORMAT, &wasm_engine.fingerprint, &digest]);
        let has_sockets = !grants.sockets.is_empty();
        Ok(Self {
            engine,
            component,
            plugin,
            wasm_engine,
            fuel_max,
            has_sockets,
            observer,
            bytes,
            digest,
            key,
        })
    }

    /// What the component says about itself. Code comes with it when it had to be compiled for that.
    pub(crate) async fn describe(&self) -> Result<Described, LoadError> {
        let beside = self.component.read_manifest().await?;
        let embedded = manifest::embedded(&self.bytes).map_err(LoadError::EmbeddedManifest)?;
        let manifest = Manifest::parse(beside.as_deref(), embedded)?;
        let (asked, icons) = (manifest.asked(), manifest.icons());
        let key = self.description_key(beside.as_deref());
        if let Some(description) = self.cached_description(&key) {
            return Ok(Described { description, asked, icons, code: None });
        }
        let screened = self.screen().await?;
        let code = match self.cached_code() {
            Some(code) => code,
            None => self.compile().await?,
        };
        let declarations = match &code.entry {
            Entry::Declared(declared) => self.listed(&code.wasm_engine, declared).await?,
            Entry::Typed(code) => typed::declarations(code.functions(), &self.bytes, &manifest)?,
        };
        let component_bytes = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        let description = Description { component_bytes, imports: screened.imports, declarations };
        if let Ok(json) = serde_json::to_vec(&description) {
            self.keep(&key, EntryKind::Description, &json);
        }
        Ok(Described { description, asked, icons, code: Some(code) })
    }

    /// What the description of the component depends on. A manifest beside it changes it and leaves the code as it is.
    fn description_key(&self, beside: Option<&str>) -> CacheKey {
        match beside {
            Some(text) => {
                CacheKey::new(&[CACHE_FORMAT, &self.wasm_engine.fingerprint, &self.digest, text.as_bytes()])
            }
            None => self.key,
        }
    }

    /// Code from the cache, or compiled anew.
    pub(crate) async fn code(&self) -> Result<Code, LoadError> {
        if let Some(code) = self.cached_code() {
            return Ok(code);
        }
        self.screen().await?;
        self.compile().await
    }

    fn cached_code(&self) -> Option<Code> {
        self.link(&self.cached(&self.key, EntryKind::Code)?).ok()
    }

    /// Compiles bytes that have passed the screen.
    async fn compile(&self) -> Result<Code, LoadError> {
        let component_bytes = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        self.observer.on_event(LoadEvent::Compiling { component_bytes });
        let artifact = self.engine.config.compiler.compile(&self.bytes, self.wasm_engine.metering).await?;
        let artifact_bytes = u64::try_from(artifact.len()).unwrap_or(u64::MAX);
        self.observer.on_event(LoadEvent::Compiled { artifact_bytes });
        let code = self.link(&artifact)?;
        self.keep(&self.key, EntryKind::Code, &artifact);
        Ok(code)
    }

    /// The size of the component and its imports, if it passes the screen.
    pub(crate) async fn screened(&self) -> Result<(u64, Vec<String>), LoadError> {
        let imports = self.screen().await?.imports;
        Ok((u64::try_from(self.bytes.len()).unwrap_or(u64::MAX), imports))
    }

    async fn screen(&self) -> Result<Screened, LoadError> {
        // Takes up to a fifth of a second for the largest components, so not on a thread that serves calls.
        let (bytes, limits) = (Arc::clone(&self.bytes), self.engine.config.screen.clone());
        let screening = tokio::task::spawn_blocking(move || screen(&bytes, &limits));
        let screened = screening.await.map_err(|_| LoadError::Interrupted)??;
        let unknown: Vec<_> =
            screened.imports.iter().filter(|name| imports::look_up(name).is_none()).cloned().collect();
        if !unknown.is_empty() {
            return Err(LoadError::UnknownImports { imports: unknown });
        }
        // Whether any other export is a function shows in the types, which are known when it is compiled.
        if screened.exports.iter().all(|name| name != TOOLS_EXPORT && typed::is_protocol(name)) {
            return Err(LoadError::no_tools());
        }
        Ok(screened)
    }

    fn link(&self, artifact: &[u8]) -> Result<Code, LoadError> {
        // The artifact comes from our own compiler: either over a pipe from a child that we started, or from the cache,
        // which has checked its MAC with this installation's key.
        Code::from_trusted(self.wasm_engine, artifact, self.has_sockets)
    }

    /// What the component answers when it is asked for its tools.
    async fn listed(
        &self,
        wasm_engine: &WasmEngine,
        code: &Arc<ServedPre<CallState>>,
    ) -> Result<Vec<Declaration>, LoadError> {
        let limits = Limits {
            wall_ms_max: DESCRIBE_WALL_MS_MAX,
            fuel_max: self.fuel_max,
            hostcall_bytes_max: DESCRIBE_BYTES_MAX,
            ..Limits::default()
        };
        let identity = PluginIdentity { name: self.plugin.clone(), digest: "".into() };
        let client = self.engine.client.clone();
        let context = PluginContext::new(identity, Grants::default(), client, std::iter::empty())?;
        let invocation = Invocation {
            engine: self.engine,
            plugin: &Arc::new(context),
            files: &CallFiles::new(&Grants::default(), &CallContext::default(), None),
            toolset: None,
            limits: &limits,
            context: &CallContext::default(),
        };
        let definitions = invocation.list_tools(wasm_engine, code).await.map_err(LoadError::Describe)?;
        Ok(definitions.into_iter().map(declaration).collect())
    }

    fn cached_description(&self, key: &CacheKey) -> Option<Description> {
        let json = self.cached(key, EntryKind::Description)?;
        serde_json::from_slice(&json).ok()
    }

    fn cached(&self, key: &CacheKey, kind: EntryKind) -> Option<Vec<u8>> {
        match self.engine.cache.as_ref()?.get(key, kind) {
            Lookup::Hit(bytes) => Some(bytes),
            Lookup::Miss => None,
            Lookup::Rejected(reason) => {
                tracing::warn!(%reason, "a cache entry was rejected and removed");
                self.observer.on_event(LoadEvent::CacheRejected);
                None
            }
        }
    }

    /// A cache that cannot be written costs time at the next start and nothing else.
    fn keep(&self, key: &CacheKey, kind: EntryKind, bytes: &[u8]) {
        let Some(cache) = &self.engine.cache else { return };
        if let Err(error) = cache.keep(key, kind, bytes) {
            tracing::warn!(%error, "a cache entry cannot be written");
            self.observer.on_event(LoadEvent::CacheUnwritable);
        }
    }
}

fn declaration(definition: guest::ToolDefinition) -> Declaration {
    let annotations = definition.annotations;
    Declaration {
        name: definition.name,
        title: definition.title,
        description: definition.description,
        input_schema: definition.input_schema,
        output_schema: definition.output_schema,
        annotations: Annotations {
            read_only: annotations.read_only,
            destructive: annotations.destructive,
            idempotent: annotations.idempotent,
            open_world: annotations.open_world,
            long_running: annotations.long_running,
        },
    }
}
