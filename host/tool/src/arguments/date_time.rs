//! Dates and times of day (`ARG-15`, `ARG-16`).

/// A date-time with seconds and an offset. Without tolerance it must have both; otherwise a date
/// alone is its midnight, missing seconds are zero, and a missing offset is UTC.
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

/// `YYYY-MM-DD`, a day of the Gregorian calendar.
pub(super) fn date(text: &str) -> Option<String> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let exists = (1..=days_in(year, month)?).contains(&day);
    (exists && rest.is_empty()).then(|| text.to_owned())
}

/// A time of day with seconds. Without tolerance it must have them; otherwise missing ones are
/// zero.
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

/// `hh:mm[:ss[.fraction]]` and what follows it.
struct Clock<'t> {
    clock: &'t str,
    has_seconds: bool,
    /// `Z`, `±hh:mm` or nothing.
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

/// Takes `hh:mm` off.
fn hour_and_minute(text: &str) -> Option<&str> {
    below(below(text, 24)?.strip_prefix(':')?, 60)
}

/// Takes two digits off that are below `limit`.
fn below(text: &str, limit: u32) -> Option<&str> {
    let (number, rest) = digits(text, 2)?;
    (number < limit).then_some(rest)
}

/// Takes `.` and one to nine digits off, if they are there.
fn fraction(text: &str) -> Option<&str> {
    let Some(fraction) = text.strip_prefix('.') else { return Some(text) };
    let rest = fraction.trim_start_matches(|character: char| character.is_ascii_digit());
    (1..=9).contains(&(fraction.len() - rest.len())).then_some(rest)
}

/// Takes exactly `count` digits off.
fn digits(text: &str, count: usize) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(count)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| is_number)?, rest))
}
