//! Joins of tables.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use cofferdam_sdk::ToolFailure;

use crate::budget::Budget;
use crate::collector::size;
use crate::expression::{Comparison, Expression};
use crate::source::{Meter, Row, Sink, Source};
use crate::value::Value;

/// Table of a `FROM` and how it is joined to the tables before it.
pub(crate) struct Joined<'s> {
    pub(crate) source: Box<dyn Source + 's>,
    /// Position of its first column in a joined row.
    pub(crate) start: usize,
    /// Includes rows of the tables before it that match no row of this table.
    pub(crate) keeps_left: bool,
    /// Includes rows of this table that match no row before it.
    pub(crate) keeps_right: bool,
    pub(crate) conditions: Vec<Expression>,
    /// Pairs of equal expressions: over the tables before it, and over this table.
    keys: Vec<(Expression, Expression)>,
}

impl<'s> Joined<'s> {
    pub(crate) fn new(source: Box<dyn Source + 's>, start: usize) -> Self {
        let (conditions, keys) = (Vec::new(), Vec::new());
        Self { source, start, keeps_left: false, keeps_right: false, conditions, keys }
    }

    pub(crate) fn width(&self) -> usize {
        self.source.columns().len()
    }

    /// Uses the equalities of `conditions` between this table and those before it to find rows.
    /// All conditions are checked as well.
    pub(crate) fn use_equalities(&mut self, conditions: &[Expression]) {
        let own = self.start..self.start + self.width();
        for condition in conditions {
            if let Expression::Compare(Comparison::Equal, left, right) = condition {
                for (before, here) in [(left, right), (right, left)] {
                    if is_within(before, &(0..self.start)) && is_within(here, &own) {
                        self.keys.push(((**before).clone(), (**here).clone()));
                    }
                }
            }
        }
    }
}

/// Returns whether an expression has columns, all of them in a range.
fn is_within(expression: &Expression, range: &Range<usize>) -> bool {
    let mut positions = BTreeSet::new();
    expression.columns(&mut positions);
    !positions.is_empty() && positions.iter().all(|position| range.contains(position))
}

/// Rows of a joined table in memory.
struct Loaded<'j> {
    joined: &'j Joined<'j>,
    rows: Vec<Row>,
    /// Positions of rows by the values of the keys.
    index: BTreeMap<Row, Vec<usize>>,
    is_matched: RefCell<Vec<bool>>,
}

/// Passes the joined rows to `sink`. The first table is read row by row; the others are kept in
/// memory.
pub(crate) fn run(
    tables: &[Joined<'_>],
    wanted: impl Fn(&Joined<'_>) -> Vec<bool>,
    budget: &Budget,
    sink: &mut Sink<'_>,
) -> Result<(), ToolFailure> {
    let Some((first, others)) = tables.split_first() else {
        return sink(Vec::new()).map(drop);
    };
    let loaded = others
        .iter()
        .map(|joined| Loaded::load(joined, &wanted(joined), budget))
        .collect::<Result<Vec<_>, _>>()?;
    let mut meter = Meter::new("joined rows");
    let mut ended = false;
    first.source.scan(&wanted(first), &mut |row| {
        let flow = push(&loaded, row, &mut meter, sink)?;
        ended = flow.is_break();
        Ok(flow)
    })?;
    for (level, table) in loaded.iter().enumerate() {
        if ended || !table.joined.keeps_right {
            continue;
        }
        let is_matched = table.is_matched.borrow().clone();
        let rest = loaded.get(level + 1..).unwrap_or_default();
        for (row, _) in table.rows.iter().zip(is_matched).filter(|(_, is_matched)| !is_matched) {
            let mut joined = vec![Value::Null; table.joined.start];
            joined.extend(row.iter().cloned());
            if push(rest, joined, &mut meter, sink)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Joins a row with all further tables.
fn push(
    tables: &[Loaded<'_>],
    row: Row,
    meter: &mut Meter,
    sink: &mut Sink<'_>,
) -> Result<ControlFlow<()>, ToolFailure> {
    let Some((table, rest)) = tables.split_first() else { return sink(row) };
    let mut has_match = false;
    let candidates: &mut dyn Iterator<Item = usize> = match table.joined.keys.is_empty() {
        true => &mut (0..table.rows.len()),
        false => {
            let keys = table.joined.keys.iter().map(|(before, _)| before.value(&row));
            let keys = keys.collect::<Result<Row, _>>()?;
            &mut table.index.get(&keys).into_iter().flatten().copied()
        }
    };
    for position in candidates {
        meter.count()?;
        let Some(other) = table.rows.get(position) else { continue };
        let mut joined = row.clone();
        joined.extend(other.iter().cloned());
        if !all_hold(&table.joined.conditions, &joined)? {
            continue;
        }
        has_match = true;
        if let Some(is_matched) = table.is_matched.borrow_mut().get_mut(position) {
            *is_matched = true;
        }
        if push(rest, joined, meter, sink)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    if has_match || !table.joined.keeps_left {
        return Ok(ControlFlow::Continue(()));
    }
    let mut joined = row;
    joined.resize(joined.len() + table.joined.width(), Value::Null);
    push(rest, joined, meter, sink)
}

pub(crate) fn all_hold(conditions: &[Expression], row: &[Value]) -> Result<bool, ToolFailure> {
    for condition in conditions {
        if condition.truth(row)? != Some(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl<'j> Loaded<'j> {
    fn load(joined: &'j Joined<'j>, wanted: &[bool], budget: &Budget) -> Result<Self, ToolFailure> {
        let mut rows = Vec::new();
        joined.source.scan(wanted, &mut |row| {
            budget.charge(size(&row))?;
            rows.push(row);
            Ok(ControlFlow::Continue(()))
        })?;
        let mut index: BTreeMap<Row, Vec<usize>> = BTreeMap::new();
        if !joined.keys.is_empty() {
            for (position, row) in rows.iter().enumerate() {
                let mut padded = vec![Value::Null; joined.start];
                padded.extend(row.iter().cloned());
                let keys = joined.keys.iter().map(|(_, here)| here.value(&padded));
                let keys = keys.collect::<Result<Row, _>>()?;
                // Null is equal to nothing.
                if !keys.iter().any(Value::is_null) {
                    budget.charge(size(&keys) + 2 * size_of::<usize>())?;
                    index.entry(keys).or_default().push(position);
                }
            }
        }
        let is_matched = RefCell::new(vec![false; rows.len()]);
        Ok(Self { joined, rows, index, is_matched })
    }
}
