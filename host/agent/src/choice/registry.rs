//! The functions of a host, by plugin (`CHOICE-2`, `CHOICE-3`).

use std::fmt;
use std::sync::Arc;

use cofferdam_tool::{ToolDefinition, Toolset};

use super::FunctionName;

/// A function and the plugin that it is of, in the spelling of the registry.
#[derive(Debug, Clone)]
pub struct RegisteredFunction {
    plugin: Option<Arc<str>>,
    definition: Arc<ToolDefinition>,
}

/// The functions of a host in the order in which they were registered.
#[derive(Debug, Clone, Default)]
pub struct FunctionRegistry {
    functions: Vec<RegisteredFunction>,
}

impl RegisteredFunction {
    /// A function of a plugin, or without one. An empty name is no plugin.
    #[must_use]
    pub fn new(plugin: Option<&str>, definition: Arc<ToolDefinition>) -> Self {
        Self { plugin: plugin.filter(|plugin| !plugin.is_empty()).map(Arc::from), definition }
    }

    /// The plugin.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// The tool as it is advertised.
    #[must_use]
    pub fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    /// The name that it can be listed by.
    #[must_use]
    pub fn function_name(&self) -> FunctionName {
        self.to_string().into()
    }

    /// Whether a name is this function's; `is_same` compares parts.
    fn is_called(&self, name: &FunctionName, is_same: fn(&str, &str) -> bool) -> bool {
        is_same(self.plugin().unwrap_or_default(), name.plugin().unwrap_or_default())
            && is_same(self.definition.name.as_str(), name.function())
    }
}

/// `plugin.function`.
impl fmt::Display for RegisteredFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.plugin {
            Some(plugin) => write!(f, "{plugin}.{}", self.definition.name),
            None => f.write_str(self.definition.name.as_str()),
        }
    }
}

/// Equal are the same function of the same plugin: one definition, not two that are alike.
impl PartialEq for RegisteredFunction {
    fn eq(&self, other: &Self) -> bool {
        self.plugin == other.plugin && Arc::ptr_eq(&self.definition, &other.definition)
    }
}

impl FunctionRegistry {
    /// A registry without functions. Nothing is advertised from it, and yet it is one (`CHOICE-5`).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tools of a toolset; a tool's plugin is the name of its source.
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

    /// Registers a function after those that are there.
    pub fn add(&mut self, function: RegisteredFunction) {
        self.functions.push(function);
    }

    /// All functions.
    #[must_use]
    pub fn functions(&self) -> &[RegisteredFunction] {
        &self.functions
    }

    /// The function of a name, whatever the case (`CHOICE-3`).
    #[must_use]
    pub fn find(&self, name: &FunctionName) -> Option<&RegisteredFunction> {
        find(&self.functions, name)
    }
}

/// The function of a name: the one that is spelled so, or else the first that differs in case
/// alone.
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
