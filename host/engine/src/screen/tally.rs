//! Running counts and their limits.

use super::error::{Quantity, ScreenError};
use super::limits::ScreenLimits;

/// Sums over the whole file. A sum that exceeds its limit ends the screen.
pub(super) struct ScreenTally<'l> {
    limits: &'l ScreenLimits,
    pub(super) sections: u64,
    pub(super) types: u64,
    pub(super) externs: u64,
    pub(super) functions: u64,
    pub(super) operands: u64,
    pub(super) globals: u64,
    pub(super) data_segments: u64,
    pub(super) element_segments: u64,
    pub(super) segment_elements: u64,
    pub(super) modules: u64,
    pub(super) code_bytes: u64,
}

impl<'l> ScreenTally<'l> {
    pub(super) fn new(limits: &'l ScreenLimits) -> Self {
        Self {
            limits,
            sections: 0,
            types: 0,
            externs: 0,
            functions: 0,
            operands: 0,
            globals: 0,
            data_segments: 0,
            element_segments: 0,
            segment_elements: 0,
            modules: 0,
            code_bytes: 0,
        }
    }

    /// Adds `more` to the sum of `quantity`, which must be one that is summed over the file.
    pub(super) fn add(
        &mut self,
        quantity: Quantity,
        more: impl Into<u64>,
    ) -> Result<(), ScreenError> {
        let more = more.into();
        let Some(sum) = self.sum(quantity) else {
            debug_assert!(false, "{quantity:?} has no sum");
            return self.check(quantity, more);
        };
        *sum = sum.saturating_add(more);
        let found = *sum;
        self.check(quantity, found)
    }

    /// Rejects `found` if it exceeds the limit of `quantity`.
    pub(super) fn check(&self, quantity: Quantity, found: u64) -> Result<(), ScreenError> {
        let limit = self.limit(quantity);
        if found > limit { Err(ScreenError::OverLimit { quantity, found, limit }) } else { Ok(()) }
    }

    fn sum(&mut self, quantity: Quantity) -> Option<&mut u64> {
        Some(match quantity {
            Quantity::Sections => &mut self.sections,
            Quantity::Types => &mut self.types,
            Quantity::Externs => &mut self.externs,
            Quantity::Functions => &mut self.functions,
            Quantity::Operands => &mut self.operands,
            Quantity::Globals => &mut self.globals,
            Quantity::DataSegments => &mut self.data_segments,
            Quantity::ElementSegments => &mut self.element_segments,
            Quantity::SegmentElements => &mut self.segment_elements,
            _ => return None,
        })
    }

    fn limit(&self, quantity: Quantity) -> u64 {
        let limits = self.limits;
        match quantity {
            Quantity::ComponentBytes => limits.component_bytes_max,
            Quantity::Nesting => limits.nesting_max,
            Quantity::Sections => limits.sections_max,
            Quantity::Instances => limits.instances_max,
            Quantity::Definitions => limits.definitions_max,
            Quantity::Types => limits.types_max,
            Quantity::TypeDepth => limits.type_depth_max,
            Quantity::Externs => limits.externs_max,
            Quantity::Functions => limits.functions_max,
            Quantity::BodyBytes => limits.body_bytes_max,
            Quantity::Locals => limits.locals_max,
            Quantity::BlockDepth => limits.block_depth_max,
            Quantity::BranchTargets => limits.branch_targets_max,
            Quantity::BodyOperands => limits.body_operands_max,
            Quantity::Operands => limits.operands_max,
            Quantity::Globals => limits.globals_max,
            Quantity::Memories => limits.memories_max,
            Quantity::MemoryBytes => limits.memory_bytes_max,
            Quantity::Tables => limits.tables_max,
            Quantity::TableElements => limits.table_elements_max,
            Quantity::DataSegments => limits.data_segments_max,
            Quantity::ElementSegments => limits.element_segments_max,
            Quantity::SegmentElements => limits.segment_elements_max,
        }
    }
}
