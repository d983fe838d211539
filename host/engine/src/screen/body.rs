//! Counts one function body.
//!
//! Most operators cost a validator a fixed time. Calls, typed blocks and branches do not: they move
//! as many values as their type has, and two bytes can name a type of two thousand values. So the
//! number of moved values is summed.

use wasmparser::{BlockType, FunctionBody, Operator};

use super::error::{Quantity, ScreenError};
use super::tally::ScreenTally;

/// Number of parameters and of results of a function type.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Width {
    params: u64,
    results: u64,
}

impl Width {
    pub(super) fn new(params: usize, results: usize) -> Self {
        Self { params: params as u64, results: results as u64 }
    }

    pub(super) fn params(self) -> u64 {
        self.params
    }

    fn moved(self) -> u64 {
        self.params.saturating_add(self.results)
    }
}

/// Returns the width of a type or function, or zero if it does not exist, which the validator
/// rejects.
pub(super) fn width_at(widths: &[Width], index: u32) -> Width {
    usize::try_from(index).ok().and_then(|index| widths.get(index)).copied().unwrap_or_default()
}

/// Counts the locals, blocks, branches and operands of `body`, a function of width `own`.
pub(super) fn count(
    body: &FunctionBody<'_>,
    own: Width,
    types: &[Width],
    functions: &[Width],
    widest_type: u64,
    tally: &mut ScreenTally<'_>,
) -> Result<(), ScreenError> {
    let bytes = body.as_bytes().len() as u64;
    tally.check(Quantity::BodyBytes, bytes)?;
    tally.code_bytes = tally.code_bytes.saturating_add(bytes);
    count_locals(body, tally)?;
    let (widest, operands) = (own.results, own.moved());
    let mut scan = BodyScan { types, functions, depth: 0, widest, widest_type, operands };
    let mut operators = body.get_operators_reader()?;
    while !operators.eof() {
        scan.operator(&operators.read()?, tally)?;
    }
    tally.add(Quantity::Operands, scan.operands)
}

fn count_locals(body: &FunctionBody<'_>, tally: &ScreenTally<'_>) -> Result<(), ScreenError> {
    let mut locals = 0_u64;
    for group in body.get_locals_reader()? {
        let (count, _type) = group?;
        locals = locals.saturating_add(u64::from(count));
        tally.check(Quantity::Locals, locals)?;
    }
    Ok(())
}

struct BodyScan<'a> {
    types: &'a [Width],
    functions: &'a [Width],
    depth: u64,
    /// Maximum number of values that a branch to any block so far can carry.
    widest: u64,
    /// Maximum number of values that any function type takes, and so the maximum that a tag can
    /// carry.
    widest_type: u64,
    operands: u64,
}

impl BodyScan<'_> {
    fn operator(
        &mut self,
        operator: &Operator<'_>,
        tally: &ScreenTally<'_>,
    ) -> Result<(), ScreenError> {
        let moved = match operator {
            Operator::Block { blockty } | Operator::Loop { blockty } | Operator::If { blockty } => {
                self.enter(*blockty, tally)?
            }
            // Each clause is a branch that carries the values of its tag.
            Operator::TryTable { try_table } => {
                let catches = try_table.catches.len() as u64;
                tally.check(Quantity::BranchTargets, catches)?;
                let entered = self.enter(try_table.ty, tally)?;
                let widest = self.widest.max(self.widest_type).saturating_add(1);
                entered.saturating_add(widest.saturating_mul(catches))
            }
            Operator::Throw { .. } => self.widest_type,
            Operator::End => {
                self.depth = self.depth.saturating_sub(1);
                self.widest
            }
            Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                width_at(self.functions, *function_index).moved()
            }
            Operator::CallIndirect { type_index, .. }
            | Operator::ReturnCallIndirect { type_index, .. } => {
                width_at(self.types, *type_index).moved()
            }
            Operator::Br { .. } | Operator::BrIf { .. } | Operator::Return | Operator::Else => {
                self.widest
            }
            Operator::BrTable { targets } => {
                let targets = u64::from(targets.len());
                tally.check(Quantity::BranchTargets, targets)?;
                self.widest.saturating_mul(targets.saturating_add(1))
            }
            _ => return Ok(()),
        };
        self.operands = self.operands.saturating_add(moved);
        tally.check(Quantity::BodyOperands, self.operands)
    }

    /// Opens a block and returns the number of values that it moves.
    fn enter(&mut self, ty: BlockType, tally: &ScreenTally<'_>) -> Result<u64, ScreenError> {
        self.depth = self.depth.saturating_add(1);
        tally.check(Quantity::BlockDepth, self.depth)?;
        let width = match ty {
            BlockType::Empty => Width::default(),
            BlockType::Type(_) => Width { params: 0, results: 1 },
            BlockType::FuncType(index) => width_at(self.types, index),
        };
        self.widest = self.widest.max(width.params).max(width.results);
        Ok(width.moved())
    }
}
