//! Choice of the functions that a model sees, and whether it may or must call them (`CHOICE-1` to
//! `CHOICE-18`).
//!
//! A [`ChoiceBehavior`] returns a [`ChoiceConfiguration`] before every request of a run. It is
//! built in code or read from JSON or YAML, by itself or in a prompt file ([`PromptSettings`]), or
//! a program implements it ([`FunctionChoice`]). It only decides: the loop advertises, calls and
//! rejects.

mod custom;
mod depth;
mod error;
mod name;
mod prompt;
mod prompt_file;
mod read;
mod registry;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use custom::SharedChoice;

pub use custom::FunctionChoice;
pub use depth::{depth, nested};
pub use error::{ChoiceError, InvalidChoice};
pub use name::FunctionName;
pub use prompt::{PromptSettings, ServiceSettings};
pub use prompt_file::{InvalidPrompt, PromptFile, PromptTemplate};
pub use registry::{FunctionRegistry, RegisteredFunction};

use crate::{ChatOptions, LoopSettings, Message, ToolMode};

/// Number of requests of a run in which calls are invoked automatically (`CHOICE-13`). A model that
/// still calls after that many does not stop by itself.
pub const AUTO_INVOKED_REQUESTS_MAX: usize = 128;
/// Nesting depth of auto-invoked calls from which nothing is invoked automatically (`CHOICE-13`).
pub const AUTO_INVOKED_NESTING_MAX: usize = 128;

/// Choice of the functions that a model sees, and whether it may or must call them: one of three
/// built-in behaviors, or a [custom](Self::custom) one. A behavior that was parsed is cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceBehavior {
    kind: ChoiceKind,
    functions: Option<Vec<FunctionName>>,
    instances: Option<Vec<RegisteredFunction>>,
    auto_invoke: bool,
    options: ChoiceOptions,
    custom: Option<SharedChoice>,
}

/// Kind of a behavior (`CHOICE-1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChoiceKind {
    /// The model decides.
    Auto,
    /// The model must call a function on the first request (`CHOICE-6`).
    Required,
    /// Functions are advertised and must not be called: a dry run.
    None,
}

/// Options for calls (`CHOICE-7`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChoiceOptions {
    /// True if the host runs the calls of one reply concurrently.
    pub allow_concurrent_invocation: bool,
    /// Permission for the model to return several calls in one reply; `None` is the provider's
    /// default.
    pub allow_parallel_calls: Option<bool>,
    /// True if the provider should enforce schemas.
    pub allow_strict_schema_adherence: bool,
}

/// Input of [`ChoiceBehavior::configure`] (`CHOICE-9`).
#[derive(Clone, Copy, Default)]
pub struct ChoiceContext<'a> {
    /// Functions of the host, if any can be called.
    pub registry: Option<&'a FunctionRegistry>,
    /// Messages for the model.
    pub history: &'a [Arc<Message>],
    /// Index of the request within the run, from 0.
    pub request_index: usize,
    /// Number of auto-invoked calls that the run is nested in: [`depth()`].
    pub depth: usize,
}

/// Result of [`ChoiceBehavior::configure`] (`CHOICE-9`).
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceConfiguration {
    /// Restriction on calling functions.
    pub choice: ChoiceKind,
    /// Functions to advertise, in this order; `None` if there are none, never an empty list.
    pub functions: Option<Vec<RegisteredFunction>>,
    /// True if calls are invoked; otherwise they are returned to the caller (`CHOICE-15`).
    pub auto_invoke: bool,
    /// Options for calls.
    pub options: ChoiceOptions,
}

impl ChoiceBehavior {
    fn new(kind: ChoiceKind) -> Self {
        Self {
            kind,
            functions: None,
            instances: None,
            auto_invoke: true,
            options: ChoiceOptions::default(),
            custom: None,
        }
    }

    /// Creates a behavior in which the model decides, and every function is advertised.
    #[must_use]
    pub fn auto() -> Self {
        Self::new(ChoiceKind::Auto)
    }

    /// Creates a behavior in which the model must call a function, and every function is
    /// advertised.
    #[must_use]
    pub fn required() -> Self {
        Self::new(ChoiceKind::Required)
    }

    /// Creates a behavior in which every function is advertised and none may be called.
    #[must_use]
    pub fn none() -> Self {
        Self::new(ChoiceKind::None)
    }

    /// Creates a behavior that a program implements (`CHOICE-17`). Functions, instances and options
    /// have no effect on it, because each of its configurations has its own;
    /// [`auto_invoke`](Self::auto_invoke) does.
    #[must_use]
    pub fn custom(choice: Arc<dyn FunctionChoice>) -> Self {
        Self { custom: Some(SharedChoice(choice)), ..Self::new(ChoiceKind::Auto) }
    }

    /// Advertises exactly these functions, in this order; none for an empty list (`CHOICE-2`).
    #[must_use]
    pub fn functions(mut self, names: impl IntoIterator<Item = impl Into<FunctionName>>) -> Self {
        self.functions = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Supplies functions that need not be registered, for calls that the caller executes
    /// (`CHOICE-5`). Exactly these are advertised, unless [`functions`](Self::functions) is set.
    #[must_use]
    pub fn instances(mut self, functions: impl IntoIterator<Item = RegisteredFunction>) -> Self {
        self.instances = Some(functions.into_iter().collect());
        self
    }

    /// Sets whether calls are invoked or returned to the caller. On by default; always off for
    /// [`none`](Self::none) (`CHOICE-4`).
    #[must_use]
    pub fn auto_invoke(mut self, auto_invoke: bool) -> Self {
        self.auto_invoke = auto_invoke;
        self
    }

    /// Sets the options for calls.
    #[must_use]
    pub fn options(mut self, options: ChoiceOptions) -> Self {
        self.options = options;
        self
    }

    /// Applies the options of the behavior to a run (`CHOICE-8`). A custom behavior has none before
    /// its first request.
    pub(crate) fn apply(&self, settings: &mut LoopSettings, options: &mut ChatOptions) {
        if self.custom.is_none() {
            self.options.apply(settings, options);
        }
    }

    /// Returns whether the behavior is a [custom](Self::custom) one.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.custom.is_some()
    }

    /// Returns the kind of the behavior. A custom behavior counts as [`ChoiceKind::Auto`]; the kind
    /// of a request is that of its configuration.
    #[must_use]
    pub fn kind(&self) -> ChoiceKind {
        self.kind
    }

    /// Returns the configuration for one request.
    ///
    /// # Errors
    /// [`ChoiceError`] if a listed function is missing, or if calls should be invoked and there is
    /// no registry (`CHOICE-5`); and the errors of a custom behavior.
    pub fn configure(
        &self,
        context: &ChoiceContext<'_>,
    ) -> Result<ChoiceConfiguration, ChoiceError> {
        let is_within_limits = context.request_index < AUTO_INVOKED_REQUESTS_MAX
            && context.depth < AUTO_INVOKED_NESTING_MAX;
        if let Some(SharedChoice(custom)) = &self.custom {
            let mut chosen = self.checked(custom.configure(context)?, context.registry)?;
            chosen.auto_invoke &= is_within_limits;
            return Ok(chosen);
        }
        let is_called_already = self.kind == ChoiceKind::Required && context.request_index > 0;
        let functions =
            if is_called_already { Vec::new() } else { self.advertised(context.registry)? };
        Ok(ChoiceConfiguration {
            choice: self.kind,
            functions: Some(functions).filter(|functions| !functions.is_empty()),
            auto_invoke: self.auto_invokes() && is_within_limits,
            options: self.options,
        })
    }

    /// Applies to the configuration of a custom behavior what always applies (`CHOICE-17`).
    fn checked(
        &self,
        mut chosen: ChoiceConfiguration,
        registry: Option<&FunctionRegistry>,
    ) -> Result<ChoiceConfiguration, ChoiceError> {
        chosen.auto_invoke &= self.auto_invoke && chosen.choice != ChoiceKind::None;
        let functions = unique(chosen.functions.unwrap_or_default());
        if chosen.auto_invoke {
            let registry = registry.ok_or(ChoiceError::NoRegistry)?;
            let is_missing =
                |function: &&RegisteredFunction| registry.find(&function.function_name()).is_none();
            if let Some(function) = functions.iter().find(is_missing) {
                return Err(ChoiceError::NotAvailable { name: function.to_string() });
            }
        }
        chosen.functions = Some(functions).filter(|functions| !functions.is_empty());
        Ok(chosen)
    }

    fn auto_invokes(&self) -> bool {
        self.auto_invoke && self.kind != ChoiceKind::None
    }

    fn advertised(
        &self,
        registry: Option<&FunctionRegistry>,
    ) -> Result<Vec<RegisteredFunction>, ChoiceError> {
        if self.auto_invokes() && registry.is_none() {
            return Err(ChoiceError::NoRegistry);
        }
        let find = |name: &FunctionName| self.find(name, registry).cloned();
        let listed: Vec<_> = match (&self.functions, &self.instances) {
            (Some(names), _) => names.iter().map(find).collect::<Result<_, _>>()?,
            (None, Some(instances)) => {
                let names = instances.iter().map(RegisteredFunction::function_name);
                names.map(|name| find(&name)).collect::<Result<_, _>>()?
            }
            (None, None) => {
                return Ok(registry
                    .map(|registry| registry.functions().to_vec())
                    .unwrap_or_default());
            }
        };
        Ok(unique(listed))
    }

    fn find<'a>(
        &'a self,
        name: &FunctionName,
        registry: Option<&'a FunctionRegistry>,
    ) -> Result<&'a RegisteredFunction, ChoiceError> {
        if let Some(function) = registry.and_then(|registry| registry.find(name)) {
            return Ok(function);
        }
        if self.auto_invokes() {
            return Err(ChoiceError::NotAvailable { name: name.to_string() });
        }
        let instances = self.instances.as_deref().unwrap_or_default();
        registry::find(instances, name)
            .ok_or_else(|| ChoiceError::NotFound { name: name.to_string() })
    }
}

/// Removes repetitions: providers reject two functions of one name.
fn unique(functions: Vec<RegisteredFunction>) -> Vec<RegisteredFunction> {
    let mut advertised = Vec::with_capacity(functions.len());
    for function in functions {
        if !advertised.contains(&function) {
            advertised.push(function);
        }
    }
    advertised
}

impl ChoiceConfiguration {
    /// Returns whether a tool was advertised, so that the model may call it (`CHOICE-14`).
    #[must_use]
    pub fn is_advertised(&self, tool: &str) -> bool {
        self.functions.iter().flatten().any(|function| function.definition().name.as_str() == tool)
    }
}

impl ChoiceOptions {
    /// Returns the options that a run has without a choice.
    pub(crate) fn of(settings: &LoopSettings, options: &ChatOptions) -> Self {
        Self {
            allow_concurrent_invocation: settings.allow_concurrent_invocation,
            allow_parallel_calls: options.allow_parallel_calls,
            allow_strict_schema_adherence: options.strict_schemas,
        }
    }

    /// Applies the options to a run that has the options `base` without a choice: those that an
    /// earlier request of the run set no longer count.
    pub(crate) fn apply_to(
        &self,
        base: Self,
        settings: &mut LoopSettings,
        options: &mut ChatOptions,
    ) {
        options.allow_parallel_calls = base.allow_parallel_calls;
        options.strict_schemas = base.allow_strict_schema_adherence;
        self.apply(settings, options);
    }

    /// Applies the options to a run (`CHOICE-8`).
    pub fn apply(&self, settings: &mut LoopSettings, options: &mut ChatOptions) {
        settings.allow_concurrent_invocation = self.allow_concurrent_invocation;
        options.allow_parallel_calls = self.allow_parallel_calls.or(options.allow_parallel_calls);
        options.strict_schemas |= self.allow_strict_schema_adherence;
    }
}

impl ChoiceKind {
    /// Returns the name used in JSON and YAML.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Required => "required",
            Self::None => "none",
        }
    }
}

impl From<ChoiceKind> for ToolMode {
    fn from(kind: ChoiceKind) -> Self {
        match kind {
            ChoiceKind::Auto => Self::Auto,
            ChoiceKind::Required => Self::Required(None),
            ChoiceKind::None => Self::None,
        }
    }
}
