//! Parses cells as numbers, and writes numbers as JSON.

use serde_json::Value;

/// Largest integer up to which all integers are exact as `f64`.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Parses the number in a cell. Surrounding white space is allowed; `inf` and `NaN` are not
/// numbers.
pub(crate) fn parse(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    // `parse` also accepts `inf`, `infinity` and `nan`, which in a table more likely mean something
    // else.
    let numeric =
        cell.chars().all(|it| it.is_ascii_digit() || matches!(it, '+' | '-' | '.' | 'e' | 'E'));
    if !numeric {
        return None;
    }
    cell.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Returns a number as JSON, as an integer if it is one.
pub(crate) fn json(number: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "a whole number in the range of i64")]
    match number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        true => Value::from(number as i64),
        false => Value::from(number),
    }
}

#[cfg(test)]
mod tests {
    use super::{json, parse};

    #[test]
    fn parses() {
        for (cell, expected) in [
            ("12", Some(12.0)),
            (" -3.5 ", Some(-3.5)),
            ("1e3", Some(1000.0)),
            ("", None),
            ("inf", None),
            ("NaN", None),
            ("1e999", None),
            ("1,000", None),
            ("12 kg", None),
        ] {
            assert_eq!(parse(cell), expected, "{cell}");
        }
    }

    #[test]
    fn writes() {
        for (number, expected) in
            [(12.0, "12"), (-0.5, "-0.5"), (1e300, "1e+300"), (f64::INFINITY, "null")]
        {
            assert_eq!(json(number).to_string(), expected);
        }
    }
}
