//! Numbers: parsed from their source text and compared by their exact value.
//!
//! A comparison of 64-bit floats would find 2^53 and 2^53 + 1 equal, and 0.3 not a multiple of 0.1.
//! So integers are compared as integers, and multiples are computed on the visible decimal digits.

use std::cmp::Ordering;

use serde_json::Number;

/// Bound from which every 64-bit float is larger than any integer of a [`Number`].
const BEYOND_INTEGERS: f64 = 36_893_488_147_419_103_232.0; // 2^65

/// Returns whether a number literal has neither fraction nor exponent (`ARG-11`).
pub(crate) fn is_integer_literal(text: &str) -> bool {
    !text.contains(['.', 'e', 'E'])
}

/// Parses an optional sign and any number of ASCII digits. Returns `None` if the value has more
/// than 20 significant digits, which is too large for any declared range (`ARG-12`).
pub(crate) fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    if digits.len() > 20 {
        return None;
    }
    let magnitude: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    Some(if negative { -magnitude } else { magnitude })
}

/// Parses a decimal number. Returns `None` if a 64-bit float cannot hold it. Integers that fit into
/// 64 bits stay exact, larger ones become the nearest float. `-0` becomes the float that keeps its
/// sign.
pub(crate) fn number(text: &str) -> Option<Number> {
    if is_integer_literal(text)
        && let Some(number) =
            integer(text).filter(|value| !(*value == 0 && text.starts_with('-'))).and_then(exact)
    {
        return Some(number);
    }
    Number::from_f64(text.parse().ok()?)
}

fn exact(value: i128) -> Option<Number> {
    Number::from_i128(value)
}

/// Compares two numbers by value.
pub(crate) fn compare(left: &Number, right: &Number) -> Ordering {
    match (as_integer(left), as_integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => integer_to_float(left, as_float(right)),
        (None, Some(right)) => integer_to_float(right, as_float(left)).reverse(),
        (None, None) => as_float(left).partial_cmp(&as_float(right)).unwrap_or(Ordering::Equal),
    }
}

/// Returns whether the number has no fraction, which JSON Schema calls an integer.
pub(crate) fn is_whole(number: &Number) -> bool {
    as_integer(number).is_some() || as_float(number).fract() == 0.0
}

/// Returns whether `value` is `divisor` times a whole number, by their decimal digits. A zero
/// divisor has no multiples.
pub(crate) fn is_multiple(value: &Number, divisor: &Number) -> bool {
    let (Some(value), Some(divisor)) = (Decimal::of(value), Decimal::of(divisor)) else {
        return false;
    };
    if divisor.digits == 0 {
        return false;
    }
    let shift = value.exponent - divisor.exponent;
    if shift < 0 {
        return value.digits == 0
            || divisor.scaled(-shift).is_some_and(|scaled| value.digits % scaled == 0);
    }
    // Remainders stay below the divisor, so multiplying by ten never overflows.
    let remainder =
        (0..shift).fold(value.digits % divisor.digits, |rest, _| rest * 10 % divisor.digits);
    remainder == 0
}

/// Magnitude of a number: `digits` times ten to the power of `exponent`.
struct Decimal {
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// Parses the shortest representation of the number, which has at most 20 digits.
    fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let text = text.trim_start_matches('-');
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let exponent: i32 = exponent.parse().ok()?;
        Some(Self {
            digits: format!("{whole}{fraction}").parse().ok()?,
            exponent: exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?,
        })
    }

    fn scaled(&self, exponent: i32) -> Option<u128> {
        self.digits.checked_mul(10_u128.checked_pow(u32::try_from(exponent).ok()?)?)
    }
}

fn as_integer(number: &Number) -> Option<i128> {
    number.as_i128()
}

fn as_float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::MAX)
}

fn integer_to_float(integer: i128, float: f64) -> Ordering {
    if float.abs() >= BEYOND_INTEGERS {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    // Below 2^65 the integer part of a float fits, and the cast is exact.
    let whole = float.trunc() as i128;
    integer.cmp(&whole).then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal))
}
