//! Interfaces of WASI under names of their own while a component is made.
//!
//! componentize-qjs runs the engine once, with a WASI that has no `wasi:http`. What it does not
//! have it replaces by stubs, and a stub cannot refer to a resource of an interface that it has, as
//! `wasi:http` does. Under another name, all of them are stubs. Their version differs from that of
//! the engine's own imports, because a component cannot import a name twice; hosts accept any.

use wasmparser::{Parser, Payload};

use crate::BuildError;

const NAME: &str = "wasi:";
/// Name during the build. It has the same length, so that it can be replaced in place.
const NAME_IN_BUILD: &str = "host:";
const VERSION: &str = "@0.2.12";
const VERSION_IN_BUILD: &str = "@0.2.11";

/// Returns a WIT package of WASI under its name during the build.
pub(super) fn build_names(package: &str) -> String {
    package.replace(NAME, NAME_IN_BUILD).replace(VERSION, VERSION_IN_BUILD)
}

/// Returns whether a module has a name of the build.
pub(super) fn is_build_name(module: &str) -> bool {
    module.starts_with(NAME_IN_BUILD)
}

/// Gives the imports of a component their names in WASI.
pub(super) fn restore_names(mut component: Vec<u8>) -> Result<Vec<u8>, BuildError> {
    for at in renamed_imports(&component)? {
        if let Some(name) = component.get_mut(at..at + NAME.len()) {
            name.copy_from_slice(NAME.as_bytes());
        }
    }
    Ok(component)
}

/// Returns the positions of the names of the build among the imports.
fn renamed_imports(component: &[u8]) -> Result<Vec<usize>, BuildError> {
    let failed = |error: wasmparser::BinaryReaderError| {
        BuildError::Component(format!("the component of componentize-qjs: {error}"))
    };
    let (mut positions, mut depth) = (Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(failed)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 0 => {
                for import in section.into_iter_with_offsets() {
                    let (offset, import) = import.map_err(failed)?;
                    let name = import.name.name.as_bytes();
                    let rest = component.get(offset..).unwrap_or_default();
                    if is_build_name(import.name.name) {
                        let at = rest.windows(name.len()).position(|part| part == name);
                        positions.extend(at.map(|at| offset + at));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(positions)
}
