//! The structural screen: what untrusted component bytes pass before any compiler sees them.
//!
//! A compiler has no limits of its own: 3 KB of nested instantiations make it take gigabytes. The
//! screen decides from the structure alone, in this order, and each step protects the next one:
//!
//! 1. **Header.** Bytes that are no component are refused with what they are instead. Costs
//!    nothing.
//! 2. **Counting.** One pass without recursion over sections, types and operators. Quantities that
//!    multiply (instances, memories, tables, the size of types) are counted *expanded*: once per
//!    instantiation, by saturating arithmetic on a cost that is kept per component and per type.
//!    Every count is checked before the next byte is read.
//! 3. **Validation** by `wasmparser` with exactly the proposals that the engine enables. It comes
//!    last because the validator is no safe reader of hostile bytes: nested type declarations
//!    overflow its stack (15 KB abort the process), long chains of instance types trip an assertion
//!    in it, and 477 bytes of instance types that double at each step cost it 15 seconds and 4 GB.
//!
//! A component that passes costs a compiler time in proportion to its size at most, with one known
//! exception: a function body may still be hard for the register allocator. That is left to the CPU
//! limit of the compile child. The screen never looks into custom sections, never changes bytes,
//! and does not say whether imports can be satisfied.
//!
//! Components that import, export or pass on components and core modules *as values* are refused:
//! what they instantiate is not known until they are linked, no toolchain emits them for plugins,
//! and counting stays exact.

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

/// Counts of a component that passed, for reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub(crate) struct Screened {
    /// Names of the imports of the component as written, such as `wasi:io/streams@0.2.6`, in order;
    /// without those that are only types.
    pub imports: Vec<String>,
    /// Names of the exports of the component as written, in order.
    pub exports: Vec<String>,
    /// Functions with a body, in all core modules of the file.
    pub functions: u64,
    /// Core modules in the file.
    pub modules: u64,
    /// Core and component instances that one instantiation creates.
    pub instances: u64,
    /// Linear memories that one instantiation creates.
    pub memories: u64,
    /// Bytes of linear memory that one instantiation starts with.
    pub memory_bytes: u64,
    /// Tables that one instantiation creates.
    pub tables: u64,
    /// Bytes of function bodies.
    pub code_bytes: u64,
    /// Definitions after expansion, see [`ScreenLimits::definitions_max`].
    pub definitions: u64,
}

/// Decides whether `bytes` are a component that may be compiled.
///
/// Takes time in proportion to the length of `bytes` (about 15 ms per MB) and, beside them, memory
/// bounded by `limits`.
///
/// # Errors
/// The first reason found to refuse the bytes. Its text is one line, safe to print, and names
/// nothing of the host.
pub(crate) fn screen(bytes: &[u8], limits: &ScreenLimits) -> Result<Screened, ScreenError> {
    header::check(bytes, limits.component_bytes_max)?;
    let mut screened = walk::walk(bytes, limits)?;
    let types = validate(bytes, limits.features)?;
    screened.imports.retain(|name| asks_for_something(&types, name));
    Ok(screened)
}

/// Returns true if an import needs anything from the host. Types need nothing, wherever they are
/// defined: toolchains import the interface, or the type, that a function of the component only
/// mentions. A resource of the import's own does.
fn asks_for_something(types: &Types, import: &str) -> bool {
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
        // A resource that is only mentioned refers to another one; a new one refers to itself.
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
/// The validator holds assertions that hostile bytes have reached before; the counts keep away from
/// the known ones. Catching an unknown one keeps the host alive. Nothing is shared with the
/// closure, so nothing can be left broken.
fn validate(bytes: &[u8], features: WasmFeatures) -> Result<Types, ScreenError> {
    match std::panic::catch_unwind(|| Validator::new_with_features(features).validate_all(bytes)) {
        Ok(Ok(types)) => Ok(types),
        Ok(Err(error)) => Err(ScreenError::from(error)),
        Err(_panic) => Err(ScreenError::ValidatorFailed),
    }
}
