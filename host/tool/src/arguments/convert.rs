//! Converts a supplied value to a declared type (`ARG-9` to `ARG-17`, `ARG-23`).
//!
//! A converter never invents a value (`ARG-35`): null converts only to null, and missing values are
//! handled before a converter is called.

use std::ops::RangeInclusive;

use serde_json::{Number, Value};

use super::draft::ValueDraft;
use super::meter::Meter;
use super::problem::FoundKind;
use super::{date_time, duration};
use crate::json;
use crate::schema::{Format, Kind};

/// Reason why a value does not convert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The value is of another kind.
    Kind,
    /// The value is of the right kind but too large, too small or not finite.
    Range,
}

/// Converts a value to a kind without parts. Arrays and objects are never the result of a
/// conversion (`ARG-19`).
pub(super) fn scalar(
    kind: &Kind,
    draft: &ValueDraft<'_>,
    strict: bool,
    meter: &mut Meter,
) -> Result<Value, Fault> {
    if draft.found() == FoundKind::Null && *kind != Kind::Null {
        return Err(Fault::Kind);
    }
    match kind {
        Kind::Null => (draft.found() == FoundKind::Null).then_some(Value::Null).ok_or(Fault::Kind),
        Kind::Boolean => boolean(draft, strict).map(Value::Bool),
        Kind::Integer(range) => integer(draft, strict, range, meter).map(Value::Number),
        Kind::Number { single } => number(draft, strict, *single, meter).map(Value::Number),
        Kind::Text(format) => text(draft, strict, *format, meter).map(Value::String),
        Kind::Array | Kind::Object => Err(Fault::Kind),
    }
}

fn boolean(draft: &ValueDraft<'_>, strict: bool) -> Result<bool, Fault> {
    if let Some(value) = draft.as_bool() {
        return Ok(value);
    }
    let word = tolerated(draft, strict)?;
    match word {
        _ if word.eq_ignore_ascii_case("true") => Ok(true),
        _ if word.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(Fault::Kind),
    }
}

fn integer(
    draft: &ValueDraft<'_>,
    strict: bool,
    range: &RangeInclusive<i128>,
    meter: &mut Meter,
) -> Result<Number, Fault> {
    let written = match draft.found() {
        FoundKind::Number(true) => draft.written(meter),
        FoundKind::Number(false) => return Err(Fault::Kind),
        _ => tolerated(draft, strict)?.into(),
    };
    let digits = written.strip_prefix(['-', '+']).unwrap_or(&written);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Kind);
    }
    let value =
        json::integer(&written).filter(|value| range.contains(value)).ok_or(Fault::Range)?;
    Number::from_i128(value).ok_or(Fault::Range)
}

fn number(
    draft: &ValueDraft<'_>,
    strict: bool,
    single: bool,
    meter: &mut Meter,
) -> Result<Number, Fault> {
    let written = match draft.found() {
        FoundKind::Number(_) => draft.written(meter),
        _ => tolerated(draft, strict)?.into(),
    };
    if ["nan", "infinity", "-infinity"].iter().any(|word| written.eq_ignore_ascii_case(word)) {
        return Err(Fault::Range);
    }
    if !is_decimal(&written) {
        return Err(Fault::Kind);
    }
    let fits = !single || written.parse::<f32>().is_ok_and(f32::is_finite);
    json::number(&written).filter(|_| fits).ok_or(Fault::Range)
}

/// Returns whether `text` is a number in decimal or exponent form with an optional sign. The point
/// may lead or trail (`ARG-13`).
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)))
        }
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
}

fn text(
    draft: &ValueDraft<'_>,
    strict: bool,
    format: Option<Format>,
    meter: &mut Meter,
) -> Result<String, Fault> {
    let length = draft.as_str().map_or(0, str::len);
    meter.spend(u64::try_from(length / 256).unwrap_or(u64::MAX));
    match (draft.as_str(), format) {
        (Some(text), None) => Ok(text.to_owned()),
        (Some(text), Some(format)) => formatted(text, format, strict).ok_or(Fault::Kind),
        (None, None) if !strict => Ok(draft.written(meter).into_owned()),
        (None, _) => Err(Fault::Kind),
    }
}

/// Returns the normalized string of a format, or `None` if the string does not have the format.
pub(super) fn formatted(text: &str, format: Format, strict: bool) -> Option<String> {
    match format {
        Format::Uuid => uuid(text),
        Format::DateTime => date_time::date_time(text, strict),
        Format::Date => date_time::date(text),
        Format::Time => date_time::time(text, strict),
        Format::Duration => duration::duration(text, strict),
    }
}

/// Parses 8-4-4-4-12 hexadecimal digits and returns them in lower case (`ARG-14`).
fn uuid(text: &str) -> Option<String> {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let is_hex = groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    (lengths == [8, 4, 4, 4, 12] && is_hex).then(|| text.to_ascii_lowercase())
}

/// Returns a string that may be converted to another kind, without the white space around it.
fn tolerated<'d>(draft: &'d ValueDraft<'_>, strict: bool) -> Result<&'d str, Fault> {
    let text = draft.as_str().filter(|_| !strict).ok_or(Fault::Kind)?;
    Ok(trimmed(text))
}

/// Removes JSON white space from both ends.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}
