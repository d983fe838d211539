//! Plain component functions as tools: a component that exports typed functions is a plugin without
//! any Cofferdam code in it.
//!
//! # Policy
//!
//! * **Which functions are tools.** Functions at the root of the component and in the interfaces
//!   that it exports. Exports of `wasi:*` and `cofferdam:*` packages are protocols and not tools. A
//!   component that exports `cofferdam:plugin/tools` declares its tools, and its other exports are
//!   not tools.
//! * **Names.** Kebab case becomes snake case: `get-time` is the tool `get_time`. A function of an
//!   interface keeps its own name if no other function of the component has that name, and becomes
//!   `<interface>_<function>` otherwise; a function at the root is never renamed. If two names are
//!   still equal, the plugin is rejected (`ARG-43`).
//! * **Types.** Every value type of WIT has one JSON form, see `schema.rs`; decoding by the schema
//!   results in a value that can be lowered, and lifting a lowered value results in the same JSON
//!   again. Resources, streams, futures and the like have no JSON form: a plugin with a function
//!   that uses one is rejected, because a silently missing tool is worse.
//! * **Results.** A missing result is null. A `result<T, E>` at the top is the outcome: the value
//!   of `T`, or a failure that the tool reports itself, see `lift.rs`.
//! * **Descriptions** come from the `package-docs` section (`docs.rs`) and from a file next to the
//!   component ([`manifest`](crate::manifest)). Neither can change names or types.
//!
//! Describing such a component does not instantiate it, and the derived declarations are compiled
//! and cached like those that a plugin declares. Functions are planned once, when their code is
//! linked; a call only looks up the name of the tool.

mod declare;
mod discover;
mod docs;
mod lift;
mod lower;
mod names;
mod schema;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use cofferdam_tool::{Arguments, Outcome, ToolError};
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Instance, InstancePre, Val};

use self::shape::{Field, ValueShape};
use crate::LoadError;
use crate::host_api::CallState;

pub(crate) use self::declare::declarations;
pub use self::discover::UnsupportedFunction;
pub(crate) use self::discover::is_protocol;
pub(crate) use self::lift::{copied_bytes_max, value_bytes};

/// Component whose functions are tools, ready to be instantiated.
pub(crate) struct TypedCode {
    instance_pre: InstancePre<CallState>,
    functions: Vec<Function>,
    by_tool: HashMap<String, usize>,
}

/// Function that is a tool, with everything that a call of it needs.
pub(crate) struct Function {
    tool: String,
    /// Name of the export that contains the function, as written; `None` at the root.
    interface: Option<String>,
    /// Name of the function as written.
    name: String,
    export: ComponentExportIndex,
    parameters: Vec<Field>,
    result: Option<ValueShape>,
}

impl TypedCode {
    /// Plans all functions of a component.
    ///
    /// # Errors
    /// If the component has no functions that are tools, or one of them cannot be a tool.
    pub(crate) fn new(
        component: &Component,
        instance_pre: InstancePre<CallState>,
    ) -> Result<Self, LoadError> {
        let functions = discover::functions(component)?;
        let by_tool = functions
            .iter()
            .enumerate()
            .map(|(at, function)| (function.tool.clone(), at))
            .collect();
        Ok(Self { instance_pre, functions, by_tool })
    }

    pub(crate) fn instance_pre(&self) -> &InstancePre<CallState> {
        &self.instance_pre
    }

    pub(crate) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Returns the function behind a tool.
    pub(crate) fn function(&self, tool: &str) -> Option<&Function> {
        self.functions.get(*self.by_tool.get(tool)?)
    }
}

impl Function {
    /// Converts decoded arguments to component values.
    pub(crate) fn lower(&self, arguments: &Arguments) -> Result<Vec<Val>, ToolError> {
        lower::parameters(&self.parameters, arguments.value())
    }

    /// Calls the function in a fresh instance.
    pub(crate) async fn call(
        &self,
        store: &mut Store<CallState>,
        instance: &Instance,
        parameters: &[Val],
    ) -> wasmtime::Result<Option<Val>> {
        let function = instance
            .get_func(&mut *store, self.export)
            .ok_or_else(|| wasmtime::Error::msg("the export of the plan is not in the instance"))?;
        // The call replaces the value; the number of results is part of the function's type.
        let mut results = vec![Val::Bool(false); usize::from(self.result.is_some())];
        function.call_async(store, parameters, &mut results).await?;
        Ok(results.pop())
    }

    /// Converts the function's result to the outcome of the call.
    pub(crate) fn outcome(&self, result: Option<Val>, output_bytes_max: u64) -> Outcome {
        lift::outcome(self.result.as_ref(), result, output_bytes_max)
    }
}
