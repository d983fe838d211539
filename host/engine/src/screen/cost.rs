//! Costs of definitions after expansion.
//!
//! A component is cheap to write and expensive to expand: each instantiation and each use of a type
//! repeats what it refers to. So a cost is computed once for each definition, stored with it, and
//! added wherever it is used. Additions saturate; every cost is an upper bound of the work of a
//! validator or compiler, never an exact figure.

use super::error::{Quantity, ScreenError};
use super::tally::ScreenTally;

/// Cost of a resource that a type declares. A validator creates a new one per use, with tables
/// around it: up to 16 KB and 56 µs if instance types are nested, compared to about 100 bytes for
/// other items.
const RESOURCE_COST: u64 = 128;

/// Size of a type, function or instance as a tree, with every reference expanded.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeCost {
    /// Number of nodes of the tree.
    pub(super) cost: u64,
    /// Number of nodes of the largest type or function that an alias can extract from it.
    pub(super) widest: u64,
    /// Number of levels of the tree.
    pub(super) depth: u64,
}

impl TypeCost {
    /// Item without parts. Also replaces an index that does not exist, which the validator rejects.
    pub(super) const LEAF: Self = Self { cost: 1, widest: 1, depth: 1 };
    /// Declaration of a resource.
    pub(super) const RESOURCE: Self = Self { cost: RESOURCE_COST, widest: 1, depth: 1 };

    /// Returns the shape of a type or function made of `parts`.
    pub(super) fn of(parts: impl IntoIterator<Item = Self>) -> Self {
        let (cost, depth) = parts.into_iter().fold((1_u64, 0), |(cost, depth), part| {
            (cost.saturating_add(part.cost), part.depth.max(depth))
        });
        Self { cost, widest: cost, depth: depth.saturating_add(1) }
    }

    /// Returns this cost as that of one item, which an alias extracts as a whole.
    pub(super) fn whole(self) -> Self {
        Self { widest: self.cost, ..self }
    }

    /// Returns an upper bound of a type or function that an alias extracts from this instance.
    pub(super) fn part(self) -> Self {
        Self { cost: self.widest, ..self }
    }
}

/// Index spaces of one scope: a component, or the declarations of a component or instance type.
#[derive(Default)]
pub(super) struct Space {
    pub(super) types: Vec<TypeCost>,
    pub(super) instances: Vec<TypeCost>,
    pub(super) functions: Vec<TypeCost>,
    cost: u64,
    widest: u64,
    depth: u64,
}

impl Space {
    pub(super) fn type_at(&self, index: u32) -> TypeCost {
        at(&self.types, index)
    }

    pub(super) fn instance_at(&self, index: u32) -> TypeCost {
        at(&self.instances, index)
    }

    pub(super) fn function_at(&self, index: u32) -> TypeCost {
        at(&self.functions, index)
    }

    /// Counts `cost` more definitions in this scope.
    pub(super) fn charge(&mut self, tally: &ScreenTally<'_>, cost: u64) -> Result<(), ScreenError> {
        self.cost = self.cost.saturating_add(cost);
        tally.check(Quantity::Definitions, self.cost)
    }

    /// Adds a type that was defined in this scope with the given `cost`.
    pub(super) fn define(
        &mut self,
        tally: &ScreenTally<'_>,
        shape: TypeCost,
        cost: u64,
    ) -> Result<(), ScreenError> {
        tally.check(Quantity::TypeDepth, shape.depth)?;
        self.types.push(shape);
        self.charge(tally, cost)
    }

    /// Adds an import or export to this scope, which makes its shape part of every instance of the
    /// scope.
    pub(super) fn expose(
        &mut self,
        tally: &ScreenTally<'_>,
        shape: TypeCost,
    ) -> Result<(), ScreenError> {
        self.widest = self.widest.max(shape.widest);
        self.depth = self.depth.max(shape.depth);
        tally.check(Quantity::TypeDepth, self.depth)?;
        self.charge(tally, shape.cost)
    }

    /// Returns the shape of the scope seen from outside, as a type or as an instance of it.
    pub(super) fn shape(&self) -> TypeCost {
        let depth = self.depth.saturating_add(1);
        TypeCost { cost: self.cost.saturating_add(1), widest: self.widest.max(1), depth }
    }
}

/// Numbers of items that one instantiation of a component or core module creates.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Expansion {
    pub(super) instances: u64,
    pub(super) definitions: u64,
    pub(super) memories: u64,
    pub(super) memory_bytes: u64,
    pub(super) tables: u64,
    pub(super) table_elements: u64,
}

impl Expansion {
    /// Adds one more instantiation of `other`. Definitions are counted in a [`Space`] until its
    /// scope ends.
    pub(super) fn add(&mut self, tally: &ScreenTally<'_>, other: &Self) -> Result<(), ScreenError> {
        self.instances = self.instances.saturating_add(other.instances);
        self.memories = self.memories.saturating_add(other.memories);
        self.memory_bytes = self.memory_bytes.saturating_add(other.memory_bytes);
        self.tables = self.tables.saturating_add(other.tables);
        self.table_elements = self.table_elements.saturating_add(other.table_elements);
        self.check(tally)
    }

    fn check(&self, tally: &ScreenTally<'_>) -> Result<(), ScreenError> {
        tally.check(Quantity::Instances, self.instances)?;
        tally.check(Quantity::Memories, self.memories)?;
        tally.check(Quantity::MemoryBytes, self.memory_bytes)?;
        tally.check(Quantity::Tables, self.tables)?;
        tally.check(Quantity::TableElements, self.table_elements)
    }
}

/// Returns the element of an index space, or a leaf if it does not exist.
fn at(space: &[TypeCost], index: u32) -> TypeCost {
    usize::try_from(index)
        .ok()
        .and_then(|index| space.get(index))
        .copied()
        .unwrap_or(TypeCost::LEAF)
}
