//! Memory for the WASI adapter (preview 1 to preview 2) inside a Go module.
//!
//! The adapter keeps a stack and its state in the module's memory. By default it allocates them
//! with the module's `cabi_realloc`. In Go that function cannot run before the runtime has started,
//! and the runtime needs the adapter to start. Without that function, the adapter grows the memory
//! instead. Go claims all memory up to the end, and later any growth, so its heap would overwrite
//! the adapter's state.
//!
//! Therefore the SDK reserves a block that Go never touches, and this module adds a short function
//! `cabi_realloc_adapter` that allocates from it. wit-component lets the adapter call that
//! function.

use wasm_encoder::{
    BlockType, ConstExpr, Encode, ExportKind, Function, RawSection, Section, ValType,
};
use wasmparser::{BinaryReader, Parser, Payload, TypeRef};

use crate::BuildError;
use crate::sections::address;

/// First bytes of the reserved memory, as in `guest-sdk/go/internal/abi`.
const MARK: &[u8] = b"cofferdam:memory-of-wasi-adapter";
/// Size of the block: one page for the stack and one for the state.
const BLOCK_BYTES: u32 = 2 * PAGE_BYTES;
const PAGE_BYTES: u32 = 65_536;

// Ids of sections.
const TYPE: u8 = 1;
const FUNCTION: u8 = 3;
const GLOBAL: u8 = 6;
const EXPORT: u8 = 7;
const CODE: u8 = 10;

/// Facts about a module that are needed to add a function to it.
#[derive(Default)]
struct Facts<'a> {
    types: u32,
    functions: u32,
    globals: u32,
    /// Addresses of the mark.
    marks: Vec<u32>,
    /// Data segments with their addresses.
    data: Vec<(u32, &'a [u8])>,
}

impl<'a> Facts<'a> {
    /// Records data at an address.
    fn add_segment(&mut self, address: u32, data: &'a [u8]) {
        self.data.push((address, data));
        let marks = data.windows(MARK.len()).zip(0..).filter(|(bytes, _)| *bytes == MARK);
        self.marks.extend(marks.map(|(_, at): (_, u32)| address.wrapping_add(at)));
    }
}

/// Adds the function `cabi_realloc_adapter` to a module.
///
/// # Errors
/// [`BuildError`] if the module is not a Go program with the SDK.
pub(super) fn hand_over(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let failed = |error: wasmparser::BinaryReaderError| BuildError::Component(error.to_string());
    let mut facts = Facts::default();
    let mut sections = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.map_err(failed)?;
        look_at(&payload, &mut facts).map_err(failed)?;
        if let Some((id, range)) = payload.as_section() {
            sections.push((id, module.get(range).unwrap_or_default()));
        }
    }
    let start = block(&facts)?;
    let mut with = module.get(..8).unwrap_or_default().to_vec();
    for (id, contents) in sections {
        match addition(id, &facts, start) {
            Some(entry) => {
                let data = appended(contents, &entry).map_err(failed)?;
                RawSection { id, data: &data }.append_to(&mut with);
            }
            None => RawSection { id, data: contents }.append_to(&mut with),
        }
    }
    Ok(with)
}

/// Returns the address of the block: the first whole page after the mark.
fn block(facts: &Facts<'_>) -> Result<u32, BuildError> {
    let &[mark] = facts.marks.as_slice() else {
        return Err(if facts.marks.is_empty() { no_sdk() } else { not_free() });
    };
    let start =
        mark.checked_add(length(MARK)).and_then(|end| end.checked_next_multiple_of(PAGE_BYTES));
    let start =
        start.filter(|start| start.checked_add(BLOCK_BYTES).is_some()).ok_or_else(not_free)?;
    // With another memory layout, the adapter would overwrite the program.
    let is_free = facts.data.iter().all(|&(address, data)| {
        let from = start.saturating_sub(address);
        let to = (start + BLOCK_BYTES).saturating_sub(address).min(length(data));
        // Most programs have no data there. Large ones have a single segment that includes zeros.
        data.get(from as usize..to as usize)
            .is_none_or(|inside| inside.iter().all(|byte| *byte == 0))
    });
    if is_free { Ok(start) } else { Err(not_free()) }
}

fn no_sdk() -> BuildError {
    let advice = "the program has no tools: a package of it has to import `cofferdam` and call `cofferdam.Register` in an \
                  `init` function";
    BuildError::Project(advice.to_owned())
}

fn not_free() -> BuildError {
    BuildError::Component(
        "this Go compiler puts data where the SDK keeps memory for WASI".to_owned(),
    )
}

fn look_at<'a>(
    payload: &Payload<'a>,
    facts: &mut Facts<'a>,
) -> Result<(), wasmparser::BinaryReaderError> {
    match payload {
        Payload::TypeSection(types) => facts.types = types.count(),
        Payload::ImportSection(imports) => {
            for import in imports.clone().into_imports() {
                match import?.ty {
                    TypeRef::Func(_) => facts.functions += 1,
                    TypeRef::Global(_) => facts.globals += 1,
                    _ => {}
                }
            }
        }
        Payload::FunctionSection(functions) => facts.functions += functions.count(),
        Payload::GlobalSection(globals) => facts.globals += globals.count(),
        Payload::DataSection(data) => {
            for segment in data.clone() {
                let segment = segment?;
                if let Some(address) = address(&segment) {
                    facts.add_segment(address, segment.data);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns the bytes to append to a section.
fn addition(id: u8, facts: &Facts<'_>, start: u32) -> Option<Vec<u8>> {
    let mut entry = Vec::new();
    match id {
        // A type with four `i32` parameters and one `i32` result.
        TYPE => entry.extend([0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f]),
        FUNCTION => facts.types.encode(&mut entry),
        // The address of the next allocation.
        GLOBAL => {
            ValType::I32.encode(&mut entry);
            // Mutable.
            entry.push(1);
            ConstExpr::i32_const(start.cast_signed()).encode(&mut entry);
        }
        EXPORT => {
            "cabi_realloc_adapter".encode(&mut entry);
            ExportKind::Func.encode(&mut entry);
            facts.functions.encode(&mut entry);
        }
        CODE => body(facts.globals, start + BLOCK_BYTES).encode(&mut entry),
        _ => return None,
    }
    Some(entry)
}

/// Returns the body of the function with the parameters `(old, old size, alignment, size)`. It
/// allocates from the front of the block and never frees. It traps if `old` is not null or the
/// block is used up.
fn body(next: u32, end: u32) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    code.local_get(0).if_(BlockType::Empty).unreachable().end();
    // Leaves the result on the stack.
    code.global_get(next);
    // Rounds the size up to a multiple of 16.
    code.global_get(next).local_get(3).i32_const(15).i32_add().i32_const(-16).i32_and().i32_add();
    code.global_set(next);
    code.global_get(next).i32_const(end.cast_signed()).i32_gt_u();
    code.if_(BlockType::Empty).unreachable().end();
    code.end();
    function
}

/// Returns a section with `entry` appended and its count increased by one.
fn appended(contents: &[u8], entry: &[u8]) -> Result<Vec<u8>, wasmparser::BinaryReaderError> {
    let mut reader = BinaryReader::new(contents, 0);
    let count = reader.read_var_u32()?;
    let rest = contents.get(reader.original_position()..).unwrap_or_default();
    let mut longer = Vec::with_capacity(contents.len() + entry.len() + 1);
    count.saturating_add(1).encode(&mut longer);
    longer.extend(rest);
    longer.extend(entry);
    Ok(longer)
}

/// Returns the length as a `u32`. A module is shorter than 4 GiB.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{
        CodeSection, DataSection, ExportSection, FunctionSection, GlobalSection, GlobalType,
        MemorySection, MemoryType, Module, TypeSection,
    };
    use wasmparser::{Operator, Validator};

    use super::*;

    /// Returns a module with one function, one global, a memory, and `data` at `address`.
    fn module(address: u32, data: &[u8]) -> Vec<u8> {
        let mut types = TypeSection::new();
        types.ty().function([], []);
        let mut functions = FunctionSection::new();
        functions.function(0);
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: 9,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut globals = GlobalSection::new();
        let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
        globals.global(kind, &ConstExpr::i32_const(0));
        let mut exports = ExportSection::new();
        exports.export("m", ExportKind::Memory, 0);
        let mut codes = CodeSection::new();
        let mut code = Function::new([]);
        code.instructions().end();
        codes.function(&code);
        let mut segments = DataSection::new();
        segments.active(0, &ConstExpr::i32_const(address.cast_signed()), data.iter().copied());
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&memories).section(&globals);
        module.section(&exports).section(&codes).section(&segments);
        module.finish()
    }

    #[test]
    fn the_module_gets_one_more_function() {
        let data = [b"before ", MARK].concat();
        let with = hand_over(&module(70_000, &data)).unwrap();
        Validator::new().validate_all(&with).unwrap();
        let mut exports = Vec::new();
        let mut globals = Vec::new();
        for payload in Parser::new(0).parse_all(&with) {
            match payload.unwrap() {
                Payload::ExportSection(section) => {
                    exports
                        .extend(section.into_iter().map(|export| export.unwrap().name.to_owned()));
                }
                Payload::GlobalSection(section) => {
                    for global in section {
                        globals
                            .push(global.unwrap().init_expr.get_operators_reader().read().unwrap());
                    }
                }
                _ => {}
            }
        }
        assert_eq!(exports, ["m", "cabi_realloc_adapter"]);
        assert_eq!(
            globals,
            [Operator::I32Const { value: 0 }, Operator::I32Const { value: 131_072 }]
        );
    }

    #[test]
    fn a_module_without_the_sdk_is_refused() {
        let error = hand_over(&module(0, b"nothing")).unwrap_err().to_string();
        assert!(error.starts_with("the program has no tools"), "{error}");
        assert!(hand_over(b"no module").is_err());
    }

    #[test]
    fn a_block_with_something_in_it_is_refused() {
        let mut zeros = [MARK, &[0; 200_000]].concat();
        assert!(hand_over(&module(0, &zeros)).is_ok());
        zeros[65_536 + 131_071] = 1;
        for data in [zeros, [MARK, MARK].concat()] {
            let error = hand_over(&module(0, &data)).unwrap_err().to_string();
            assert!(error.contains("this Go compiler puts data"), "{error}");
        }
    }
}
