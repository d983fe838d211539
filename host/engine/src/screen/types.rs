//! Reads component-level types without recursion.
//!
//! A component or instance type contains declarations, which contain types again. `wasmparser`
//! reads them with unbounded recursion; so this module reads the outer two bytes of such a type
//! itself, keeps open types on its own stack, and leaves only types without declarations to
//! `wasmparser`.

use wasmparser::{
    BinaryReader, ComponentAlias, ComponentDefinedType, ComponentExternalKind, ComponentImport,
    ComponentOuterAliasKind, ComponentType, ComponentTypeRef, ComponentValType, CoreType,
    InstanceTypeDeclaration, TypeBounds,
};

use super::cost::{Space, TypeCost};
use super::error::{Quantity, ScreenError};
use super::tally::ScreenTally;

/// First byte of a component type.
const COMPONENT_TYPE: u8 = 0x41;
/// First byte of an instance type.
const INSTANCE_TYPE: u8 = 0x42;
/// First byte of a declaration that is a type.
const DECLARES_TYPE: u8 = 0x01;
/// First byte of a declaration that is an import, which only component types have.
const DECLARES_IMPORT: u8 = 0x03;

/// Reader of one type section.
pub(super) struct TypeScan<'s, 'l> {
    pub(super) tally: &'s mut ScreenTally<'l>,
    /// Scopes of the components around the section, innermost last.
    pub(super) scopes: Vec<&'s mut Space>,
    open: Vec<OpenType>,
}

/// Component or instance type with declarations that are still to be read.
struct OpenType {
    space: Space,
    remaining: u32,
    imports_allowed: bool,
}

impl<'s, 'l> TypeScan<'s, 'l> {
    pub(super) fn new(tally: &'s mut ScreenTally<'l>, scopes: Vec<&'s mut Space>) -> Self {
        Self { tally, scopes, open: Vec::new() }
    }

    /// Reads all types of a section into the innermost scope.
    pub(super) fn section(&mut self, mut reader: BinaryReader<'_>) -> Result<(), ScreenError> {
        let count = reader.read_var_u32()?;
        self.tally.add(Quantity::Types, count)?;
        for _ in 0..count {
            self.one_type(&mut reader)?;
            while let Some(open) = self.open.last_mut() {
                match open.remaining.checked_sub(1) {
                    Some(remaining) => {
                        open.remaining = remaining;
                        let imports_allowed = open.imports_allowed;
                        self.declaration(&mut reader, imports_allowed)?;
                    }
                    None => self.close()?,
                }
            }
        }
        Ok(())
    }

    /// Reads a type, or opens it if it has declarations.
    fn one_type(&mut self, reader: &mut BinaryReader<'_>) -> Result<(), ScreenError> {
        match peek(reader)? {
            first @ (COMPONENT_TYPE | INSTANCE_TYPE) => {
                reader.read_u8()?;
                let remaining = reader.read_var_u32()?;
                self.tally.add(Quantity::Types, remaining)?;
                self.open.push(OpenType {
                    space: Space::default(),
                    remaining,
                    imports_allowed: first == COMPONENT_TYPE,
                });
                self.tally.check(Quantity::TypeDepth, self.open.len() as u64)
            }
            _ => {
                let ty: ComponentType<'_> = reader.read()?;
                let (tally, space) = self.current()?;
                let (shape, parts) = shape_of(&ty, space);
                space.define(tally, shape, parts)
            }
        }
    }

    /// Closes the innermost open type, which becomes a definition in the scope around it, with the
    /// cost of its declarations.
    fn close(&mut self) -> Result<(), ScreenError> {
        let Some(closed) = self.open.pop() else { return Ok(()) };
        let shape = closed.space.shape();
        let (tally, space) = self.current()?;
        space.define(tally, shape, shape.cost)
    }

    fn declaration(
        &mut self,
        reader: &mut BinaryReader<'_>,
        imports_allowed: bool,
    ) -> Result<(), ScreenError> {
        match peek(reader)? {
            DECLARES_TYPE => {
                reader.read_u8()?;
                self.one_type(reader)
            }
            DECLARES_IMPORT if imports_allowed => {
                reader.read_u8()?;
                let import: ComponentImport<'_> = reader.read()?;
                let (tally, space) = self.current()?;
                declare(space, tally, import.ty)
            }
            _ => self.leaf_declaration(reader.read()?),
        }
    }

    fn leaf_declaration(
        &mut self,
        declaration: InstanceTypeDeclaration<'_>,
    ) -> Result<(), ScreenError> {
        match declaration {
            InstanceTypeDeclaration::Alias(alias) => self.alias(&alias),
            InstanceTypeDeclaration::Export { ty, .. } => {
                let (tally, space) = self.current()?;
                declare(space, tally, ty)
            }
            InstanceTypeDeclaration::CoreType(ty) => {
                let (tally, space) = self.current()?;
                space.charge(tally, core_type_cost(&ty))
            }
            // `DECLARES_TYPE` was handled above; charged anyway, so that reordering the cases
            // cannot lose it.
            InstanceTypeDeclaration::Type(_) => {
                let (tally, space) = self.current()?;
                space.define(tally, TypeCost::LEAF, 1)
            }
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), ScreenError> {
        let outer = match alias {
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Type, count, index } => {
                Some(self.outer_type(*count, *index))
            }
            _ => None,
        };
        let (tally, space) = self.current()?;
        match (alias, outer) {
            (_, Some(shape)) => space.types.push(shape),
            (ComponentAlias::InstanceExport { kind, instance_index, .. }, _) => {
                take_out(space, *kind, *instance_index);
            }
            _ => {}
        }
        space.charge(tally, 1)
    }

    /// Returns the type at `index` of the scope `count` levels out. Open types are levels too.
    fn outer_type(&self, count: u32, index: u32) -> TypeCost {
        let spaces = self.open.iter().rev().map(|open| &open.space);
        let mut spaces = spaces.chain(self.scopes.iter().rev().map(|space| &**space));
        let level = usize::try_from(count).unwrap_or(usize::MAX);
        spaces.nth(level).map_or(TypeCost::LEAF, |space| space.type_at(index))
    }

    /// Returns the innermost scope.
    fn current(&mut self) -> Result<(&mut ScreenTally<'l>, &mut Space), ScreenError> {
        let space = match self.open.last_mut() {
            Some(open) => Some(&mut open.space),
            None => self.scopes.last_mut().map(|space| &mut **space),
        };
        space.map(|space| (&mut *self.tally, space)).ok_or(ScreenError::ValidatorFailed)
    }
}

/// Adds an import or export of type `ty` to a scope.
pub(super) fn declare(
    space: &mut Space,
    tally: &ScreenTally<'_>,
    ty: ComponentTypeRef,
) -> Result<(), ScreenError> {
    let shape = referred(space, ty);
    match ty {
        ComponentTypeRef::Func(_) => space.functions.push(shape),
        ComponentTypeRef::Instance(_) => space.instances.push(shape),
        ComponentTypeRef::Type(TypeBounds::Eq(_)) => space.types.push(shape),
        ComponentTypeRef::Type(TypeBounds::SubResource) => space.types.push(TypeCost::LEAF),
        ComponentTypeRef::Value(_)
        | ComponentTypeRef::Component(_)
        | ComponentTypeRef::Module(_) => {}
    }
    space.expose(tally, shape)
}

/// Returns the shape of the item that `ty` describes.
pub(super) fn referred(space: &Space, ty: ComponentTypeRef) -> TypeCost {
    match ty {
        ComponentTypeRef::Instance(index) => space.type_at(index),
        ComponentTypeRef::Func(index)
        | ComponentTypeRef::Component(index)
        | ComponentTypeRef::Type(TypeBounds::Eq(index)) => space.type_at(index).whole(),
        ComponentTypeRef::Type(TypeBounds::SubResource) => TypeCost::RESOURCE,
        ComponentTypeRef::Value(ty) => value(space, ty),
        ComponentTypeRef::Module(_) => TypeCost::LEAF,
    }
}

/// Adds the item that an alias extracts from an instance. Its name is not resolved: the largest
/// export bounds it.
pub(super) fn take_out(space: &mut Space, kind: ComponentExternalKind, instance: u32) {
    let instance = space.instance_at(instance);
    match kind {
        ComponentExternalKind::Type => space.types.push(instance.part()),
        ComponentExternalKind::Func => space.functions.push(instance.part()),
        ComponentExternalKind::Instance => space.instances.push(instance),
        ComponentExternalKind::Value
        | ComponentExternalKind::Component
        | ComponentExternalKind::Module => {}
    }
}

/// Returns the cost of a core type at component level: its declarations, if it is the type of a
/// module.
pub(super) fn core_type_cost(ty: &CoreType<'_>) -> u64 {
    match ty {
        CoreType::Rec(group) => group.types().len() as u64,
        CoreType::Module(declarations) => declarations.len() as u64 + 1,
    }
}

/// Returns the shape of a type without declarations, and the number of parts that it is written
/// with.
fn shape_of(ty: &ComponentType<'_>, space: &Space) -> (TypeCost, u64) {
    match ty {
        ComponentType::Defined(defined) => defined_shape(defined, space),
        ComponentType::Func(function) => {
            let parts = function.params.iter().map(|(_, ty)| *ty).chain(function.result);
            compound(space, parts)
        }
        ComponentType::Resource { .. } => (TypeCost::LEAF, TypeCost::RESOURCE.cost),
        // Opened by `one_type`, so never read as a whole.
        ComponentType::Component(_) | ComponentType::Instance(_) => (TypeCost::LEAF, 1),
    }
}

fn defined_shape(ty: &ComponentDefinedType<'_>, space: &Space) -> (TypeCost, u64) {
    match ty {
        ComponentDefinedType::Primitive(_)
        | ComponentDefinedType::Own(_)
        | ComponentDefinedType::Borrow(_) => (TypeCost::LEAF, 1),
        ComponentDefinedType::Flags(names) | ComponentDefinedType::Enum(names) => {
            compound_of(names.iter().map(|_| TypeCost::LEAF))
        }
        ComponentDefinedType::Record(fields) => compound(space, fields.iter().map(|(_, ty)| *ty)),
        ComponentDefinedType::Tuple(types) => compound(space, types.iter().copied()),
        ComponentDefinedType::Variant(cases) => compound_of(
            cases.iter().map(|case| case.ty.map_or(TypeCost::LEAF, |ty| value(space, ty))),
        ),
        ComponentDefinedType::List(element) | ComponentDefinedType::Option(element) => {
            compound(space, [*element])
        }
        ComponentDefinedType::Map(key, element) => compound(space, [*key, *element]),
        ComponentDefinedType::FixedLengthList(element, length) => {
            let element = value(space, *element);
            let cost = element.cost.saturating_mul(u64::from(*length));
            (TypeCost::of([TypeCost { cost, ..element }]), 2)
        }
        ComponentDefinedType::Result { ok, err } => compound(space, ok.iter().chain(err).copied()),
        ComponentDefinedType::Future(element) | ComponentDefinedType::Stream(element) => {
            compound(space, *element)
        }
    }
}

fn compound(space: &Space, parts: impl IntoIterator<Item = ComponentValType>) -> (TypeCost, u64) {
    compound_of(parts.into_iter().map(|ty| value(space, ty)))
}

fn compound_of(parts: impl Iterator<Item = TypeCost>) -> (TypeCost, u64) {
    let mut count = 1;
    let shape = TypeCost::of(parts.inspect(|_| count += 1));
    (shape, count)
}

fn value(space: &Space, ty: ComponentValType) -> TypeCost {
    match ty {
        ComponentValType::Primitive(_) => TypeCost::LEAF,
        ComponentValType::Type(index) => space.type_at(index).whole(),
    }
}

/// Returns the next byte without consuming it.
fn peek(reader: &BinaryReader<'_>) -> Result<u8, ScreenError> {
    Ok(reader.clone().read_u8()?)
}
