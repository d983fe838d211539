//! Dates and times of day (`ARG-15`, `ARG-16`).

/// Parses a date-time and returns it with seconds and an offset. If `strict`, it must have both;
/// otherwise a bare date is its midnight, missing seconds are zero, and a missing offset is UTC.
pub(super) fn date_time(text: &str, strict: bool) -> Option<String> {
    let Some((day, rest)) = text.split_once('T') else {
        return date(text).filter(|_| !strict).map(|day| format!("{day}T00:00:00Z"));
    };
    date(day)?;
    let time = Clock::read(rest)?;
    if strict && (!time.has_seconds || time.offset.is_empty()) {
        return None;
    }
    let offset = if time.offset.is_empty() { "Z" } else { time.offset };
    Some(format!("{day}T{}{offset}", time.with_seconds()))
}

/// Parses `YYYY-MM-DD`, a day of the Gregorian calendar.
pub(super) fn date(text: &str) -> Option<String> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let exists = (1..=days_in(year, month)?).contains(&day);
    (exists && rest.is_empty()).then(|| text.to_owned())
}

/// Parses a time of day and returns it with seconds. If `strict`, it must have them; otherwise
/// missing seconds are zero.
pub(super) fn time(text: &str, strict: bool) -> Option<String> {
    let time = Clock::read(text).filter(|time| time.has_seconds || !strict)?;
    Some(format!("{}{}", time.with_seconds(), time.offset))
}

fn days_in(year: u32, month: u32) -> Option<u32> {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    Some(match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => return None,
    })
}

/// A time of day, `hh:mm[:ss[.fraction]]`, and its offset.
struct Clock<'t> {
    clock: &'t str,
    has_seconds: bool,
    /// `Z`, `±hh:mm` or empty.
    offset: &'t str,
}

impl<'t> Clock<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let rest = hour_and_minute(text)?;
        let (rest, has_seconds) = match rest.strip_prefix(':') {
            Some(seconds) => (fraction(below(seconds, 60)?)?, true),
            None => (rest, false),
        };
        let is_offset = match rest.strip_prefix(['+', '-']) {
            Some(offset) => hour_and_minute(offset)?.is_empty(),
            None => rest.is_empty() || rest == "Z",
        };
        let clock = text.strip_suffix(rest)?;
        is_offset.then_some(Self { clock, has_seconds, offset: rest })
    }

    fn with_seconds(&self) -> String {
        if self.has_seconds { self.clock.to_owned() } else { format!("{}:00", self.clock) }
    }
}

/// Strips `hh:mm`.
fn hour_and_minute(text: &str) -> Option<&str> {
    below(below(text, 24)?.strip_prefix(':')?, 60)
}

/// Strips two digits whose value is below `limit`.
fn below(text: &str, limit: u32) -> Option<&str> {
    let (number, rest) = digits(text, 2)?;
    (number < limit).then_some(rest)
}

/// Strips an optional `.` with one to nine digits.
fn fraction(text: &str) -> Option<&str> {
    let Some(fraction) = text.strip_prefix('.') else { return Some(text) };
    let rest = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
    (1..=9).contains(&(fraction.len() - rest.len())).then_some(rest)
}

/// Splits off exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| is_number)?, rest))
}
