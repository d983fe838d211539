//! Structural screen: the checks that untrusted component bytes must pass before any compiler sees
//! them.
//!
//! A compiler has no limits of its own: 3 KB of nested instantiations make it use gigabytes. The
//! screen checks only the structure, in this order, and each step protects the next one:
//!
//! 1. **Header.** Bytes that are not a component are rejected, and the error names what they are.
//!    Costs nothing.
//! 2. **Counting.** One pass without recursion over sections, types and operators. Quantities that
//!    multiply (instances, memories, tables, the size of types) are counted *expanded*: once per
//!    instantiation, by saturating arithmetic on a cost that is stored per component and per type.
//!    Every count is checked before the next byte is read.
//! 3. **Validation** by `wasmparser` with exactly the proposals that the engine enables. It comes
//!    last because the validator is not safe on hostile bytes: nested type declarations overflow
//!    its stack (15 KB abort the process), long chains of instance types trigger an assertion in
//!    it, and 477 bytes of instance types that double at each step cost it 15 seconds and 4 GB.
//!
//! The compile time of a component that passes is at most proportional to its size, with one known
//! exception: a function body may still be hard for the register allocator. That is left to the CPU
//! limit of the compile child. The screen never reads custom sections, never changes bytes, and
//! does not check whether imports can be satisfied.
//!
//! Components that import, export or pass on components and core modules *as values* are rejected:
//! what they instantiate is unknown until they are linked, no toolchain emits them for plugins, and
//! without them counting stays exact.

mod body;
mod cost;
mod error;
mod header;
mod limits;
mod module;
mod tally;
#[cfg(test)]
mod tests;
mod types;
mod walk;

pub use error::{FileKind, Quantity, ScreenError};
pub use limits::ScreenLimits;

use wasmparser::component_types::{ComponentAnyTypeId, ComponentEntityType};
use wasmparser::types::Types;
use wasmparser::{Validator, WasmFeatures};

/// Counts of a component that has passed the screen, for reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub(crate) struct ScreenReport {
    /// Names of the component's imports as written, such as `wasi:io/streams@0.2.6`, in order,
    /// without those that are only types.
    pub imports: Vec<String>,
    /// Names of the component's exports as written, in order.
    pub exports: Vec<String>,
    /// Number of functions with a body, in all core modules of the file.
    pub functions: u64,
    /// Number of core modules in the file.
    pub modules: u64,
    /// Number of core and component instances that one instantiation creates.
    pub instances: u64,
    /// Number of linear memories that one instantiation creates.
    pub memories: u64,
    /// Bytes of linear memory that one instantiation starts with.
    pub memory_bytes: u64,
    /// Number of tables that one instantiation creates.
    pub tables: u64,
    /// Total size of function bodies, in bytes.
    pub code_bytes: u64,
    /// Number of definitions after expansion, see [`ScreenLimits::definitions_max`].
    pub definitions: u64,
}

/// Checks whether `bytes` are a component that may be compiled.
///
/// Takes time proportional to the length of `bytes` (about 15 ms per MB) and additional memory
/// bounded by `limits`.
///
/// # Errors
/// Returns the first reason to reject the bytes. Its message is one line, safe to print, and
/// contains nothing about the host.
pub(crate) fn screen(bytes: &[u8], limits: &ScreenLimits) -> Result<ScreenReport, ScreenError> {
    header::check(bytes, limits.component_bytes_max)?;
    let mut screened = walk::walk(bytes, limits)?;
    let types = validate(bytes, limits.features)?;
    screened.imports.retain(|name| requests_capability(&types, name));
    Ok(screened)
}

/// Returns true if an import needs anything from the host. Types need nothing, wherever they are
/// defined: toolchains import the interface, or the type, that a function of the component only
/// mentions. A resource that the import itself defines does.
fn requests_capability(types: &Types, import: &str) -> bool {
    match types.component_item_for_import(import).map(|item| item.ty) {
        Some(ComponentEntityType::Instance(id)) => {
            types[id].exports.values().any(|item| !is_known_type(&item.ty))
        }
        Some(item) => !is_known_type(&item),
        None => true,
    }
}

fn is_known_type(item: &ComponentEntityType) -> bool {
    match item {
        // A mentioned resource refers to another one; a newly defined one refers to itself.
        ComponentEntityType::Type {
            referenced: referenced @ ComponentAnyTypeId::Resource(_),
            created,
        } => referenced != created,
        ComponentEntityType::Type { .. } => true,
        _ => false,
    }
}

/// Runs the validator over bytes that were counted.
///
/// The validator contains assertions that hostile bytes have triggered before; the counts avoid the
/// known ones. Catching an unknown one keeps the host alive. Nothing is shared with the closure, so
/// no state can be left inconsistent.
fn validate(bytes: &[u8], features: WasmFeatures) -> Result<Types, ScreenError> {
    match std::panic::catch_unwind(|| Validator::new_with_features(features).validate_all(bytes)) {
        Ok(Ok(types)) => Ok(types),
        Ok(Err(error)) => Err(ScreenError::from(error)),
        Err(_panic) => Err(ScreenError::ValidatorFailed),
    }
}
