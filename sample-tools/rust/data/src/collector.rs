//! Rows of a result: distinct, sorted and limited.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cofferdam_sdk::ToolFailure;

use crate::budget::Budget;
use crate::source::Row;
use crate::value::Value;

/// Number of rows over the limit that are kept before the last ones are dropped.
const ROWS_OVER_LIMIT: usize = 1_000;

/// Order of one `ORDER BY` expression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Direction {
    pub(crate) is_descending: bool,
    pub(crate) puts_nulls_first: bool,
}

/// Part of the rows that `LIMIT` and `OFFSET` select.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

impl Window {
    fn end(self) -> usize {
        self.offset.saturating_add(self.limit)
    }
}

/// Collects the rows of a result with the values to sort them by.
pub(crate) struct Collector<'c> {
    directions: Vec<Direction>,
    window: Window,
    seen: Option<BTreeSet<Row>>,
    rows: Vec<(Row, Row)>,
    budget: &'c Budget,
}

impl<'c> Collector<'c> {
    pub(crate) fn new(
        directions: Vec<Direction>,
        window: Window,
        is_distinct: bool,
        budget: &'c Budget,
    ) -> Self {
        let seen = is_distinct.then(BTreeSet::new);
        Self { directions, window, seen, rows: Vec::new(), budget }
    }

    /// Adds a row. Breaks if no further row can be in the result.
    pub(crate) fn add(&mut self, keys: Row, row: Row) -> Result<ControlFlow<()>, ToolFailure> {
        let is_full =
            |rows: &Vec<(Row, Row)>| self.directions.is_empty() && rows.len() >= self.window.end();
        if is_full(&self.rows) {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(seen) = &mut self.seen {
            if seen.contains(&row) {
                return Ok(ControlFlow::Continue(()));
            }
            self.budget.charge(size(&row))?;
            seen.insert(row.clone());
        }
        self.budget.charge(size(&keys) + size(&row))?;
        self.rows.push((keys, row));
        if is_full(&self.rows) {
            return Ok(ControlFlow::Break(()));
        }
        if self.rows.len() >= self.window.end().saturating_mul(2).saturating_add(ROWS_OVER_LIMIT) {
            self.sort();
            for (keys, row) in self.rows.drain(self.window.end()..) {
                self.budget.refund(size(&keys) + size(&row));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the rows of the window.
    pub(crate) fn finish(mut self) -> Vec<Row> {
        self.sort();
        let rows = self.rows.into_iter().map(|(_, row)| row);
        rows.skip(self.window.offset).take(self.window.limit).collect()
    }

    fn sort(&mut self) {
        let directions = &self.directions;
        self.rows.sort_by(|(left, _), (right, _)| {
            let pairs = left.iter().zip(right).zip(directions);
            let orders = pairs.map(|((left, right), direction)| direction.compare(left, right));
            orders.fold(Ordering::Equal, Ordering::then)
        });
    }
}

impl Direction {
    fn compare(self, left: &Value, right: &Value) -> Ordering {
        let nulls_first = left.is_null().cmp(&right.is_null()).reverse();
        let order = match self.is_descending {
            true => right.cmp(left),
            false => left.cmp(right),
        };
        match left.is_null() || right.is_null() {
            true if self.puts_nulls_first => nulls_first,
            true => nulls_first.reverse(),
            false => order,
        }
    }
}

/// Returns the approximate number of bytes in memory.
pub(crate) fn size(row: &[Value]) -> usize {
    size_of::<Row>() + row.iter().map(Value::size).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASCENDING: Direction = Direction { is_descending: false, puts_nulls_first: false };

    #[test]
    fn the_first_rows_of_many_are_kept() {
        let budget = Budget::default();
        let window = Window { offset: 1, limit: 3 };
        let mut collector = Collector::new(vec![ASCENDING], window, false, &budget);
        for number in (0..20_000).rev() {
            let row = vec![Value::Integer(number)];
            assert!(collector.add(row.clone(), row).unwrap().is_continue());
        }
        assert!(collector.rows.len() < 2_000);
        assert_eq!(collector.finish(), [1, 2, 3].map(|number| vec![Value::Integer(number)]));
    }

    #[test]
    fn without_an_order_the_first_rows_are_enough() {
        let budget = Budget::default();
        let mut collector =
            Collector::new(Vec::new(), Window { offset: 0, limit: 2 }, true, &budget);
        let row = |number| vec![Value::Integer(number)];
        assert!(collector.add(Vec::new(), row(1)).unwrap().is_continue());
        assert!(collector.add(Vec::new(), row(1)).unwrap().is_continue());
        assert!(collector.add(Vec::new(), row(2)).unwrap().is_break());
        assert_eq!(collector.finish(), [row(1), row(2)]);
    }

    #[test]
    fn nulls_are_last_unless_they_are_asked_for_first() {
        let descending = Direction { is_descending: true, puts_nulls_first: false };
        assert_eq!(ASCENDING.compare(&Value::Null, &Value::Integer(1)), Ordering::Greater);
        assert_eq!(descending.compare(&Value::Null, &Value::Integer(1)), Ordering::Greater);
        assert_eq!(descending.compare(&Value::Integer(1), &Value::Integer(2)), Ordering::Greater);
        let first = Direction { puts_nulls_first: true, ..descending };
        assert_eq!(first.compare(&Value::Null, &Value::Integer(1)), Ordering::Less);
    }
}
