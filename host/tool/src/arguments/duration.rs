//! Durations in ISO 8601, or in the clock form that models also write (`ARG-17`).

use super::convert::trimmed;

/// Returns an ISO 8601 duration as written, or converts the clock form to one unless `strict`.
pub(super) fn duration(text: &str, strict: bool) -> Option<String> {
    let text = trimmed(text);
    let (sign, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => ("-", magnitude),
        None => ("", text),
    };
    if is_iso(magnitude) {
        return Some(text.to_owned());
    }
    let iso = clock(magnitude).filter(|_| !strict)?;
    // Zero has no sign.
    Some(if iso == ZERO { iso } else { format!("{sign}{iso}") })
}

const ZERO: &str = "PT0S";

/// Returns whether `text` is either weeks, or years to seconds in order, with at least one part and
/// at least one after `T`.
fn is_iso(text: &str) -> bool {
    let Some(parts) = text.strip_prefix('P') else { return false };
    let (date, time) = match parts.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (parts, None),
    };
    match time {
        Some(time) => {
            (date.is_empty() || are_parts(date, "YMD", false)) && are_parts(time, "HMS", true)
        }
        None => are_parts(date, "YMD", false) || are_parts(date, "W", false),
    }
}

/// Returns whether `text` is one or more numbers, each followed by one of the designators, in their
/// order. The seconds may have a fraction if `fraction_allowed`.
fn are_parts(text: &str, designators: &str, fraction_allowed: bool) -> bool {
    let mut designators = designators.chars();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(end) = rest.find(|character: char| character.is_ascii_uppercase()) else {
            return false;
        };
        let (Some((number, after)), Some(designator)) =
            (rest.split_at_checked(end), rest.chars().nth(end))
        else {
            return false;
        };
        let fits = is_number(number, fraction_allowed && designator == 'S');
        if !fits || !designators.any(|known| known == designator) {
            return false;
        }
        rest = after.strip_prefix(designator).unwrap_or_default();
    }
    !text.is_empty()
}

fn is_number(text: &str, fraction_allowed: bool) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, fraction)) => fraction_allowed && digits(whole) && digits(fraction),
        None => digits(text),
    }
}

/// Converts `[d.]h:m:s[.fraction]` to an ISO 8601 duration without zero parts.
fn clock(text: &str) -> Option<String> {
    let mut fields = text.split(':');
    let (first, minutes, seconds) = (fields.next()?, fields.next()?, fields.next()?);
    if fields.next().is_some() {
        return None;
    }
    let (days, hours) = first.split_once('.').unwrap_or(("0", first));
    let (seconds, fraction) = match seconds.split_once('.') {
        Some((seconds, fraction)) => (seconds, Some(fraction)),
        None => (seconds, None),
    };
    let fraction = fraction_of_second(fraction)?;
    let date = part(significant(days)?, "D");
    let mut time = part(field(hours, 24)?, "H") + &part(field(minutes, 60)?, "M");
    let seconds = field(seconds, 60)?;
    time +=
        &if fraction.is_empty() { part(seconds, "S") } else { format!("{seconds}.{fraction}S") };
    Some(match (date.is_empty(), time.is_empty()) {
        (true, true) => ZERO.to_owned(),
        (_, true) => format!("P{date}"),
        _ => format!("P{date}T{time}"),
    })
}

/// Parses at most seven digits and strips trailing zeros.
fn fraction_of_second(fraction: Option<&str>) -> Option<&str> {
    let Some(fraction) = fraction else { return Some("") };
    (fraction.len() <= 7 && is_number(fraction, false)).then(|| fraction.trim_end_matches('0'))
}

/// Parses one or two digits whose value is below `limit`.
fn field(text: &str, limit: u32) -> Option<&str> {
    let is_below = text.len() <= 2 && text.parse::<u32>().is_ok_and(|number| number < limit);
    significant(text).filter(|_| is_below)
}

/// Strips leading zeros from a number.
fn significant(text: &str) -> Option<&str> {
    let significant = text.trim_start_matches('0');
    is_number(text, false).then_some(if significant.is_empty() { "0" } else { significant })
}

fn part(number: &str, designator: &str) -> String {
    if number == "0" { String::new() } else { format!("{number}{designator}") }
}
