//! Counts one core module.

use wasmparser::{
    CompositeInnerType, ElementItems, ElementSectionReader, FunctionBody, FunctionSectionReader,
    ImportSectionReader, MemorySectionReader, MemoryType, Payload, TableSectionReader, TypeRef,
    TypeSectionReader,
};

use super::body::{self, Width};
use super::cost::Expansion;
use super::error::{Quantity, ScreenError};
use super::tally::ScreenTally;

/// Size of a page unless a module specifies another one, as a power of two.
const PAGE_SIZE_LOG2: u32 = 16;

/// Core module that is being read. Stores the number of values that each of its functions moves
/// until the end of the module.
#[derive(Default)]
pub(super) struct ModuleScan {
    types: Vec<Width>,
    /// Maximum number of parameters of any of them.
    widest_type: u64,
    functions: Vec<Width>,
    bodies: usize,
    imported_functions: usize,
    expansion: Expansion,
}

impl ModuleScan {
    pub(super) fn new() -> Self {
        Self {
            expansion: Expansion { instances: 1, definitions: 1, ..Expansion::default() },
            ..Self::default()
        }
    }

    /// Returns the items that one instantiation of the module creates. Its definitions are its
    /// imports and exports, each of which is looked up again whenever the module is instantiated.
    pub(super) fn finish(self) -> Expansion {
        self.expansion
    }

    pub(super) fn section(
        &mut self,
        payload: Payload<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        match payload {
            Payload::TypeSection(section) => self.read_types(section, tally),
            Payload::ImportSection(section) => self.read_imports(section, tally),
            Payload::FunctionSection(section) => self.read_functions(section, tally),
            Payload::TableSection(section) => self.read_tables(section, tally),
            Payload::MemorySection(section) => self.read_memories(section, tally),
            Payload::GlobalSection(section) => tally.add(Quantity::Globals, section.count()),
            Payload::TagSection(section) => tally.add(Quantity::Globals, section.count()),
            Payload::ExportSection(section) => self.externs(tally, u64::from(section.count())),
            Payload::ElementSection(section) => read_elements(section, tally),
            Payload::DataSection(section) => tally.add(Quantity::DataSegments, section.count()),
            Payload::CodeSectionEntry(body) => self.read_body(&body, tally),
            // Custom sections are never read; the validator handles or rejects all other sections.
            _ => Ok(()),
        }
    }

    fn read_types(
        &mut self,
        section: TypeSectionReader<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        // The announced count is checked before anything is read.
        tally.check(Quantity::Types, u64::from(section.count()))?;
        for group in section {
            let group = group?;
            tally.add(Quantity::Types, group.types().len() as u64)?;
            self.types.extend(group.types().map(|ty| match &ty.composite_type.inner {
                CompositeInnerType::Func(ty) => Width::new(ty.params().len(), ty.results().len()),
                _ => Width::default(),
            }));
            let widest =
                self.types.iter().rev().take(group.types().len()).map(|width| width.params()).max();
            self.widest_type = self.widest_type.max(widest.unwrap_or(0));
        }
        Ok(())
    }

    fn read_imports(
        &mut self,
        section: ImportSectionReader<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        for import in section.into_imports() {
            self.externs(tally, 1)?;
            match import?.ty {
                TypeRef::Func(index) | TypeRef::FuncExact(index) => {
                    self.functions.push(body::width_at(&self.types, index));
                    self.imported_functions = self.functions.len();
                }
                TypeRef::Memory(memory) => refuse_shared(&memory)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn read_functions(
        &mut self,
        section: FunctionSectionReader<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        tally.add(Quantity::Functions, section.count())?;
        for type_index in section {
            self.functions.push(body::width_at(&self.types, type_index?));
        }
        Ok(())
    }

    fn read_tables(
        &mut self,
        section: TableSectionReader<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        for table in section {
            let table_elements = table?.ty.initial;
            self.expansion
                .add(tally, &Expansion { tables: 1, table_elements, ..Expansion::default() })?;
        }
        Ok(())
    }

    fn read_memories(
        &mut self,
        section: MemorySectionReader<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        for memory in section {
            let memory = memory?;
            refuse_shared(&memory)?;
            let memory_bytes = initial_bytes(&memory);
            self.expansion
                .add(tally, &Expansion { memories: 1, memory_bytes, ..Expansion::default() })?;
        }
        Ok(())
    }

    fn externs(&mut self, tally: &mut ScreenTally<'_>, count: u64) -> Result<(), ScreenError> {
        self.expansion.definitions = self.expansion.definitions.saturating_add(count);
        tally.add(Quantity::Externs, count)
    }

    fn read_body(
        &mut self,
        body: &FunctionBody<'_>,
        tally: &mut ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        let index = self.imported_functions.saturating_add(self.bodies);
        self.bodies = self.bodies.saturating_add(1);
        let own = self.functions.get(index).copied().unwrap_or_default();
        body::count(body, own, &self.types, &self.functions, self.widest_type, tally)
    }
}

fn read_elements(
    section: ElementSectionReader<'_>,
    tally: &mut ScreenTally<'_>,
) -> Result<(), ScreenError> {
    tally.add(Quantity::ElementSegments, section.count())?;
    for segment in section {
        let elements = match segment?.items {
            ElementItems::Functions(items) => items.count(),
            ElementItems::Expressions(_, items) => items.count(),
        };
        tally.add(Quantity::SegmentElements, elements)?;
    }
    Ok(())
}

/// Rejects shared memory. Instructions of the threads proposal are fine without it.
fn refuse_shared(memory: &MemoryType) -> Result<(), ScreenError> {
    if memory.shared { Err(ScreenError::SharedMemory) } else { Ok(()) }
}

fn initial_bytes(memory: &MemoryType) -> u64 {
    let page =
        1_u64.checked_shl(memory.page_size_log2.unwrap_or(PAGE_SIZE_LOG2)).unwrap_or(u64::MAX);
    memory.initial.saturating_mul(page)
}
