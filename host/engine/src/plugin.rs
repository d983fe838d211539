//! A loaded plugin: its definitions, its grants and limits, and its code once it is needed.

mod batch;
mod load;
mod unavailable;

use data_encoding::HEXLOWER;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::permission::{GrantedPermissions, RequestedPermissions};
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::retry::RetryPolicy;
use cofferdam_tool::{
    CallContext, Completion, ErrorType, Limits, Outcome, Output, PluginName, Policy, ToolCall,
    ToolDefinition, ToolError, ToolName, ToolSource,
};

pub use self::batch::{LoadRequest, PluginBatch};
pub use self::unavailable::UnavailablePlugin;
use crate::call::Invocation;
use crate::config::Metering;
use crate::engine::EngineInner;
use crate::engine_pool::{Code, CodeForm, PluginCode};
use crate::host_api::{CallFiles, CallParts, PluginContext, imports};
use crate::load::ComponentLoad;
use crate::{Capability, Component, Engine, Grants, LoadError};

/// Settings of a plugin.
#[derive(Debug, Clone)]
pub struct PluginOptions {
    /// The name under which the plugin is known.
    pub name: PluginName,
    /// Grants that are offered. Its calls have those of them that it asks for.
    pub grants: Grants,
    /// Limits of each call.
    pub limits: Limits,
    /// Maximum number of retries of a call that ends as [`ErrorType::Conflict`], if nothing of it
    /// is left anywhere ([`CallRecord::is_repeatable`](cofferdam_tool::CallRecord::is_repeatable)).
    /// Calls that other calls make are not.
    pub retries_max: u32,
}

/// Facts about a plugin's component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// Name and digest.
    pub identity: PluginIdentity,
    /// Size of the component in bytes.
    pub component_bytes: u64,
    /// The imports as written in the component.
    pub imports: Vec<String>,
    /// Capabilities behind those imports, each once, in order of weight.
    pub capabilities: Vec<Capability>,
}

/// A plugin. A component that is in the cache is neither read as code nor instantiated before its
/// first call.
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
    granted: GrantedPermissions,
    context: Arc<PluginContext>,
    code: PluginCode,
}

/// Parts of a plugin that do not depend on its options.
struct PluginParts {
    digest: [u8; 32],
    facts: Facts,
    definitions: Arc<[Arc<ToolDefinition>]>,
    asked: RequestedPermissions,
    icons: Vec<String>,
    code: Option<Code>,
}

/// Source of [`PluginInfo`], which is made when it is needed.
#[derive(Clone)]
struct Facts {
    component_bytes: u64,
    /// A line each.
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
        let PluginOptions { name, grants, limits, .. } = &options;
        let granted = parts.asked.granted_of(&grants.policy(limits));
        let identity =
            PluginIdentity { name: name.clone(), digest: digest_text(&parts.digest).into() };
        let metering = Metering::under(&granted.policy.limits);
        let engines = engine.inner.pool(metering).len();
        let tools = parts.definitions.iter().map(|tool| tool.name.clone());
        let granted_grants = grants.restricted_to(&granted.policy);
        let context =
            PluginContext::new(identity, granted_grants, engine.inner.client.clone(), tools)?;
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
            granted,
            context: Arc::new(context),
            code,
        })
    }

    /// Returns the same component as a plugin with other options, such as wider grants. Nothing is
    /// read or compiled again, except that the first call loads the code once more if it has to be
    /// linked in another way.
    ///
    /// # Errors
    /// Those of [`Engine::load`] that are about the grants.
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
            code: self.code.first().get().filter(is_same).cloned(),
        };
        Self::new(&engine, &self.component, options, parts)
    }

    /// Name and digest.
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

    /// Returns the permissions and limits that the manifest asks for.
    #[must_use]
    pub fn asked(&self) -> &RequestedPermissions {
        &self.asked
    }

    /// Addresses of pictures that its manifest names: `https:` or `data:`, at most eight. Nothing
    /// has looked at them.
    #[must_use]
    pub fn icons(&self) -> &[String] {
        &self.icons
    }

    /// Returns the policy that the plugin is offered.
    #[must_use]
    pub fn offered(&self) -> Policy {
        self.options.grants.policy(&self.options.limits)
    }

    /// Returns the policy of its calls, and the permissions that it asks for and lacks.
    #[must_use]
    pub fn granted(&self) -> &GrantedPermissions {
        &self.granted
    }

    /// Returns the number of copies of its code in memory: none before the first call, and up to
    /// one for each core once calls run side by side.
    #[must_use]
    pub fn code_copies(&self) -> usize {
        self.code.loaded_copies()
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
        let loading =
            ComponentLoad::start(&self.engine, &self.component, name, self.limits(), grants, &())
                .await?;
        if loading.digest != self.digest {
            return Err(LoadError::Changed);
        }
        loading.code().await
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

    fn supports_dry_run(&self, _: &ToolName) -> bool {
        true
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let retries_max = self.options.retries_max;
        // What an inner call does is part of the outer call's transaction, which has seen the older
        // state of the files.
        if retries_max == 0 || context.outer.is_some() {
            return self.attempt(call, context).await;
        }
        let retries = RetryPolicy::on_conflict(retries_max);
        retries.run(context, || Box::pin(self.attempt(call.clone(), context))).await
    }
}

impl Plugin {
    async fn attempt(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let code = match self.code.first().get() {
            Some(_) if context.is_given_up() => Err(Outcome::Cancelled),
            Some(code) => Ok(code),
            // Code that is not there yet may have to be compiled; a caller who gives up does not
            // wait for that.
            None => tokio::select! {
                biased;
                () = context.given_up() => Err(Outcome::Cancelled),
                code = self.loaded_code() => code.map_err(Outcome::Error),
            },
        };
        let mut completion = match code {
            Ok(first) => {
                let code =
                    self.code.for_this_thread(first, self.engine.pool(first.wasm_engine.metering));
                self.run(code, &call, context).await
            }
            Err(outcome) => Completion::ended(outcome, context),
        };
        completion.record.plugin = Some(self.identity().clone());
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }

    async fn run(&self, code: &Code, call: &ToolCall<'_>, context: &CallContext) -> Completion {
        let narrowed = context.limits.as_ref().map(|asked| asked.applied_to(self.limits()));
        let limits = narrowed.as_ref().unwrap_or(self.limits());
        if limits.fuel_max.is_some() && self.limits().fuel_max.is_none() {
            let detail = "the call has an instruction budget and the plugin has none, so that its \
                code does not count";
            let error = ToolError::new(ErrorType::PluginUnavailable).with_detail(detail);
            return Completion::ended(Outcome::Error(error), context);
        }
        let files = CallFiles::new(&self.context.grants, context, self.engine.spill.as_ref());
        let invocation = Invocation {
            engine: &self.engine,
            parts: CallParts {
                plugin: &self.context,
                files: &files,
                toolset: call.toolset,
                limits,
                context,
            },
        };
        let mut completion =
            invocation.call_tool(code, call.tool.name.as_str(), &call.arguments).await;
        // The schema of a typed result is derived from the type that lifting has followed: it
        // cannot be broken.
        if matches!(code.entry, CodeForm::Declared(_))
            && let Some(error) = broken_schema(call.tool, &completion.outcome)
        {
            completion.outcome = Outcome::Error(error);
            completion.record.set_outcome(&completion.outcome);
        }
        files.settle(&mut completion, context).await;
        let redactor = &self.context.redactor;
        if !redactor.is_empty() {
            completion.outcome = redactor.outcome(completion.outcome);
            completion.record.set_outcome(&completion.outcome);
            redactor.record(&mut completion.record);
        }
        completion
    }
}

/// The value of a success has to satisfy the declared output schema (`RES-22`).
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

fn digest_text(digest: &[u8; 32]) -> String {
    format!("sha256:{}", HEXLOWER.encode(digest))
}
