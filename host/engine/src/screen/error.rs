//! Reasons to reject bytes, in one line each.

use std::fmt;

use crate::error::quoted_line;

/// Maximum number of characters of a message that are taken from the validator. It can quote names
/// of the component.
const QUOTED_CHARS_MAX: usize = 200;

/// Reason to reject a component before it is compiled. Each message is one line without control
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScreenError {
    /// There are no bytes.
    #[error("the file is empty")]
    Empty,
    /// The bytes are not WebAssembly.
    #[error("not a WebAssembly file but {kind}")]
    NotWasm {
        /// Kind of the file, judged by its first bytes.
        kind: FileKind,
    },
    /// The file is truncated.
    #[error("the file is cut off: it has {length} bytes and announces at least {announced}")]
    Truncated {
        /// Number of bytes in the file.
        length: u64,
        /// Number of bytes that the headers read so far announce.
        announced: u64,
    },
    /// The bytes are a core module.
    #[error(
        "a core module, not a component; build a plugin for `wasm32-wasip2`, or make one of a command with \
         `cofferdam wrap`"
    )]
    CoreModule,
    /// The header has an unknown version or layer.
    #[error(
        "unknown WebAssembly version {version}, layer {layer}; a component has version 13, layer 1"
    )]
    UnknownVersion {
        /// Version field of the header.
        version: u16,
        /// Layer field of the header: 0 is a core module, 1 a component.
        layer: u16,
    },
    /// A limit was exceeded.
    #[error("the component has {found} or more {quantity}; the limit is {limit}")]
    OverLimit {
        /// Quantity that exceeds its limit.
        quantity: Quantity,
        /// Count at which counting stopped.
        found: u64,
        /// Largest count that passes.
        limit: u64,
    },
    /// A component or core module is used as a value.
    #[error(
        "the component imports, exports or passes on {kind}; link it into one component before \
         loading it"
    )]
    HigherOrder {
        /// Kind of the value: `a component` or `a core module`.
        kind: &'static str,
    },
    /// A core module has or imports a memory that threads could share.
    #[error("the component uses a shared memory; threads are not supported, build it without them")]
    SharedMemory,
    /// The component uses a proposal that is disabled.
    #[error(
        "the component needs a WebAssembly proposal that is switched off: {reason} (at byte \
         {offset})"
    )]
    SwitchedOff {
        /// Message of the validator.
        reason: String,
        /// Offset in the file.
        offset: u64,
    },
    /// The bytes violate the rules of the format.
    #[error("not a valid component: {reason} (at byte {offset})")]
    Invalid {
        /// Message of the validator.
        reason: String,
        /// Offset in the file.
        offset: u64,
    },
    /// The validator failed on the bytes, due to a bug in it or an attack on one.
    #[error("not a valid component: the validator gave up on it")]
    ValidatorFailed,
}

/// Kind of a file that is not WebAssembly, judged by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// An ELF file: a program, or code that wasmtime compiled earlier.
    Elf,
    /// An archive: zip, gzip, zstd or tar.
    Archive,
    /// Text, possibly the text format of WebAssembly.
    Text,
    /// Zero bytes, as in a sparse or broken download.
    Zeros,
    /// An unrecognized kind.
    Unknown,
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elf => {
                "an ELF file (a program, or a precompiled `.cwasm`, which is never loaded from \
                 outside)"
            }
            Self::Archive => "a compressed archive; unpack it first",
            Self::Text => "text; turn the text format into bytes with `wasm-tools parse`",
            Self::Zeros => "zero bytes, as in a broken download",
            Self::Unknown => "bytes of an unknown kind",
        })
    }
}

/// Quantity that the screen counts. Used as the noun of a message; [`super::ScreenLimits`] defines
/// each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// Bounded by `component_bytes_max`.
    ComponentBytes,
    /// Bounded by `nesting_max`.
    Nesting,
    /// Bounded by `sections_max`.
    Sections,
    /// Bounded by `instances_max`.
    Instances,
    /// Bounded by `definitions_max`.
    Definitions,
    /// Bounded by `types_max`.
    Types,
    /// Bounded by `type_depth_max`.
    TypeDepth,
    /// Bounded by `externs_max`.
    Externs,
    /// Bounded by `functions_max`.
    Functions,
    /// Bounded by `body_bytes_max`.
    BodyBytes,
    /// Bounded by `locals_max`.
    Locals,
    /// Bounded by `block_depth_max`.
    BlockDepth,
    /// Bounded by `branch_targets_max`.
    BranchTargets,
    /// Bounded by `body_operands_max`.
    BodyOperands,
    /// Bounded by `operands_max`.
    Operands,
    /// Bounded by `globals_max`.
    Globals,
    /// Bounded by `memories_max`.
    Memories,
    /// Bounded by `memory_bytes_max`.
    MemoryBytes,
    /// Bounded by `tables_max`.
    Tables,
    /// Bounded by `table_elements_max`.
    TableElements,
    /// Bounded by `data_segments_max`.
    DataSegments,
    /// Bounded by `element_segments_max`.
    ElementSegments,
    /// Bounded by `segment_elements_max`.
    SegmentElements,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ComponentBytes => "bytes",
            Self::Nesting => "levels of nested components",
            Self::Sections => "sections",
            Self::Instances => "instances",
            Self::Definitions => "definitions after expansion",
            Self::Types => "types",
            Self::TypeDepth => "levels in one type",
            Self::Externs => "imports and exports",
            Self::Functions => "functions",
            Self::BodyBytes => "bytes in one function",
            Self::Locals => "locals in one function",
            Self::BlockDepth => "levels of blocks in one function",
            Self::BranchTargets => "targets in one `br_table`",
            Self::BodyOperands => "operands of calls and branches in one function",
            Self::Operands => "operands of calls and branches",
            Self::Globals => "globals",
            Self::Memories => "memories",
            Self::MemoryBytes => "bytes of initial memory",
            Self::Tables => "tables",
            Self::TableElements => "initial table elements",
            Self::DataSegments => "data segments",
            Self::ElementSegments => "element segments",
            Self::SegmentElements => "functions in element segments",
        })
    }
}

impl From<wasmparser::Error> for ScreenError {
    fn from(error: wasmparser::Error) -> Self {
        let (reason, offset) =
            (quoted_line(error.message(), QUOTED_CHARS_MAX), error.offset() as u64);
        match error.missing_wasm_feature() {
            Some(_proposal) => Self::SwitchedOff { reason, offset },
            None => Self::Invalid { reason, offset },
        }
    }
}
