//! Loading of one component: it is read, screened, compiled or taken from the cache, and described.

use std::sync::Arc;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::permission::RequestedPermissions;
use cofferdam_tool::{Annotations, Limits, PluginName};
use serde::{Deserialize, Serialize};

use super::compile::{Artifact, CompileSettings};
use super::{Component, LoadEvent, LoadObserver, blocking};
use crate::cache::{CacheKey, EntryKind, Lookup};
use crate::command::{self, CommandTools};
use crate::engine::EngineInner;
use crate::engine_pool::{Code, CodeForm, WasmEngine};
use crate::guest::{self, ServedPre, TOOLS_EXPORT};
use crate::host_api::{CallState, PluginContext, imports};
use crate::manifest::{self, Manifest};
use crate::plugin::digest_text;
use crate::screen::{ScreenReport, screen};
use crate::{Confinement, Grants, LoadError, call, typed};

/// Version of the cache contents. Increased when [`Description`] or the meaning of an entry
/// changes.
pub(crate) const CACHE_FORMAT: &[u8] = b"cofferdam cache 1";
/// Maximum time for a component to list its tools, in milliseconds.
const DESCRIBE_WALL_MS_MAX: u64 = 5_000;
/// Maximum size of such a list, in bytes: the 262144 bytes of ARG-43, and room for the lists around
/// them.
const DESCRIBE_BYTES_MAX: u64 = 1024 * 1024;

/// Description of a component without its code. Stored in the cache next to the code.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) component_bytes: u64,
    pub(crate) imports: Vec<String>,
    pub(crate) declarations: Vec<Declaration>,
}

/// Description of a component with its manifests.
pub(crate) struct ComponentDescription {
    pub(crate) description: Description,
    /// Permissions and limits that the manifest asks for.
    pub(crate) asked: RequestedPermissions,
    /// Icons that the manifest names.
    pub(crate) icons: Vec<String>,
    /// Tools of a command, as the manifest declares them.
    pub(crate) commands: CommandTools,
    /// Code, if it had to be compiled for the description.
    pub(crate) code: Option<Code>,
}

/// Bytes of a component, with their digest.
pub(crate) struct ReadComponent {
    bytes: Arc<[u8]>,
    pub(crate) digest: [u8; 32],
}

/// Manifests of a component.
pub(crate) struct ComponentManifest {
    beside: Option<Arc<str>>,
    manifest: Manifest,
}

impl ReadComponent {
    /// Reads a component and checks its size and digest.
    pub(crate) async fn read(
        engine: &EngineInner,
        component: &Component,
    ) -> Result<Self, LoadError> {
        let (bytes, digest) = component.read(engine.config.screen.component_bytes_max).await?;
        if !component.accepts_digest(&digest) {
            return Err(LoadError::Digest { found: digest_text(&digest) });
        }
        Ok(Self { bytes, digest })
    }

    /// Reads the manifests inside and next to the component.
    pub(crate) async fn manifest(
        &self,
        component: &Component,
    ) -> Result<ComponentManifest, LoadError> {
        let beside = component.read_manifest().await?;
        let embedded = manifest::embedded(&self.bytes).map_err(LoadError::EmbeddedManifest)?;
        let manifest = Manifest::parse(beside.as_deref(), embedded)?;
        Ok(ComponentManifest { beside, manifest })
    }

    /// Returns the size of the component in bytes.
    fn size(&self) -> u64 {
        u64::try_from(self.bytes.len()).unwrap_or(u64::MAX)
    }
}

impl ComponentManifest {
    /// Returns the permissions and limits that the component asks for.
    pub(crate) fn requested(&self) -> RequestedPermissions {
        self.manifest.requested()
    }
}

/// Component that is being loaded.
pub(crate) struct ComponentLoad<'a> {
    engine: &'a EngineInner,
    plugin: &'a PluginName,
    wasm_engine: &'a Arc<WasmEngine>,
    /// Set if the plugin has an instruction budget, which requires code that counts. The value does
    /// not limit the listing of tools.
    fuel_max: Option<u64>,
    /// True if the plugin was granted a socket connection.
    has_sockets: bool,
    observer: &'a dyn LoadObserver,
    read: ReadComponent,
    key: CacheKey,
}

impl<'a> ComponentLoad<'a> {
    /// Starts to load a component for calls under `limits`.
    pub(crate) fn start(
        engine: &'a EngineInner,
        read: ReadComponent,
        plugin: &'a PluginName,
        limits: &Limits,
        grants: &Grants,
        observer: &'a dyn LoadObserver,
    ) -> Result<Self, LoadError> {
        let wasm_engine = engine.first_engine(limits)?;
        let fuel_max = limits.fuel_max.map(|_| u64::MAX);
        let key = CacheKey::new(&[CACHE_FORMAT, &wasm_engine.fingerprint, &read.digest]);
        let has_sockets = !grants.sockets.is_empty();
        Ok(Self { engine, plugin, wasm_engine, fuel_max, has_sockets, observer, read, key })
    }

    /// Returns the digest of the component.
    pub(crate) fn digest(&self) -> [u8; 32] {
        self.read.digest
    }

    /// Returns the description of the component, with its code if it had to be compiled for that.
    pub(crate) async fn describe(
        &self,
        manifest: &ComponentManifest,
    ) -> Result<ComponentDescription, LoadError> {
        let ComponentManifest { beside, manifest } = manifest;
        let (asked, icons) = (manifest.requested(), manifest.icons());
        let commands = command::tools(manifest)?;
        let key = self.description_key(beside.as_deref());
        if let Some(description) = self.cached_description(key).await? {
            return Ok(ComponentDescription { description, asked, icons, commands, code: None });
        }
        let screened = self.screen().await?;
        let code = match self.cached_code().await? {
            Some(code) => code,
            None => self.compile().await?,
        };
        let declarations = match &code.entry {
            CodeForm::Declared(declared) => self.listed(&code.wasm_engine, declared).await?,
            CodeForm::Command(_) => command::declarations(manifest)?,
            CodeForm::Typed(code) => {
                typed::declarations(code.functions(), &self.read.bytes, manifest)?
            }
        };
        let component_bytes = self.read.size();
        let description = Description { component_bytes, imports: screened.imports, declarations };
        if let Ok(json) = serde_json::to_vec(&description) {
            self.keep(key, EntryKind::Description, json).await?;
        }
        Ok(ComponentDescription { description, asked, icons, commands, code: Some(code) })
    }

    /// Returns the cache key of the description. A manifest next to the component changes this key,
    /// but not that of the code.
    fn description_key(&self, beside: Option<&str>) -> CacheKey {
        match beside {
            Some(text) => CacheKey::new(&[
                CACHE_FORMAT,
                &self.wasm_engine.fingerprint,
                &self.read.digest,
                text.as_bytes(),
            ]),
            None => self.key,
        }
    }

    /// Returns the code from the cache, or compiles it.
    pub(crate) async fn code(&self) -> Result<Code, LoadError> {
        if let Some(code) = self.cached_code().await? {
            return Ok(code);
        }
        self.screen().await?;
        self.compile().await
    }

    async fn cached_code(&self) -> Result<Option<Code>, LoadError> {
        let link = self.linker();
        self.cached(self.key, EntryKind::Code, move |artifact| link(&artifact).ok()).await
    }

    /// Compiles bytes that have passed the screen.
    async fn compile(&self) -> Result<Code, LoadError> {
        self.observer.on_event(LoadEvent::Compiling { component_bytes: self.read.size() });
        let config = &self.engine.config;
        let settings = CompileSettings {
            metering: self.wasm_engine.metering,
            confinement_min: config.confinement_min.unwrap_or(Confinement::None),
        };
        let Artifact { code: artifact, confinement } =
            config.compiler.compile(&self.read.bytes, settings).await?;
        let artifact_bytes = u64::try_from(artifact.len()).unwrap_or(u64::MAX);
        self.observer.on_event(LoadEvent::Compiled { artifact_bytes });
        if let (Some(level), None) = (confinement, config.confinement_min)
            && level < Confinement::Full
        {
            self.observer.on_event(LoadEvent::Unconfined { level });
        }
        let link = self.linker();
        let (code, artifact) = blocking(move || Ok((link(&artifact)?, artifact))).await?;
        self.keep(self.key, EntryKind::Code, artifact).await?;
        Ok(code)
    }

    /// Returns the size of the component and the result of the screen.
    pub(crate) async fn screened(&self) -> Result<(u64, ScreenReport), LoadError> {
        let screened = self.screen().await?;
        Ok((self.read.size(), screened))
    }

    async fn screen(&self) -> Result<ScreenReport, LoadError> {
        // Takes up to a fifth of a second for the largest components, so it must not run on a
        // thread that serves calls.
        let (bytes, limits) = (Arc::clone(&self.read.bytes), self.engine.config.screen.clone());
        let screened = blocking(move || Ok(screen(&bytes, &limits)?)).await?;
        let unknown: Vec<_> = screened
            .imports
            .iter()
            .filter(|name| imports::look_up(name).is_none())
            .cloned()
            .collect();
        if !unknown.is_empty() {
            return Err(LoadError::UnknownImports { imports: unknown });
        }
        // The types show whether any other export is a function; they are known after compilation.
        let has_no_tools = |name: &String| {
            name != TOOLS_EXPORT && !command::is_entry_point(name) && typed::is_protocol(name)
        };
        if screened.exports.iter().all(has_no_tools) {
            return Err(LoadError::no_tools());
        }
        Ok(screened)
    }

    /// Returns a function that links an artifact, which takes milliseconds.
    fn linker(&self) -> impl FnOnce(&[u8]) -> Result<Code, LoadError> + Send + 'static {
        let (wasm_engine, has_sockets) = (Arc::clone(self.wasm_engine), self.has_sockets);
        // The artifact comes from our own compiler: either over a pipe from a child that we
        // started, or from the cache, which has verified its MAC with this installation's key.
        move |artifact| Code::from_trusted(&wasm_engine, artifact, has_sockets)
    }

    /// Calls the component to list its tools.
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
        let context =
            PluginContext::without_grants(self.plugin.clone(), self.engine.client.clone())?;
        let definitions =
            call::list_tools(self.engine, &Arc::new(context), wasm_engine, code, &limits).await?;
        Ok(definitions.into_iter().map(declaration).collect())
    }

    async fn cached_description(&self, key: CacheKey) -> Result<Option<Description>, LoadError> {
        let parse = |json: Vec<u8>| serde_json::from_slice(&json).ok();
        self.cached(key, EntryKind::Description, parse).await
    }

    /// Returns an entry of the cache as `parse` understands it.
    async fn cached<T: Send + 'static>(
        &self,
        key: CacheKey,
        kind: EntryKind,
        parse: impl FnOnce(Vec<u8>) -> Option<T> + Send + 'static,
    ) -> Result<Option<T>, LoadError> {
        let Some(cache) = self.engine.cache.clone() else { return Ok(None) };
        let looked_up = blocking(move || match cache.get(&key, kind) {
            Lookup::Hit(bytes) => Ok(Ok(parse(bytes))),
            Lookup::Miss => Ok(Ok(None)),
            Lookup::Rejected(reason) => Ok(Err(reason)),
        });
        Ok(looked_up.await?.unwrap_or_else(|reason| {
            tracing::warn!(%reason, "a cache entry was rejected and removed");
            self.observer.on_event(LoadEvent::CacheRejected);
            None
        }))
    }

    /// Stores an entry. If the cache cannot be written, the next start only takes longer.
    async fn keep(
        &self,
        key: CacheKey,
        kind: EntryKind,
        contents: Vec<u8>,
    ) -> Result<(), LoadError> {
        let Some(cache) = self.engine.cache.clone() else { return Ok(()) };
        if let Err(error) = blocking(move || Ok(cache.insert(&key, kind, &contents))).await? {
            tracing::warn!(%error, "a cache entry cannot be written");
            self.observer.on_event(LoadEvent::CacheUnwritable);
        }
        Ok(())
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
        group: None,
    }
}
