//! Functions of the values of a group.

use std::collections::BTreeSet;

use cofferdam_sdk::ToolFailure;

use crate::budget::Budget;
use crate::expression::{Expression, not_a_number};
use crate::value::Value;

/// Maximum bytes of the text that `string_agg` makes.
const TEXT_BYTES_MAX: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AggregateFunction {
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    Median,
    StandardDeviation,
    StringAggregate,
}

impl AggregateFunction {
    pub(crate) const NAMES: &[&str] =
        &["count", "sum", "avg", "min", "max", "median", "stddev", "string_agg"];

    pub(crate) fn find(name: &str) -> Option<Self> {
        Some(match name {
            "count" => Self::Count,
            "sum" | "total" => Self::Sum,
            "avg" | "mean" => Self::Average,
            "min" => Self::Minimum,
            "max" => Self::Maximum,
            "median" => Self::Median,
            "stddev" | "stddev_samp" => Self::StandardDeviation,
            "string_agg" | "group_concat" | "listagg" => Self::StringAggregate,
            _ => return None,
        })
    }
}

/// An aggregate of a query. Null values are left out of all of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aggregate {
    pub(crate) function: AggregateFunction,
    /// `None` counts rows.
    pub(crate) argument: Option<Expression>,
    /// Text between the parts of a `string_agg`.
    pub(crate) separator: String,
    pub(crate) is_distinct: bool,
    pub(crate) filter: Option<Expression>,
}

/// What is known of the rows of a group so far.
#[derive(Debug)]
pub(crate) struct State {
    count: u64,
    total: Total,
    /// The least or the greatest value.
    extreme: Value,
    /// Mean and sum of the squares of differences from it.
    mean: f64,
    squares: f64,
    numbers: Vec<f64>,
    text: String,
    seen: BTreeSet<Value>,
}

#[derive(Debug)]
enum Total {
    Exact(i64),
    Number { sum: f64, error: f64 },
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            count: 0,
            total: Total::Exact(0),
            extreme: Value::Null,
            mean: 0.0,
            squares: 0.0,
            numbers: Vec::new(),
            text: String::new(),
            seen: BTreeSet::new(),
        }
    }

    /// Adds a row.
    #[expect(clippy::cast_precision_loss, reason = "a mean does not count single rows")]
    pub(crate) fn add(
        &mut self,
        aggregate: &Aggregate,
        row: &[Value],
        budget: &Budget,
    ) -> Result<(), ToolFailure> {
        if let Some(filter) = &aggregate.filter
            && filter.truth(row)? != Some(true)
        {
            return Ok(());
        }
        let Some(argument) = &aggregate.argument else {
            self.count += 1;
            return Ok(());
        };
        let value = argument.value(row)?;
        if value.is_null() {
            return Ok(());
        }
        if aggregate.is_distinct {
            if self.seen.contains(&value) {
                return Ok(());
            }
            budget.charge(value.size() * 2)?;
            self.seen.insert(value.clone());
        }
        self.count += 1;
        match aggregate.function {
            AggregateFunction::Count => {}
            AggregateFunction::Sum | AggregateFunction::Average => self.total.add(&value)?,
            AggregateFunction::Minimum => {
                if self.extreme.is_null() || value < self.extreme {
                    self.extreme = value;
                }
            }
            AggregateFunction::Maximum => {
                if value > self.extreme {
                    self.extreme = value;
                }
            }
            AggregateFunction::Median => {
                budget.charge(2 * size_of::<f64>())?;
                self.numbers.push(number(&value)?);
            }
            AggregateFunction::StandardDeviation => {
                let number = number(&value)?;
                let difference = number - self.mean;
                self.mean += difference / self.count as f64;
                self.squares += difference * (number - self.mean);
            }
            AggregateFunction::StringAggregate => {
                let text = value.to_text();
                let separator = if self.count > 1 { aggregate.separator.as_str() } else { "" };
                if self.text.len() + separator.len() + text.len() > TEXT_BYTES_MAX {
                    return Err(ToolFailure::new(format!(
                        "the text of `string_agg` is longer than {TEXT_BYTES_MAX} bytes"
                    ))
                    .suggestion("use `string_agg(DISTINCT …)`, or narrow it with `WHERE`")
                    .permanent());
                }
                budget.charge(separator.len() + text.len())?;
                self.text = std::mem::take(&mut self.text) + separator + &text;
            }
        }
        Ok(())
    }

    /// Returns the result. That of no values is null, except for a count.
    #[expect(clippy::cast_precision_loss, reason = "a mean does not count single rows")]
    pub(crate) fn finish(mut self, function: AggregateFunction) -> Value {
        let count = self.count as f64;
        match function {
            AggregateFunction::Count => {
                Value::Integer(i64::try_from(self.count).unwrap_or(i64::MAX))
            }
            _ if self.count == 0 => Value::Null,
            AggregateFunction::Sum => match self.total {
                Total::Exact(integer) => Value::Integer(integer),
                Total::Number { sum, error } => Value::Number(sum + error),
            },
            AggregateFunction::Average => Value::Number(self.total.number() / count),
            AggregateFunction::Minimum | AggregateFunction::Maximum => self.extreme,
            AggregateFunction::Median => {
                self.numbers.sort_by(f64::total_cmp);
                let middle = |index: usize| self.numbers.get(index).copied().unwrap_or_default();
                let length = self.numbers.len();
                Value::Number(f64::midpoint(middle((length - 1) / 2), middle(length / 2)))
            }
            AggregateFunction::StandardDeviation if self.count < 2 => Value::Null,
            AggregateFunction::StandardDeviation => {
                Value::Number((self.squares / (count - 1.0)).sqrt())
            }
            AggregateFunction::StringAggregate => Value::text(self.text),
        }
    }
}

impl Total {
    /// Adds a number. Integers are summed exactly as long as the sum is one; other numbers with the
    /// rounding errors of the sum.
    fn add(&mut self, value: &Value) -> Result<(), ToolFailure> {
        if let (Self::Exact(sum), Value::Integer(integer)) = (&mut *self, value)
            && let Some(exact) = sum.checked_add(*integer)
        {
            *sum = exact;
            return Ok(());
        }
        let number = number(value)?;
        let (sum, error) = match *self {
            Self::Exact(_) => (self.number(), 0.0),
            Self::Number { sum, error } => (sum, error),
        };
        let total = sum + number;
        let lost =
            if sum.abs() >= number.abs() { (sum - total) + number } else { (number - total) + sum };
        *self = Self::Number { sum: total, error: error + lost };
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a number has 53 bits")]
    fn number(&self) -> f64 {
        match self {
            Self::Exact(sum) => *sum as f64,
            Self::Number { sum, error } => sum + error,
        }
    }
}

fn number(value: &Value) -> Result<f64, ToolFailure> {
    value.as_number().ok_or_else(|| not_a_number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(function: AggregateFunction, is_distinct: bool, values: &[Value], expected: Value) {
        let aggregate = Aggregate {
            function,
            argument: Some(Expression::Column(0)),
            separator: ", ".to_owned(),
            is_distinct,
            filter: None,
        };
        let mut state = State::new();
        for value in values {
            state.add(&aggregate, std::slice::from_ref(value), &Budget::default()).unwrap();
        }
        assert_eq!(state.finish(function), expected, "{function:?}");
    }

    #[test]
    fn aggregates() {
        let values = [3, 1, 3, 5].map(Value::Integer);
        check(AggregateFunction::Count, false, &values, Value::Integer(4));
        check(AggregateFunction::Count, true, &values, Value::Integer(3));
        check(AggregateFunction::Sum, false, &values, Value::Integer(12));
        check(AggregateFunction::Average, true, &values, Value::Number(3.0));
        check(AggregateFunction::Minimum, false, &values, Value::Integer(1));
        check(AggregateFunction::Maximum, false, &values, Value::Integer(5));
        check(AggregateFunction::Median, false, &values, Value::Number(3.0));
        check(
            AggregateFunction::StandardDeviation,
            false,
            &values,
            Value::Number((8.0_f64 / 3.0).sqrt()),
        );
        check(AggregateFunction::StringAggregate, true, &values, Value::text("3, 1, 5"));
        check(AggregateFunction::Sum, false, &[Value::Null], Value::Null);
        check(AggregateFunction::Count, false, &[Value::Null], Value::Integer(0));
        check(
            AggregateFunction::Sum,
            false,
            &[0.1, 0.2, 0.3].map(Value::Number),
            Value::Number(0.6),
        );
        let large = [Value::Integer(i64::MAX), Value::Integer(1)];
        check(AggregateFunction::Sum, false, &large, Value::Number(9_223_372_036_854_775_808.0));
    }
}
