//! Expressions over the values of a row.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::rc::Rc;

use cofferdam_sdk::ToolFailure;

use crate::functions::Function;
use crate::names::shorten;
use crate::value::{Kind, Value, parse_number};

/// An expression whose columns are indices of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Column(usize),
    Literal(Value),
    Not(Box<Self>),
    Negate(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Compare(Comparison, Box<Self>, Box<Self>),
    Arithmetic(Arithmetic, Box<Self>, Box<Self>),
    /// Text of both, one after the other.
    Concatenate(Box<Self>, Box<Self>),
    IsNull(Box<Self>),
    /// True if both are equal or both are null.
    IsSame(Box<Self>, Box<Self>),
    Like {
        value: Box<Self>,
        pattern: Box<Self>,
        ignores_case: bool,
    },
    In {
        value: Box<Self>,
        list: Vec<Self>,
    },
    /// Membership in the result of a subquery.
    InSet {
        value: Box<Self>,
        set: Rc<BTreeSet<Value>>,
    },
    Case {
        arms: Vec<(Self, Self)>,
        otherwise: Box<Self>,
    },
    Cast {
        value: Box<Self>,
        kind: Kind,
        is_try: bool,
    },
    Call(Function, Vec<Self>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    DivideInteger,
    Remainder,
}

type Evaluated = Result<Value, ToolFailure>;

impl Expression {
    /// Computes the value for a row.
    pub(crate) fn value(&self, row: &[Value]) -> Evaluated {
        Ok(match self {
            Self::Column(index) => row.get(*index).cloned().unwrap_or(Value::Null),
            Self::Literal(value) => value.clone(),
            Self::Not(operand) => {
                operand.truth(row)?.map_or(Value::Null, |truth| Value::Boolean(!truth))
            }
            Self::Negate(operand) => match operand.value(row)? {
                Value::Null => Value::Null,
                Value::Integer(integer) => integer
                    .checked_neg()
                    .map_or(Value::Number(9_223_372_036_854_775_808.0), Value::Integer),
                Value::Number(number) => Value::Number(-number),
                other => return Err(not_a_number(&other)),
            },
            Self::And(left, right) => both(left.truth(row)?, false, || right.truth(row))?,
            Self::Or(left, right) => both(left.truth(row)?, true, || right.truth(row))?,
            Self::Compare(comparison, left, right) => {
                let (left, right) = (left.value(row)?, right.value(row)?);
                match left.is_null() || right.is_null() {
                    true => Value::Null,
                    false => Value::Boolean(comparison.holds(left.cmp(&right))),
                }
            }
            Self::Arithmetic(operator, left, right) => {
                operator.apply(&left.value(row)?, &right.value(row)?)?
            }
            Self::Concatenate(left, right) => {
                let (left, right) = (left.value(row)?, right.value(row)?);
                match left.is_null() || right.is_null() {
                    true => Value::Null,
                    false => Function::Concat.call(&[left, right])?,
                }
            }
            Self::IsNull(operand) => Value::Boolean(operand.value(row)?.is_null()),
            Self::IsSame(left, right) => Value::Boolean(left.value(row)? == right.value(row)?),
            Self::Like { value, pattern, ignores_case } => {
                let (value, pattern) = (value.value(row)?, pattern.value(row)?);
                match value.is_null() || pattern.is_null() {
                    true => Value::Null,
                    false => {
                        let (value, pattern) = (value.to_text(), pattern.to_text());
                        Value::Boolean(match ignores_case {
                            true => like(&value.to_lowercase(), &pattern.to_lowercase()),
                            false => like(&value, &pattern),
                        })
                    }
                }
            }
            Self::In { value, list } => {
                let value = value.value(row)?;
                let mut found = Value::Boolean(false);
                for item in list {
                    match item.value(row)? {
                        _ if value.is_null() => found = Value::Null,
                        Value::Null => found = Value::Null,
                        item if item == value => return Ok(Value::Boolean(true)),
                        _ => {}
                    }
                }
                found
            }
            Self::InSet { value, set } => match value.value(row)? {
                Value::Null if !set.is_empty() => Value::Null,
                value if !value.is_null() && set.contains(&value) => Value::Boolean(true),
                _ if set.contains(&Value::Null) => Value::Null,
                _ => Value::Boolean(false),
            },
            Self::Case { arms, otherwise } => {
                for (condition, result) in arms {
                    if condition.truth(row)? == Some(true) {
                        return result.value(row);
                    }
                }
                otherwise.value(row)?
            }
            Self::Cast { value, kind, is_try } => {
                let value = value.value(row)?;
                match cast(&value, *kind) {
                    Some(cast) => cast,
                    None if *is_try => Value::Null,
                    None => return Err(not_castable(&value, *kind)),
                }
            }
            Self::Call(Function::Coalesce, arguments) => {
                for argument in arguments {
                    let value = argument.value(row)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Value::Null
            }
            Self::Call(function, arguments) => {
                let values = arguments.iter().map(|argument| argument.value(row));
                function.call(&values.collect::<Result<Vec<_>, _>>()?)?
            }
        })
    }

    /// Computes a condition: true, false, or unknown because of a null.
    pub(crate) fn truth(&self, row: &[Value]) -> Result<Option<bool>, ToolFailure> {
        match self.value(row)? {
            Value::Null => Ok(None),
            Value::Boolean(truth) => Ok(Some(truth)),
            other => Err(ToolFailure::new(format!(
                "expected a condition, found the value `{}`",
                other.to_text()
            ))
            .suggestion("compare it, for example `… = 1`")
            .permanent()),
        }
    }

    /// Adds the indices of all columns.
    pub(crate) fn columns(&self, indices: &mut BTreeSet<usize>) {
        match self {
            Self::Column(index) => {
                indices.insert(*index);
            }
            Self::Literal(_) => {}
            Self::Not(operand) | Self::Negate(operand) | Self::IsNull(operand) => {
                operand.columns(indices);
            }
            Self::And(left, right)
            | Self::Or(left, right)
            | Self::Compare(_, left, right)
            | Self::Arithmetic(_, left, right)
            | Self::Concatenate(left, right)
            | Self::IsSame(left, right)
            | Self::Like { value: left, pattern: right, .. } => {
                left.columns(indices);
                right.columns(indices);
            }
            Self::In { value, list } => {
                value.columns(indices);
                list.iter().for_each(|item| item.columns(indices));
            }
            Self::InSet { value, .. } | Self::Cast { value, .. } => value.columns(indices),
            Self::Case { arms, otherwise } => {
                for (condition, result) in arms {
                    condition.columns(indices);
                    result.columns(indices);
                }
                otherwise.columns(indices);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|it| it.columns(indices)),
        }
    }

    /// Returns the conditions that `AND` joins.
    pub(crate) fn conjuncts(self) -> Vec<Self> {
        match self {
            Self::And(left, right) => {
                let mut all = left.conjuncts();
                all.extend(right.conjuncts());
                all
            }
            other => vec![other],
        }
    }
}

/// Joins two truths. `decisive` on either side is the result.
fn both(
    left: Option<bool>,
    decisive: bool,
    right: impl FnOnce() -> Result<Option<bool>, ToolFailure>,
) -> Evaluated {
    if left == Some(decisive) {
        return Ok(Value::Boolean(decisive));
    }
    let right = right()?;
    Ok(match (left, right) {
        (_, Some(right)) if right == decisive => Value::Boolean(decisive),
        (Some(_), Some(_)) => Value::Boolean(!decisive),
        _ => Value::Null,
    })
}

impl Comparison {
    pub(crate) fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

impl Arithmetic {
    /// Computes with integers as long as the result is one. Division by zero is null.
    fn apply(self, left: &Value, right: &Value) -> Evaluated {
        if left.is_null() || right.is_null() {
            return Ok(Value::Null);
        }
        if let (Value::Integer(left), Value::Integer(right)) = (left, right) {
            let exact = match self {
                Self::Add => left.checked_add(*right),
                Self::Subtract => left.checked_sub(*right),
                Self::Multiply => left.checked_mul(*right),
                Self::DivideInteger => left.checked_div(*right),
                Self::Remainder => left.checked_rem(*right),
                Self::Divide => None,
            };
            if let Some(exact) = exact {
                return Ok(Value::Integer(exact));
            }
        }
        let left = left.as_number().ok_or_else(|| not_a_number(left))?;
        let right = right.as_number().ok_or_else(|| not_a_number(right))?;
        let number = match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::DivideInteger => (left / right).trunc(),
            Self::Remainder => left % right,
        };
        Ok(if number.is_finite() { Value::Number(number) } else { Value::Null })
    }
}

/// Converts a value, or returns `None` if it has no value of this type.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
pub(crate) fn cast(value: &Value, kind: Kind) -> Option<Value> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let text = value.to_text();
    match (kind, value) {
        (_, Value::Null) => Some(Value::Null),
        (Kind::Text | Kind::Empty, _) => Some(Value::Text(text)),
        (Kind::Boolean, Value::Integer(integer)) => Some(Value::Boolean(*integer != 0)),
        (Kind::Boolean, _) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "1" => Some(Value::Boolean(true)),
            "false" | "f" | "no" | "0" => Some(Value::Boolean(false)),
            _ => None,
        },
        (Kind::Integer | Kind::Number, Value::Boolean(boolean)) => {
            Some(Value::Integer((*boolean).into()))
        }
        (Kind::Integer | Kind::Number, _) => {
            let digits = text.trim().trim_start_matches('0');
            let number = match value {
                Value::Text(_) if digits.is_empty() && !text.trim().is_empty() => Value::Integer(0),
                Value::Text(_) => parse_number(digits).or_else(|| parse_number(text.trim()))?,
                number => number.clone(),
            };
            match (kind, &number) {
                (Kind::Number, _) => number.as_number().map(Value::Number),
                (_, Value::Number(number)) => {
                    let whole = number.round();
                    (whole.abs() < LIMIT).then_some(Value::Integer(whole as i64))
                }
                _ => Some(number),
            }
        }
    }
}

/// Matches `%` with any text and `_` with one character.
fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) =
        (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut index) = (0, 0);
    // The last `%` and the index of the text at which its match ends.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(character) = text.get(at) {
        match pattern.get(index) {
            Some('%') => {
                retry = Some((index, at));
                index += 1;
            }
            Some(expected) if *expected == '_' || expected == character => {
                at += 1;
                index += 1;
            }
            _ => {
                let Some((percent, end)) = retry else { return false };
                retry = Some((percent, end + 1));
                (at, index) = (end + 1, percent + 1);
            }
        }
    }
    pattern.iter().skip(index).all(|it| *it == '%')
}

pub(crate) fn not_a_number(value: &Value) -> ToolFailure {
    ToolFailure::new(format!("expected a number, found `{}`", shorten(&value.to_text())))
        .suggestion("`TRY_CAST(… AS DOUBLE)` makes null of text that is not a number")
        .permanent()
}

fn not_castable(value: &Value, kind: Kind) -> ToolFailure {
    let kind = match kind {
        Kind::Boolean => "boolean",
        Kind::Integer => "integer",
        _ => "number",
    };
    ToolFailure::new(format!("`{}` is no {kind}", shorten(&value.to_text())))
        .suggestion("`TRY_CAST` makes null of it")
        .permanent()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (text, pattern, expected) in [
            ("tea", "tea", true),
            ("tea", "t%", true),
            ("tea", "%a", true),
            ("tea", "_e_", true),
            ("tea", "_e", false),
            ("größe", "gr__e", true),
            ("aaaaaaaaab", "%a%a%b", true),
            ("", "%", true),
            ("", "_", false),
            ("tea", "", false),
        ] {
            assert_eq!(like(text, pattern), expected, "{text} {pattern}");
        }
    }

    #[test]
    fn arithmetic_is_exact_as_long_as_possible() {
        let check = |operator: Arithmetic, left, right, expected: Value| {
            assert_eq!(operator.apply(&left, &right).unwrap(), expected);
        };
        check(Arithmetic::Add, Value::Integer(2), Value::Integer(3), Value::Integer(5));
        check(Arithmetic::Divide, Value::Integer(7), Value::Integer(2), Value::Number(3.5));
        check(Arithmetic::DivideInteger, Value::Integer(7), Value::Integer(2), Value::Integer(3));
        check(Arithmetic::Divide, Value::Integer(7), Value::Integer(0), Value::Null);
        check(Arithmetic::Remainder, Value::Integer(7), Value::Integer(0), Value::Null);
        check(Arithmetic::Add, Value::Null, Value::text("x"), Value::Null);
        check(
            Arithmetic::Multiply,
            Value::Integer(i64::MAX),
            Value::Integer(2),
            Value::Number(1.844_674_407_370_955_2e19),
        );
        assert!(Arithmetic::Add.apply(&Value::Integer(1), &Value::text("x")).is_err());
    }

    #[test]
    fn values_are_cast() {
        for (value, kind, expected) in [
            (Value::text("007"), Kind::Integer, Some(Value::Integer(7))),
            (Value::text("0"), Kind::Integer, Some(Value::Integer(0))),
            (Value::text("0.5"), Kind::Number, Some(Value::Number(0.5))),
            (Value::text(" 12 "), Kind::Integer, Some(Value::Integer(12))),
            (Value::Number(2.5), Kind::Integer, Some(Value::Integer(3))),
            (Value::Number(1e300), Kind::Integer, None),
            (Value::text("x"), Kind::Number, None),
            (Value::text(""), Kind::Number, None),
            (Value::text("yes"), Kind::Boolean, Some(Value::Boolean(true))),
            (Value::Integer(3), Kind::Text, Some(Value::text("3"))),
            (Value::Null, Kind::Text, Some(Value::Null)),
        ] {
            assert_eq!(cast(&value, kind), expected, "{value:?}");
        }
    }
}
