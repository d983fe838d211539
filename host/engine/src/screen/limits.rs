//! Limits of the screen, with the reason for each number.

use wasmparser::WasmFeatures;

const MIB: u64 = 1024 * 1024;

/// Largest values that still pass the screen.
///
/// Every number leaves room above the largest real component that was measured: Python by
/// componentize-py 0.25 (18 MB), StarlingMonkey (12 MB) and QuickJS, Go 1.27 with `net/http` (8
/// MB), Rust without optimization (16 MB). The comment at each default has the measured maximum.
/// "Expanded" quantities count once per instantiation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenLimits {
    /// Length of the file, in bytes.
    pub component_bytes_max: u64,
    /// Nesting depth of components and core modules.
    pub nesting_max: u64,
    /// Sections, including custom sections, over all components and modules.
    pub sections_max: u64,
    /// Core and component instances, expanded.
    pub instances_max: u64,
    /// Entries of component-level sections, imports and exports of instantiated modules, and the
    /// tree size of every type at each use, expanded. A resource counts as 128,
    /// because validators copy whole tables for each.
    pub definitions_max: u64,
    /// Types and declarations inside types, including core types.
    pub types_max: u64,
    /// Depth of one type: nested declarations as well as references to other types.
    pub type_depth_max: u64,
    /// Imports and exports of core modules and of components.
    pub externs_max: u64,
    /// Functions with a body.
    pub functions_max: u64,
    /// Bytes of one function body.
    pub body_bytes_max: u64,
    /// Locals of one function.
    pub locals_max: u64,
    /// Nesting depth of blocks in one function.
    pub block_depth_max: u64,
    /// Targets of one `br_table`.
    pub branch_targets_max: u64,
    /// Values that calls, typed blocks and branches of one function move on the operand stack.
    pub body_operands_max: u64,
    /// Values that all functions together move on the operand stack.
    pub operands_max: u64,
    /// Globals of all core modules.
    pub globals_max: u64,
    /// Linear memories, expanded.
    pub memories_max: u64,
    /// Initial bytes of all linear memories, expanded.
    pub memory_bytes_max: u64,
    /// Tables, expanded.
    pub tables_max: u64,
    /// Initial elements of all tables, expanded.
    pub table_elements_max: u64,
    /// Data segments. Their bytes are part of the file and need no separate limit.
    pub data_segments_max: u64,
    /// Element segments.
    pub element_segments_max: u64,
    /// Functions and expressions listed in element segments.
    pub segment_elements_max: u64,
    /// Proposals that a component may use. The engine's `Config` must enable each of them.
    pub features: WasmFeatures,
}

impl ScreenLimits {
    /// Wasm 2.0 without host references, extended constant expressions, exceptions, atomic
    /// instructions, and the component model of WASI 0.2. Tail calls, GC, 64-bit memories, several
    /// memories in one module, relaxed SIMD and component-level async are off; shared memories,
    /// which the validator would allow, are rejected by the count of memories.
    pub const FEATURES: WasmFeatures = WasmFeatures::WASM2
        .difference(WasmFeatures::GC_TYPES)
        .union(WasmFeatures::EXTENDED_CONST)
        .union(WasmFeatures::EXCEPTIONS)
        .union(WasmFeatures::THREADS)
        .union(WasmFeatures::COMPONENT_MODEL);
}

impl Default for ScreenLimits {
    fn default() -> Self {
        Self {
            // Python with its standard library: 18 MB.
            component_bytes_max: 64 * MIB,
            // QuickJS: 2.
            nesting_max: 16,
            // Python: 590.
            sections_max: 20_000,
            // Python: 65, of which 14 are instances of core modules. One more per native extension.
            instances_max: 1_000,
            // Python: 28,386. At the limit, types that attack the validator cost it 40 ms and 30
            // MB.
            definitions_max: 1_000_000,
            // Python: 1,636.
            types_max: 50_000,
            // StarlingMonkey: 13. The validator recurses, and asserts that there are no more than
            // 127.
            type_depth_max: 50,
            // Python: 6,499.
            externs_max: 50_000,
            // Python: 13,351. The CPU limit of the compile child bounds many hard ones.
            functions_max: 100_000,
            // The interpreter loop of CPython: 426,843.
            body_bytes_max: MIB,
            // Rust without optimization: 997.
            locals_max: 10_000,
            // CPython: 781.
            block_depth_max: 5_000,
            // CPython: 3,202.
            branch_targets_max: 50_000,
            // CPython: 16,301.
            body_operands_max: 1_000_000,
            // StarlingMonkey: 802,636.
            operands_max: 16_000_000,
            // Python: 874.
            globals_max: 20_000,
            // QuickJS: 2. Composed components bring one each.
            memories_max: 8,
            // Python: 12.3 MiB. The limiter of a call decides; this rejects what no call could be
            // allowed.
            memory_bytes_max: 1024 * MIB,
            // 2 everywhere.
            tables_max: 32,
            // Go: 8,249.
            table_elements_max: 1_000_000,
            // Go: 70,566, because its linker cuts data at every run of zeros.
            data_segments_max: 200_000,
            // Python: 7.
            element_segments_max: 10_000,
            // StarlingMonkey: 7,737.
            segment_elements_max: 1_000_000,
            features: Self::FEATURES,
        }
    }
}
