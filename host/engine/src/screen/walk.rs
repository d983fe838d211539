//! Pass over the file: assigns each section to its component or module, and sums up instantiations.

use wasmparser::{
    CanonicalFunction, ComponentAlias, ComponentExport, ComponentExternalKind, ComponentImport,
    ComponentInstance, ComponentOuterAliasKind, Encoding, Instance, Parser, Payload,
    SectionLimited,
};

use super::ScreenReport;
use super::cost::{Expansion, Space, TypeCost};
use super::error::{Quantity, ScreenError};
use super::limits::ScreenLimits;
use super::module::ModuleScan;
use super::tally::ScreenTally;
use super::types::{self, TypeScan};

const COMPONENT: &str = "a component";
const MODULE: &str = "a core module";

/// Counts the whole file.
pub(super) fn walk(bytes: &[u8], limits: &ScreenLimits) -> Result<ScreenReport, ScreenError> {
    let mut walk = Walk {
        tally: ScreenTally::new(limits),
        bytes,
        components: vec![ComponentScan::default()],
        module: None,
        screened: ScreenReport::default(),
    };
    let mut parser = Parser::new(0);
    parser.set_features(limits.features);
    for payload in parser.parse_all(bytes) {
        walk.payload(payload?)?;
    }
    Ok(walk.finish())
}

struct Walk<'a> {
    tally: ScreenTally<'a>,
    bytes: &'a [u8],
    /// Components around the current section, the whole file first. Bounded by `nesting_max`.
    components: Vec<ComponentScan>,
    /// Core module around the current section, inside the last component.
    module: Option<ModuleScan>,
    screened: ScreenReport,
}

/// Component that is being read.
#[derive(Default)]
struct ComponentScan {
    space: Space,
    components: Vec<ScannedComponent>,
    modules: Vec<Expansion>,
    expansion: Expansion,
}

/// Component that was read.
#[derive(Clone, Copy)]
struct ScannedComponent {
    expansion: Expansion,
    shape: TypeCost,
}

impl Walk<'_> {
    fn payload(&mut self, payload: Payload<'_>) -> Result<(), ScreenError> {
        match payload {
            Payload::Version { encoding, range, .. } => self.check_encoding(encoding, range.start),
            Payload::ModuleSection { .. } => self.open_module(),
            Payload::ComponentSection { .. } => self.open_component(),
            Payload::End(_) => self.close(),
            section => {
                if !matches!(section, Payload::CodeSectionEntry(_)) {
                    self.tally.add(Quantity::Sections, 1_u64)?;
                }
                match &mut self.module {
                    Some(module) => module.section(section, &mut self.tally),
                    None => self.component_section(section),
                }
            }
        }
    }

    /// Rejects a nested module with the header of a component and vice versa: the parser trusts the
    /// inner header, so counts would be added to the wrong one.
    fn check_encoding(&self, encoding: Encoding, offset: usize) -> Result<(), ScreenError> {
        let expected = if self.module.is_some() { Encoding::Module } else { Encoding::Component };
        if encoding == expected {
            return Ok(());
        }
        let reason = "the header of a nested section is not of the section's kind".to_owned();
        Err(ScreenError::Invalid { reason, offset: offset as u64 })
    }

    fn open_module(&mut self) -> Result<(), ScreenError> {
        self.open_section()?;
        self.tally.modules = self.tally.modules.saturating_add(1);
        self.module = Some(ModuleScan::new());
        Ok(())
    }

    fn open_component(&mut self) -> Result<(), ScreenError> {
        self.open_section()?;
        self.components.push(ComponentScan::default());
        Ok(())
    }

    fn open_section(&mut self) -> Result<(), ScreenError> {
        self.tally.add(Quantity::Sections, 1_u64)?;
        self.tally.check(Quantity::Nesting, self.components.len() as u64)
    }

    /// Ends a module or component. Its definitions count for the component around it even if it is
    /// never instantiated, because a validator reads them anyway.
    fn close(&mut self) -> Result<(), ScreenError> {
        if let Some(module) = self.module.take() {
            self.top()?.modules.push(module.finish());
            return Ok(());
        }
        if self.components.len() == 1 {
            return Ok(());
        }
        let Some(built) = self.components.pop().map(ComponentScan::finish) else { return Ok(()) };
        let (tally, top) = self.tally_and_top()?;
        top.components.push(built);
        top.space.charge(tally, built.shape.cost)
    }

    fn component_section(&mut self, section: Payload<'_>) -> Result<(), ScreenError> {
        match section {
            Payload::ComponentTypeSection(section) => self.read_types(&section),
            Payload::CoreTypeSection(section) => self.read_core_types(section),
            Payload::InstanceSection(section) => each(section, |item| self.core_instance(&item)),
            Payload::ComponentInstanceSection(section) => {
                each(section, |item| self.instance(&item))
            }
            Payload::ComponentAliasSection(section) => each(section, |item| self.alias(&item)),
            Payload::ComponentCanonicalSection(section) => {
                each(section, |item| self.canonical(&item))
            }
            Payload::ComponentImportSection(section) => each(section, |item| self.import(&item)),
            Payload::ComponentExportSection(section) => each(section, |item| self.export(&item)),
            _ => Ok(()),
        }
    }

    /// Reads a type section from its bytes: the iterator of `wasmparser` would recurse.
    fn read_types<T>(&mut self, section: &SectionLimited<'_, T>) -> Result<(), ScreenError> {
        let range = section.range();
        let contents = self.bytes.get(range.clone()).unwrap_or_default();
        let reader = wasmparser::BinaryReader::new(contents, range.start);
        let scopes = self.components.iter_mut().map(|component| &mut component.space).collect();
        TypeScan::new(&mut self.tally, scopes).section(reader)
    }

    fn read_core_types(
        &mut self,
        section: wasmparser::CoreTypeSectionReader<'_>,
    ) -> Result<(), ScreenError> {
        each(section, |ty| {
            let cost = types::core_type_cost(&ty);
            self.tally.add(Quantity::Types, cost)?;
            let (tally, top) = self.tally_and_top()?;
            top.space.charge(tally, cost)
        })
    }

    fn core_instance(&mut self, instance: &Instance<'_>) -> Result<(), ScreenError> {
        let (tally, top) = self.tally_and_top()?;
        let (created, arguments) = match instance {
            Instance::Instantiate { module_index, args } => {
                (at(&top.modules, *module_index), args.len())
            }
            Instance::FromExports(exports) => (None, exports.len()),
        };
        let created =
            created.unwrap_or(Expansion { instances: 1, definitions: 1, ..Expansion::default() });
        top.expansion.add(tally, &created)?;
        top.space.charge(tally, created.definitions.saturating_add(arguments as u64))
    }

    fn instance(&mut self, instance: &ComponentInstance<'_>) -> Result<(), ScreenError> {
        let (tally, top) = self.tally_and_top()?;
        match instance {
            ComponentInstance::Instantiate { component_index, args } => {
                let created =
                    at(&top.components, *component_index).unwrap_or(ScannedComponent::UNKNOWN);
                for argument in args {
                    let shape = item(&top.space, argument.kind, argument.index)?;
                    top.space.charge(tally, shape.cost)?;
                }
                top.space.charge(tally, created.shape.cost)?;
                top.space.instances.push(created.shape);
                top.expansion.add(tally, &created.expansion)
            }
            ComponentInstance::FromExports(exports) => {
                let mut collected = Space::default();
                for export in exports {
                    let shape = item(&top.space, export.kind, export.index)?;
                    collected.expose(tally, shape)?;
                }
                let shape = collected.shape();
                top.space.charge(tally, shape.cost)?;
                top.space.instances.push(shape);
                top.expansion.add(tally, &Expansion { instances: 1, ..Expansion::default() })
            }
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), ScreenError> {
        match alias {
            ComponentAlias::InstanceExport { kind, instance_index, .. } => {
                refuse_higher_order(*kind)?;
                types::take_out(&mut self.top()?.space, *kind, *instance_index);
            }
            ComponentAlias::Outer { kind, count, index } => {
                self.outer_alias(*kind, *count, *index)?
            }
            ComponentAlias::CoreInstanceExport { .. } => {}
        }
        let (tally, top) = self.tally_and_top()?;
        top.space.charge(tally, 1)
    }

    fn outer_alias(
        &mut self,
        kind: ComponentOuterAliasKind,
        count: u32,
        index: u32,
    ) -> Result<(), ScreenError> {
        let level = usize::try_from(count).unwrap_or(usize::MAX);
        let Some(outer) = self.components.iter().rev().nth(level) else { return Ok(()) };
        let (ty, component, module) =
            (outer.space.type_at(index), at(&outer.components, index), at(&outer.modules, index));
        let top = self.top()?;
        match kind {
            ComponentOuterAliasKind::Type => top.space.types.push(ty),
            ComponentOuterAliasKind::Component => {
                top.components.push(component.unwrap_or(ScannedComponent::UNKNOWN))
            }
            ComponentOuterAliasKind::CoreModule => top.modules.push(module.unwrap_or_default()),
            ComponentOuterAliasKind::CoreType => {}
        }
        Ok(())
    }

    fn canonical(&mut self, function: &CanonicalFunction) -> Result<(), ScreenError> {
        let (tally, top) = self.tally_and_top()?;
        let shape = match function {
            CanonicalFunction::Lift { type_index, .. } => {
                let shape = top.space.type_at(*type_index).whole();
                top.space.functions.push(shape);
                shape
            }
            CanonicalFunction::Lower { func_index, .. } => top.space.function_at(*func_index),
            _ => TypeCost::LEAF,
        };
        top.space.charge(tally, shape.cost)
    }

    fn import(&mut self, import: &ComponentImport<'_>) -> Result<(), ScreenError> {
        refuse_higher_order(import.ty.kind())?;
        self.tally.add(Quantity::Externs, 1_u64)?;
        if self.components.len() == 1 {
            self.screened.imports.push(import.name.name.to_owned());
        }
        let (tally, top) = self.tally_and_top()?;
        types::declare(&mut top.space, tally, import.ty)
    }

    fn export(&mut self, export: &ComponentExport<'_>) -> Result<(), ScreenError> {
        self.tally.add(Quantity::Externs, 1_u64)?;
        if self.components.len() == 1 {
            self.screened.exports.push(export.name.name.to_owned());
        }
        let (tally, top) = self.tally_and_top()?;
        let shape = item(&top.space, export.kind, export.index)?;
        if let Some(ascribed) = export.ty {
            top.space.charge(tally, types::referred(&top.space, ascribed).cost)?;
        }
        top.space.expose(tally, shape)?;
        match export.kind {
            ComponentExternalKind::Func => top.space.functions.push(shape),
            ComponentExternalKind::Type => top.space.types.push(shape),
            ComponentExternalKind::Instance => top.space.instances.push(shape),
            _ => {}
        }
        Ok(())
    }

    fn top(&mut self) -> Result<&mut ComponentScan, ScreenError> {
        self.tally_and_top().map(|(_, top)| top)
    }

    /// Returns the component of the current section. There is always one; otherwise the file would
    /// be rejected.
    fn tally_and_top(&mut self) -> Result<(&ScreenTally<'_>, &mut ComponentScan), ScreenError> {
        let top = self.components.last_mut().ok_or(ScreenError::ValidatorFailed)?;
        Ok((&self.tally, top))
    }

    fn finish(self) -> ScreenReport {
        let scan = self.components.into_iter().next().unwrap_or_default();
        let (root, definitions) = (scan.expansion, scan.space.shape().cost);
        ScreenReport {
            definitions,
            functions: self.tally.functions,
            modules: self.tally.modules,
            instances: root.instances,
            memories: root.memories,
            memory_bytes: root.memory_bytes,
            tables: root.tables,
            code_bytes: self.tally.code_bytes,
            ..self.screened
        }
    }
}

impl ComponentScan {
    /// Returns the items that one instantiation of the component creates, itself included.
    fn finish(self) -> ScannedComponent {
        let instances = self.expansion.instances.saturating_add(1);
        ScannedComponent {
            expansion: Expansion { instances, ..self.expansion },
            shape: self.space.shape(),
        }
    }
}

impl ScannedComponent {
    /// Replaces an index that does not exist, which the validator rejects.
    const UNKNOWN: Self = Self {
        expansion: Expansion {
            instances: 1,
            definitions: 0,
            memories: 0,
            memory_bytes: 0,
            tables: 0,
            table_elements: 0,
        },
        shape: TypeCost::LEAF,
    };
}

/// Reads a section to its end or to the first item that is rejected.
fn each<'a, T: wasmparser::FromReader<'a>>(
    section: SectionLimited<'a, T>,
    mut read: impl FnMut(T) -> Result<(), ScreenError>,
) -> Result<(), ScreenError> {
    section.into_iter().try_for_each(|item| read(item?))
}

/// Resolves the item that an instance argument or an export names.
fn item(space: &Space, kind: ComponentExternalKind, index: u32) -> Result<TypeCost, ScreenError> {
    refuse_higher_order(kind)?;
    Ok(match kind {
        ComponentExternalKind::Func => space.function_at(index),
        ComponentExternalKind::Type => space.type_at(index).whole(),
        ComponentExternalKind::Instance => space.instance_at(index),
        _ => TypeCost::LEAF,
    })
}

fn refuse_higher_order(kind: ComponentExternalKind) -> Result<(), ScreenError> {
    match kind {
        ComponentExternalKind::Component => Err(ScreenError::HigherOrder { kind: COMPONENT }),
        ComponentExternalKind::Module => Err(ScreenError::HigherOrder { kind: MODULE }),
        _ => Ok(()),
    }
}

fn at<T: Copy>(space: &[T], index: u32) -> Option<T> {
    usize::try_from(index).ok().and_then(|index| space.get(index)).copied()
}
