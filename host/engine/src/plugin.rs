//! A loaded plugin: its definitions, grants and limits, and its code, which is loaded on demand.

mod batch;
mod load;
mod replay;
mod unavailable;

use data_encoding::HEXLOWER;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cofferdam_files::SharedStore;
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::permission::{GrantedPermissions, RequestedPermissions};
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::retry::RetryPolicy;
use cofferdam_tool::{
    CallContext, Completion, ErrorType, FileAccess, Limits, Outcome, Output, PluginName, Policy,
    ToolCall, ToolDefinition, ToolError, ToolName, ToolSource,
};

pub use self::batch::{LoadRequest, PluginBatch};
pub use self::replay::ReplayError;
pub use self::unavailable::UnavailablePlugin;
use crate::call::Invocation;
use crate::command::CommandTools;
use crate::config::Metering;
use crate::engine::EngineInner;
use crate::engine_pool::{Code, CodeForm, PluginCode};
use crate::host_api::{CallFiles, CallParts, PluginContext, imports};
use crate::load::{ComponentLoad, ReadComponent};
use crate::recording::{CallRecorder, RecordedCall};
use crate::{Capability, Component, Engine, Grants, LoadError, Mount};

/// Number of calls of which `sampled` records one.
const SAMPLE: u64 = 100;

/// Settings of a plugin.
#[derive(Debug, Clone)]
pub struct PluginOptions {
    /// Name of the plugin in the host.
    pub name: PluginName,
    /// Grants that are offered. Calls get those of them that the plugin requests.
    pub grants: Grants,
    /// Limits of each call.
    pub limits: Limits,
    /// Maximum number of retries of a call that ends as [`ErrorType::Conflict`] and has left no
    /// effects ([`CallRecord::is_repeatable`](cofferdam_tool::CallRecord::is_repeatable)). Calls
    /// made by other calls are never retried.
    pub retries_max: u32,
    /// True to show the model the text of errors that the author did not mean for it, such as
    /// unhandled exceptions. Useful in development: the text may contain anything that the plugin
    /// has read.
    pub shows_errors: bool,
    /// Selection of the calls that are recorded so that they can run again.
    pub recording: RecordingLevel,
}

impl PluginOptions {
    /// Creates settings without retries and recordings, under which unexpected errors are hidden.
    #[must_use]
    pub fn new(name: PluginName, grants: Grants, limits: Limits) -> Self {
        let recording = RecordingLevel::Off;
        Self { name, grants, limits, retries_max: 0, shows_errors: false, recording }
    }
}

/// Facts about a plugin's component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// Name and digest.
    pub identity: PluginIdentity,
    /// Size of the component in bytes.
    pub component_bytes: u64,
    /// Imports as written in the component.
    pub imports: Vec<String>,
    /// Capabilities that those imports need, each once, in order of weight.
    pub capabilities: Vec<Capability>,
}

/// Component that has passed the screen, and of which nothing has run.
#[derive(Debug, Clone)]
pub struct ScreenedPlugin {
    /// Identity, size and imports.
    pub info: PluginInfo,
    /// Exports as written in the component.
    pub exports: Vec<String>,
}

/// Plugin whose component is neither read as code nor instantiated before the first call, if it is
/// in the cache.
pub struct Plugin {
    engine: Arc<EngineInner>,
    component: Component,
    digest: [u8; 32],
    facts: Facts,
    info: OnceLock<PluginInfo>,
    definitions: Arc<[Arc<ToolDefinition>]>,
    options: PluginOptions,
    asked: RequestedPermissions,
    icons: Vec<String>,
    /// Tools of a command.
    commands: CommandTools,
    granted: GrantedPermissions,
    context: Arc<PluginContext>,
    code: PluginCode,
    /// Number of calls whose recording was decided by counting.
    sampled: AtomicU64,
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin").field("name", &self.options.name).finish_non_exhaustive()
    }
}

/// Parts of a plugin that do not depend on its options.
struct PluginParts {
    digest: [u8; 32],
    facts: Facts,
    definitions: Arc<[Arc<ToolDefinition>]>,
    asked: RequestedPermissions,
    icons: Vec<String>,
    commands: CommandTools,
    code: Option<Code>,
}

/// Source of [`PluginInfo`], which is created on demand.
#[derive(Clone)]
struct Facts {
    component_bytes: u64,
    /// Imports, one per line.
    imports: String,
}

impl PluginInfo {
    fn new(identity: PluginIdentity, component_bytes: u64, imports: Vec<String>) -> Self {
        Self { identity, component_bytes, capabilities: capabilities(&imports), imports }
    }
}

impl Plugin {
    fn new(
        engine: &Engine,
        component: &Component,
        options: PluginOptions,
        parts: PluginParts,
    ) -> Result<Self, LoadError> {
        let PluginOptions { name, grants, limits, shows_errors, .. } = &options;
        let granted = parts.asked.granted_of(&grants.policy(limits));
        let identity =
            PluginIdentity { name: name.clone(), digest: digest_text(&parts.digest).into() };
        let metering = Metering::under(&granted.policy.limits);
        let engines = engine.inner.pool(metering).len();
        let tools = parts.definitions.iter().map(|tool| tool.name.clone());
        let granted_grants = grants.restricted_to(&granted.policy);
        let context =
            PluginContext::new(identity, granted_grants, engine.inner.client.clone(), tools)?
                .showing_errors(*shows_errors);
        let code = PluginCode::new(parts.code, engines, !grants.sockets.is_empty());
        Ok(Self {
            engine: Arc::clone(&engine.inner),
            component: component.clone(),
            digest: parts.digest,
            facts: parts.facts,
            info: OnceLock::new(),
            definitions: parts.definitions,
            options,
            asked: parts.asked,
            icons: parts.icons,
            commands: parts.commands,
            granted,
            context: Arc::new(context),
            code,
            sampled: AtomicU64::new(0),
        })
    }

    /// Returns the component's file on the host. `None` if the component was given as bytes, or its
    /// manifest is not the one next to the file.
    #[must_use]
    pub fn file_ambient(&self) -> Option<&Path> {
        self.component.file_ambient()
    }

    /// Returns the same component as a plugin with other options, such as wider grants. Nothing is
    /// read or compiled again, except that the first call reloads the code if it has to be linked
    /// differently.
    ///
    /// # Errors
    /// Same as [`Engine::load`], for errors that concern the grants.
    pub fn with_options(&self, options: PluginOptions) -> Result<Self, LoadError> {
        let engine = Engine { inner: Arc::clone(&self.engine) };
        engine.check_mounts(&options.grants)?;
        let granted = self.asked.granted_of(&options.grants.policy(&options.limits));
        let metering = Metering::under(&granted.policy.limits);
        let has_same_sockets =
            self.options.grants.sockets.is_empty() == options.grants.sockets.is_empty();
        let is_same = |code: &&Code| code.wasm_engine.metering == metering && has_same_sockets;
        let parts = PluginParts {
            digest: self.digest,
            facts: self.facts.clone(),
            definitions: Arc::clone(&self.definitions),
            asked: self.asked.clone(),
            icons: self.icons.clone(),
            commands: self.commands.clone(),
            code: self.code.first().get().filter(is_same).cloned(),
        };
        Self::new(&engine, &self.component, options, parts)
    }

    /// Returns the name and digest.
    #[must_use]
    pub fn identity(&self) -> &PluginIdentity {
        &self.context.identity
    }

    /// Returns the facts about the component.
    #[must_use]
    pub fn info(&self) -> &PluginInfo {
        self.info.get_or_init(|| {
            let imports = self.facts.imports.lines().map(str::to_owned).collect();
            PluginInfo::new(self.identity().clone(), self.facts.component_bytes, imports)
        })
    }

    /// Returns the permissions and limits that the manifest requests.
    #[must_use]
    pub fn requested(&self) -> &RequestedPermissions {
        &self.asked
    }

    /// Returns the addresses of the icons that the manifest names: `https:` or `data:`, at most
    /// eight. The host has not fetched or checked them.
    #[must_use]
    pub fn icons(&self) -> &[String] {
        &self.icons
    }

    /// Returns the policy that the operator offers to the plugin.
    #[must_use]
    pub fn offered(&self) -> Policy {
        self.options.grants.policy(&self.options.limits)
    }

    /// Returns the policy of the plugin's calls, and the requested permissions that are missing
    /// from it.
    #[must_use]
    pub fn granted(&self) -> &GrantedPermissions {
        &self.granted
    }

    /// Returns the number of copies of its code in memory: none before the first call, and up to
    /// one for each core once calls run concurrently.
    #[must_use]
    pub fn code_copies(&self) -> usize {
        self.code.loaded_copies()
    }

    /// Loads the code, which otherwise the first call does. Later calls no longer need the file of
    /// the component, which may then have another version.
    ///
    /// # Errors
    /// If the component cannot be loaded, or has changed.
    pub async fn preload(&self) -> Result<(), LoadError> {
        self.code.first().get_or_try_init(|| self.load_code()).await.map(drop)
    }

    fn limits(&self) -> &Limits {
        &self.granted.policy.limits
    }

    async fn loaded_code(&self) -> Result<&Code, ToolError> {
        self.code.first().get_or_try_init(|| self.load_code()).await.map_err(|error| {
            ToolError::new(ErrorType::PluginUnavailable).with_detail(error.to_string())
        })
    }

    async fn load_code(&self) -> Result<Code, LoadError> {
        let PluginOptions { name, grants, .. } = &self.options;
        let read = ReadComponent::read(&self.engine, &self.component).await?;
        if read.digest != self.digest {
            return Err(LoadError::Changed);
        }
        ComponentLoad::start(&self.engine, read, name, self.limits(), grants, &())?.code().await
    }
}

#[async_trait]
impl ToolSource for Plugin {
    fn name(&self) -> &str {
        self.options.name.as_str()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn origin(&self, _tool: &ToolName) -> ToolOrigin {
        ToolOrigin::plugin(self.identity())
    }

    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        Some(self.identity())
    }

    fn supports_dry_run(&self, _: &ToolName) -> bool {
        true
    }

    fn file_stores(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        let mounts = self.options.grants.mounts.iter();
        let writable = mounts.filter(|mount| mount.access != FileAccess::ReadOnly);
        let shared = |mount: &Mount| -> Arc<dyn Any + Send + Sync> {
            Arc::new(SharedStore(Arc::clone(&mount.store)))
        };
        writable.map(shared).collect()
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let retries_max = self.options.retries_max;
        // An inner call belongs to the outer call's transaction, which has seen the older state of
        // the files, so a retry would end in the same conflict.
        if retries_max == 0 || context.outer.is_some() {
            return self.attempt(call, context, None).await;
        }
        let retries = RetryPolicy::on_conflict(retries_max);
        retries.run(context, || Box::pin(self.attempt(call.clone(), context, None))).await
    }
}

impl Plugin {
    /// Runs the call once. `replay` is the recorder of a replay.
    async fn attempt(
        &self,
        call: ToolCall<'_>,
        context: &CallContext,
        replay: Option<&Arc<CallRecorder>>,
    ) -> Completion {
        let code = match self.code.first().get() {
            Some(_) if context.is_cancelled() => Err(Outcome::Cancelled),
            Some(code) => Ok(code),
            // Missing code may have to be compiled. A caller who gives up does not wait for that.
            None => tokio::select! {
                biased;
                () = context.cancelled() => Err(Outcome::Cancelled),
                code = self.loaded_code() => code.map_err(Outcome::Error),
            },
        };
        let mut completion = match code {
            Ok(first) => {
                let code =
                    self.code.for_this_thread(first, self.engine.pool(first.wasm_engine.metering));
                self.run(code, &call, context, replay).await
            }
            Err(outcome) => Completion::ended(outcome, context),
        };
        completion.record.plugin = Some(self.identity().clone());
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }

    async fn run(
        &self,
        code: &Code,
        call: &ToolCall<'_>,
        context: &CallContext,
        replay: Option<&Arc<CallRecorder>>,
    ) -> Completion {
        let narrowed = context.limits.as_ref().map(|asked| asked.applied_to(self.limits()));
        let limits = narrowed.as_ref().unwrap_or(self.limits());
        if limits.fuel_max.is_some() && self.limits().fuel_max.is_none() {
            let detail = "the call has an instruction budget and the plugin has none, so that its \
                code does not count";
            let error = ToolError::new(ErrorType::PluginUnavailable).with_detail(detail);
            return Completion::ended(Outcome::Error(error), context);
        }
        let records = self.options.recording != RecordingLevel::Off;
        let own = (records && replay.is_none()).then(Arc::<CallRecorder>::default);
        let recorder = replay.or(own.as_ref());
        let stores = recorder.map(|recorder| recorder.stores());
        let spill = self.engine.spill.as_ref();
        let files = CallFiles::new(&self.context.grants, context, spill, stores);
        let invocation = Invocation {
            engine: &self.engine,
            parts: CallParts {
                plugin: &self.context,
                files: &files,
                toolset: call.toolset,
                limits,
                context,
                recorder,
            },
        };
        let tool = call.tool.name.as_str();
        let command = self.commands.get(tool);
        let mut completion = invocation.call_tool(code, command, tool, &call.arguments).await;
        // A typed result cannot violate its schema, which is derived from the type by which the
        // result was lifted.
        if !matches!(code.entry, CodeForm::Typed(_))
            && let Some(error) = broken_schema(call.tool, &completion.outcome)
        {
            completion.outcome = Outcome::Error(error);
            completion.record.set_outcome(&completion.outcome);
        }
        let level = self.options.recording;
        let hashes = matches!(level, RecordingLevel::All | RecordingLevel::Sampled);
        let written = match recorder {
            Some(_) if replay.is_some() || hashes => files.written().await,
            _ => BTreeMap::new(),
        };
        files.settle(&mut completion, context).await;
        let redactor = &self.context.redactor;
        if !redactor.is_empty() {
            completion.outcome = redactor.outcome(completion.outcome);
            completion.record.set_outcome(&completion.outcome);
            redactor.record(&mut completion.record);
        }
        if let Some(recorder) = recorder
            && (replay.is_some() || self.keeps_recording(&completion.outcome))
        {
            let recording = recorder.finish(RecordedCall {
                plugin: &self.context,
                limits,
                tool,
                arguments: call.arguments.value(),
                context,
                completion: &completion,
                written,
            });
            completion.record.recording = Some(Arc::new(recording));
        }
        completion
    }

    /// Returns whether the recording of a call with this outcome is kept.
    fn keeps_recording(&self, outcome: &Outcome) -> bool {
        let is_success = matches!(outcome, Outcome::Ok(_));
        match self.options.recording {
            RecordingLevel::Off => false,
            RecordingLevel::Failures => !is_success,
            RecordingLevel::Sampled => {
                let number = self.sampled.fetch_add(1, Ordering::Relaxed);
                !is_success || number.is_multiple_of(SAMPLE)
            }
            RecordingLevel::All => true,
        }
    }
}

/// Returns an error if the value of a success violates the declared output schema (`RES-22`).
fn broken_schema(tool: &ToolDefinition, outcome: &Outcome) -> Option<ToolError> {
    let schema = tool.output.as_ref()?;
    let Outcome::Ok(output) = outcome else { return None };
    let checked = match output {
        Output::Value(value) => schema.validate(value),
        Output::Contents(_) => Err("the result is a list of contents and not one value".to_owned()),
    };
    checked.err().map(|detail| ToolError::new(ErrorType::InvalidResult).with_detail(detail))
}

fn capabilities(imports: &[String]) -> Vec<Capability> {
    let mut capabilities: Vec<_> = imports
        .iter()
        .filter_map(|name| imports::look_up(name))
        .map(|(capability, _)| capability)
        .collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    capabilities
}

pub(crate) fn digest_text(digest: &[u8; 32]) -> String {
    format!("sha256:{}", HEXLOWER.encode(digest))
}
