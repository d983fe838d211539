//! Which functions a model is told of, and whether it may or must call them (`CHOICE-1` to
//! `CHOICE-15`).
//!
//! A [`ChoiceBehavior`] is asked before every request of a run and answers with a
//! [`ChoiceConfiguration`]. It is made in code or read from JSON or YAML, by itself or in a prompt
//! file ([`PromptSettings`]). It decides and does nothing: the loop advertises, calls and refuses.

mod depth;
mod error;
mod name;
mod prompt;
mod read;
mod registry;

#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use depth::{depth, nested};
pub use error::{ChoiceError, InvalidChoice};
pub use name::FunctionName;
pub use prompt::{PromptSettings, ServiceSettings};
pub use registry::{FunctionRegistry, RegisteredFunction};

use crate::{ChatOptions, LoopSettings, Message, ToolMode};

/// From this request of a run on nothing is invoked automatically (`CHOICE-13`): a model that still
/// calls by then does not stop by itself.
pub const AUTO_INVOKED_REQUESTS_MAX: usize = 128;
/// In this many auto-invoked calls, one inside the other, nothing more is invoked automatically
/// (`CHOICE-13`).
pub const AUTO_INVOKED_NESTING_MAX: usize = 128;

/// Which functions a model is told of, and whether it may or must call them. Clones are cheap for
/// what is read from text.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceBehavior {
    kind: ChoiceKind,
    functions: Option<Vec<FunctionName>>,
    instances: Option<Vec<RegisteredFunction>>,
    auto_invoke: bool,
    options: ChoiceOptions,
}

/// The three behaviours (`CHOICE-1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChoiceKind {
    /// The model decides.
    Auto,
    /// The model must call, on the first request (`CHOICE-6`).
    Required,
    /// Functions are advertised and must not be called: a dry run.
    None,
}

/// How calls are made (`CHOICE-7`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChoiceOptions {
    /// Whether the host runs several calls of one reply together.
    pub allow_concurrent_invocation: bool,
    /// Whether the model may return several calls in one reply; `None` is the provider's own
    /// default.
    pub allow_parallel_calls: Option<bool>,
    /// Whether the provider is asked to keep to the schema.
    pub allow_strict_schema_adherence: bool,
}

/// What a behaviour is asked with (`CHOICE-9`).
#[derive(Clone, Copy, Default)]
pub struct ChoiceContext<'a> {
    /// The functions of the host, if there are any to be called.
    pub registry: Option<&'a FunctionRegistry>,
    /// What the model is to see.
    pub history: &'a [Arc<Message>],
    /// Which request of the run this is, from 0.
    pub request_index: usize,
    /// In how many auto-invoked calls the run is: [`depth()`].
    pub depth: usize,
}

/// What a behaviour answers (`CHOICE-9`).
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceConfiguration {
    /// Whether the model may, must or must not call.
    pub choice: ChoiceKind,
    /// The functions that are advertised, in this order; `None` if there are none, and never an
    /// empty list.
    pub functions: Option<Vec<RegisteredFunction>>,
    /// Whether calls are made; otherwise they go back to the caller (`CHOICE-15`).
    pub auto_invoke: bool,
    /// How calls are made.
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
        }
    }

    /// The model decides; every function is advertised.
    #[must_use]
    pub fn auto() -> Self {
        Self::new(ChoiceKind::Auto)
    }

    /// The model must call; every function is advertised.
    #[must_use]
    pub fn required() -> Self {
        Self::new(ChoiceKind::Required)
    }

    /// Every function is advertised and none may be called.
    #[must_use]
    pub fn none() -> Self {
        Self::new(ChoiceKind::None)
    }

    /// Advertises exactly these functions, in this order; none if there are none (`CHOICE-2`).
    #[must_use]
    pub fn functions(mut self, names: impl IntoIterator<Item = impl Into<FunctionName>>) -> Self {
        self.functions = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Supplies functions that need not be registered, for calls that the caller makes
    /// (`CHOICE-5`). Unless [`functions`](Self::functions) says otherwise, exactly these are
    /// advertised.
    #[must_use]
    pub fn instances(mut self, functions: impl IntoIterator<Item = RegisteredFunction>) -> Self {
        self.instances = Some(functions.into_iter().collect());
        self
    }

    /// Whether calls are made, or go back to the caller. On by default; never on for
    /// [`none`](Self::none) (`CHOICE-4`).
    #[must_use]
    pub fn auto_invoke(mut self, auto_invoke: bool) -> Self {
        self.auto_invoke = auto_invoke;
        self
    }

    /// How calls are made.
    #[must_use]
    pub fn options(mut self, options: ChoiceOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets what the behaviour says about how calls are made for a run (`CHOICE-8`).
    pub(crate) fn apply(&self, settings: &mut LoopSettings, options: &mut ChatOptions) {
        self.options.apply(settings, options);
    }

    /// Which of the three it is.
    #[must_use]
    pub fn kind(&self) -> ChoiceKind {
        self.kind
    }

    /// What counts for one request.
    ///
    /// # Errors
    /// [`ChoiceError`] if a listed function is not there, or calls are to be made and there is
    /// nothing to call (`CHOICE-5`).
    pub fn configure(
        &self,
        context: &ChoiceContext<'_>,
    ) -> Result<ChoiceConfiguration, ChoiceError> {
        let is_called_already = self.kind == ChoiceKind::Required && context.request_index > 0;
        let functions =
            if is_called_already { Vec::new() } else { self.advertised(context.registry)? };
        let is_within_limits = context.request_index < AUTO_INVOKED_REQUESTS_MAX
            && context.depth < AUTO_INVOKED_NESTING_MAX;
        Ok(ChoiceConfiguration {
            choice: self.kind,
            functions: Some(functions).filter(|functions| !functions.is_empty()),
            auto_invoke: self.auto_invokes() && is_within_limits,
            options: self.options,
        })
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
        let mut advertised = Vec::new();
        let mut add = |function: &RegisteredFunction| {
            // Listed twice is advertised once: providers refuse two functions of one name.
            if !advertised.contains(function) {
                advertised.push(function.clone());
            }
        };
        match (&self.functions, &self.instances) {
            (Some(names), _) => {
                for name in names {
                    add(self.find(name, registry)?);
                }
            }
            (None, Some(instances)) => {
                for instance in instances {
                    add(self.find(&instance.function_name(), registry)?);
                }
            }
            (None, None) => {
                return Ok(registry
                    .map(|registry| registry.functions().to_vec())
                    .unwrap_or_default());
            }
        }
        Ok(advertised)
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

impl ChoiceConfiguration {
    /// Whether the model was told of a tool, and may so have it called (`CHOICE-14`).
    #[must_use]
    pub fn is_advertised(&self, tool: &str) -> bool {
        self.functions.iter().flatten().any(|function| function.definition().name.as_str() == tool)
    }
}

impl ChoiceOptions {
    /// Sets what is said here for a run (`CHOICE-8`).
    pub fn apply(&self, settings: &mut LoopSettings, options: &mut ChatOptions) {
        settings.allow_concurrent_invocation = self.allow_concurrent_invocation;
        options.allow_parallel_calls = self.allow_parallel_calls.or(options.allow_parallel_calls);
        options.strict_schemas |= self.allow_strict_schema_adherence;
    }
}

impl ChoiceKind {
    /// The word for it in text.
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
