//! A loaded plugin: its definitions, its grants and limits, and its code once it is needed.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Declaration, ErrorType, Limits, Outcome, Output, PluginIdentity,
    PluginName, ToolCall, ToolDefinition, ToolError, ToolSource, check_declarations,
};
use tokio::sync::OnceCell;

use crate::call::Invocation;
use crate::engine::EngineInner;
use crate::imports::{self, Capability};
use crate::load::{Code, Description, Loading};
use crate::{Component, Engine, Grants, LoadError, LoadObserver};

/// What a person says about a plugin.
#[derive(Debug, Clone)]
pub struct PluginOptions {
    /// The name under which the plugin is known.
    pub name: PluginName,
    /// What its calls may reach.
    pub grants: Grants,
    /// What each of its calls may use.
    pub limits: Limits,
}

/// What is known of a plugin's component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginInfo {
    /// Name and digest.
    pub identity: PluginIdentity,
    /// Size of the component in bytes.
    pub component_bytes: u64,
    /// The imports as written in the component.
    pub imports: Vec<String>,
    /// What those imports let it do, each once, in order of weight.
    pub capabilities: Vec<Capability>,
}

/// A plugin. A component that is in the cache is neither read as code nor instantiated before its first call.
pub struct Plugin {
    engine: Arc<EngineInner>,
    component: Component,
    digest: [u8; 32],
    info: PluginInfo,
    definitions: Arc<[Arc<ToolDefinition>]>,
    options: PluginOptions,
    code: OnceCell<Code>,
}

impl PluginInfo {
    fn new(name: &PluginName, digest: &[u8; 32], description: Description) -> Self {
        Self {
            identity: PluginIdentity { name: name.clone(), digest: digest_text(digest) },
            component_bytes: description.component_bytes,
            capabilities: capabilities(&description.imports),
            imports: description.imports,
        }
    }
}

impl Engine {
    /// Loads a component as a plugin: reads it, and, unless the cache knows it, screens it, compiles it and asks it for
    /// its tools.
    ///
    /// # Errors
    /// [`LoadError`] says why the component is refused, in one line, for the person who loads it.
    pub async fn load(
        &self,
        component: &Component,
        options: PluginOptions,
        observer: &dyn LoadObserver,
    ) -> Result<Plugin, LoadError> {
        self.check_mounts(&options.grants)?;
        let loading =
            Loading::start(&self.inner, component, &options.limits, &options.grants, observer).await?;
        let (description, code) = loading.describe().await?;
        let definitions: Arc<[_]> =
            check_declarations(&description.declarations)?.into_iter().map(Arc::new).collect();
        Ok(Plugin {
            engine: Arc::clone(&self.inner),
            component: component.clone(),
            digest: loading.digest,
            info: PluginInfo::new(&options.name, &loading.digest, description),
            definitions,
            options,
            code: OnceCell::new_with(code),
        })
    }

    /// Asks a component for its declarations and judges none of them: for telling its author everything that is wrong.
    ///
    /// # Errors
    /// Whatever [`Engine::load`] refuses a component for before it looks at declarations.
    pub async fn examine(
        &self,
        component: &Component,
        name: &PluginName,
        observer: &dyn LoadObserver,
    ) -> Result<(PluginInfo, Vec<Declaration>), LoadError> {
        let loading =
            Loading::start(&self.inner, component, &Limits::default(), &Grants::default(), observer).await?;
        let (mut description, _) = loading.describe().await?;
        let declarations = std::mem::take(&mut description.declarations);
        Ok((PluginInfo::new(name, &loading.digest, description), declarations))
    }

    /// The cache holds the key that its entries are authenticated with: whoever can read and write it can run native
    /// code, so no grant may reach it.
    fn check_mounts(&self, grants: &Grants) -> Result<(), LoadError> {
        let Some(cache) = self.cache_directory() else { return Ok(()) };
        let overlaps = |root: &Path| root.starts_with(cache) || cache.starts_with(root);
        match grants.mounts.iter().find(|mount| overlaps(mount.store.root_ambient())) {
            None => Ok(()),
            Some(mount) => {
                Err(LoadError::MountExposesCache { mount: mount.name.to_string(), cache: cache.to_owned() })
            }
        }
    }
}

impl Plugin {
    /// What is known of the component.
    #[must_use]
    pub fn info(&self) -> &PluginInfo {
        &self.info
    }

    /// What the plugin was given.
    #[must_use]
    pub fn grants(&self) -> &Grants {
        &self.options.grants
    }

    async fn code(&self) -> Result<&Code, ToolError> {
        self.code
            .get_or_try_init(|| self.load_code())
            .await
            .map_err(|error| ToolError::new(ErrorType::PluginUnavailable).with_detail(error.to_string()))
    }

    async fn load_code(&self) -> Result<Code, LoadError> {
        let loading =
            Loading::start(&self.engine, &self.component, &self.options.limits, &self.options.grants, &())
                .await?;
        if loading.digest != self.digest {
            return Err(LoadError::Changed);
        }
        loading.code().await
    }
}

#[async_trait]
impl ToolSource for Plugin {
    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall, context: &CallContext) -> Completion {
        // Code that is not there yet may have to be compiled; a caller who gives up does not wait for that.
        let code = tokio::select! {
            biased;
            () = context.given_up() => Err(Outcome::Cancelled),
            code = self.code() => code.map_err(Outcome::Error),
        };
        let mut completion = match code {
            Ok(code) => self.run(code, &call, context).await,
            Err(outcome) => ended(outcome, context),
        };
        completion.record.plugin = Some(self.info.identity.clone());
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}

impl Plugin {
    async fn run(&self, code: &Code, call: &ToolCall, context: &CallContext) -> Completion {
        let invocation = Invocation {
            engine: &self.engine,
            grants: &self.options.grants,
            limits: &self.options.limits,
            context,
        };
        let mut completion = invocation.call_tool(code, call.tool.name.as_str(), &call.arguments).await;
        // The schema of a typed result is derived from the type that lifting has followed: it cannot be broken.
        if matches!(code, Code::Declared(_))
            && let Some(error) = broken_schema(&call.tool, &completion.outcome)
        {
            completion.outcome = Outcome::Error(error);
            completion.record.set_outcome(&completion.outcome);
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

/// A call that ended without a guest.
pub(crate) fn ended(outcome: Outcome, context: &CallContext) -> Completion {
    let mut record = CallRecord::default();
    record.attempts = 1;
    record.call_id.clone_from(&context.call_id);
    record.session.clone_from(&context.session);
    record.set_outcome(&outcome);
    Completion { outcome, record }
}

fn capabilities(imports: &[String]) -> Vec<Capability> {
    let mut capabilities: Vec<_> =
        imports.iter().filter_map(|name| imports::look_up(name)).map(|(capability, _)| capability).collect();
    capabilities.sort_unstable();
    capabilities.dedup();
    capabilities
}

fn digest_text(digest: &[u8; 32]) -> String {
    use std::fmt::Write;
    let mut text = String::from("sha256:");
    for byte in digest {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
