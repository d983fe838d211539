//! Registry of the host's functions, by plugin (`CHOICE-2`, `CHOICE-3`).

use std::fmt;
use std::sync::Arc;

use cofferdam_tool::{ToolDefinition, Toolset};

use super::FunctionName;

/// A function and its plugin, as spelled in the registry.
#[derive(Debug, Clone)]
pub struct RegisteredFunction {
    plugin: Option<Arc<str>>,
    definition: Arc<ToolDefinition>,
}

/// Functions of a host, in order of registration.
#[derive(Debug, Clone, Default)]
pub struct FunctionRegistry {
    functions: Vec<RegisteredFunction>,
}

impl RegisteredFunction {
    /// Creates a function of a plugin or, with `None` or an empty name, without one.
    #[must_use]
    pub fn new(plugin: Option<&str>, definition: Arc<ToolDefinition>) -> Self {
        Self { plugin: plugin.filter(|plugin| !plugin.is_empty()).map(Arc::from), definition }
    }

    /// Returns the name of the plugin.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Returns the definition to advertise.
    #[must_use]
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    /// Returns the name under which the function can be listed.
    #[must_use]
    pub fn function_name(&self) -> FunctionName {
        self.to_string().into()
    }

    /// Returns whether a name refers to this function; `is_same` compares parts.
    fn is_called(&self, name: &FunctionName, is_same: fn(&str, &str) -> bool) -> bool {
        is_same(self.plugin().unwrap_or_default(), name.plugin().unwrap_or_default())
            && is_same(self.definition.name.as_str(), name.function())
    }
}

/// Writes `plugin.function`.
impl fmt::Display for RegisteredFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.plugin {
            Some(plugin) => write!(f, "{plugin}.{}", self.definition.name),
            None => f.write_str(self.definition.name.as_str()),
        }
    }
}

/// Compares by identity: equal functions share one definition and plugin.
impl PartialEq for RegisteredFunction {
    fn eq(&self, other: &Self) -> bool {
        self.plugin == other.plugin && Arc::ptr_eq(&self.definition, &other.definition)
    }
}

impl FunctionRegistry {
    /// Creates an empty registry. It advertises nothing but still counts as a registry
    /// (`CHOICE-5`).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry of a toolset's tools. The plugin of a tool is the name of its source.
    #[must_use]
    pub fn of(toolset: &Toolset) -> Self {
        let mut functions: Vec<RegisteredFunction> =
            Vec::with_capacity(toolset.definitions().len());
        for definition in toolset.definitions() {
            let source = toolset.source(definition.name.as_str()).map(|source| source.name());
            let last = functions.last().filter(|last| last.plugin() == source);
            let plugin = match last {
                Some(last) => last.plugin.clone(),
                None => source.filter(|name| !name.is_empty()).map(Arc::from),
            };
            functions.push(RegisteredFunction { plugin, definition: Arc::clone(definition) });
        }
        Self { functions }
    }

    /// Registers a function after those already registered.
    pub fn add(&mut self, function: RegisteredFunction) {
        self.functions.push(function);
    }

    /// Returns all functions.
    #[must_use]
    pub fn functions(&self) -> &[RegisteredFunction] {
        &self.functions
    }

    /// Returns the function with a name, ignoring case (`CHOICE-3`).
    #[must_use]
    pub fn find(&self, name: &FunctionName) -> Option<&RegisteredFunction> {
        find(&self.functions, name)
    }
}

/// Returns the function with a name: an exact match, or else the first that differs only in case.
pub(super) fn find<'f>(
    functions: &'f [RegisteredFunction],
    name: &FunctionName,
) -> Option<&'f RegisteredFunction> {
    let find = |is_same| functions.iter().find(|function| function.is_called(name, is_same));
    find(|one, other| one == other).or_else(|| find(is_same_but_for_case))
}

fn is_same_but_for_case(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
        || !(one.is_ascii() && other.is_ascii()) && one.to_lowercase() == other.to_lowercase()
}
