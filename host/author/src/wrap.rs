//! Commands as plugins: a program for WASI becomes a component, with a manifest that declares what
//! it does as a tool.

use serde::Serialize;
use serde_json::Value;
use wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME;
use wasmparser::{BinaryReaderError, Encoding, Parser, Payload};

use crate::component;

/// First bytes of every module and component.
const MAGIC: &[u8] = b"\0asm";
/// Entry point of a command in a core module.
const START: &str = "_start";
/// Entry point of a command in a component, up to its version.
const RUN: &str = "wasi:cli/run@0.2.";

/// Error returned when a program cannot be a plugin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WrapError {
    /// The bytes are not WebAssembly.
    #[error("it is not a WebAssembly file: {0}")]
    NotWasm(String),
    /// The module or component has no entry point.
    #[error(
        "it has no entry point: expected the export `{expected}`; build a program with a `main` \
         function for WASI, not a library"
    )]
    NoEntryPoint {
        /// Export that was expected.
        expected: &'static str,
    },
    /// The module imports something other than WASI.
    #[error(
        "it imports `{module}.{name}`, which only the program's usual host offers; expected imports \
         from `{WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME}` only"
    )]
    UnknownImport {
        /// Module of the import.
        module: String,
        /// Name of the import.
        name: String,
    },
    /// The module cannot be made into a component.
    #[error("the module does not become a component: {0}")]
    Component(String),
}

/// Tool of a command, for a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandTool {
    /// Name of the tool.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments, as a string.
    pub schema: String,
    /// Templates of the command line after the name of the program.
    pub arguments: Option<Vec<String>>,
    /// Template of standard input.
    pub stdin: Option<String>,
    /// True if the command prints JSON.
    pub prints_json: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct ToolTable<'a> {
    description: &'a str,
    schema: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdin: Option<&'a str>,
    output: &'a str,
}

impl CommandTool {
    /// Returns a manifest that declares the tool.
    #[must_use]
    pub fn manifest(&self) -> String {
        let table = ToolTable {
            description: &self.description,
            schema: &self.schema,
            arguments: self.arguments.as_deref(),
            stdin: self.stdin.as_deref(),
            output: if self.prints_json { "json" } else { "text" },
        };
        let table = toml::to_string(&table).unwrap_or_default();
        // A JSON string is a quoted key of TOML.
        format!("[tools.{}]\n{table}", Value::from(self.name.as_str()))
    }
}

/// Returns the component of a command: `program` itself, or a component around a core module for
/// the first preview of WASI.
///
/// # Errors
/// [`WrapError`]
pub fn wrap(program: &[u8]) -> Result<Vec<u8>, WrapError> {
    if !program.starts_with(MAGIC) {
        return Err(WrapError::NotWasm("expected it to begin with the bytes `\\0asm`".to_owned()));
    }
    match Parser::new(0).parse_all(program).next() {
        Some(Ok(Payload::Version { encoding: Encoding::Component, .. })) => {
            if component_exports(program)?.iter().any(|name| name.starts_with(RUN)) {
                return Ok(program.to_vec());
            }
            Err(WrapError::NoEntryPoint { expected: "wasi:cli/run" })
        }
        Some(Ok(Payload::Version { encoding: Encoding::Module, .. })) => {
            check_module(program)?;
            component::from_command(program).map_err(WrapError::Component)
        }
        Some(Err(error)) => Err(not_wasm(error)),
        _ => Err(WrapError::NotWasm("it has no header".to_owned())),
    }
}

/// Checks the entry point and the imports of a core module.
fn check_module(module: &[u8]) -> Result<(), WrapError> {
    let mut has_start = false;
    for payload in Parser::new(0).parse_all(module) {
        match payload.map_err(not_wasm)? {
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import.map_err(not_wasm)?;
                    if import.module != WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME {
                        let (module, name) = (import.module.to_owned(), import.name.to_owned());
                        return Err(WrapError::UnknownImport { module, name });
                    }
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    has_start |= export.map_err(not_wasm)?.name == START;
                }
            }
            _ => {}
        }
    }
    if has_start { Ok(()) } else { Err(WrapError::NoEntryPoint { expected: START }) }
}

/// Returns the names that a component exports, without those of nested ones.
fn component_exports(component: &[u8]) -> Result<Vec<String>, WrapError> {
    let (mut names, mut depth) = (Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(not_wasm)? {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentExportSection(section) if depth == 0 => {
                for export in section {
                    names.push(export.map_err(not_wasm)?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(names)
}

fn not_wasm(error: BinaryReaderError) -> WrapError {
    WrapError::NotWasm(error.to_string())
}
