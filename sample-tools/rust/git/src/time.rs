//! Times of commits.

use std::fmt;

const DAY_SECONDS: i64 = 86_400;

/// Point in time with the offset of a time zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Time {
    /// Seconds since 1970, UTC.
    pub(crate) seconds: i64,
    offset_minutes: i64,
}

impl Time {
    /// Parses `SECONDS OFFSET`, for example `1700000000 +0130`. Invalid parts are 0.
    pub(crate) fn parse_raw(text: &str) -> Self {
        let mut parts = text.split_ascii_whitespace();
        let mut number = || parts.next().and_then(|part| part.parse::<i64>().ok()).unwrap_or(0);
        // Limits keep sums far from overflow.
        let seconds = number().clamp(-1 << 40, 1 << 40);
        let offset = number().clamp(-2359, 2359);
        Self { seconds, offset_minutes: offset / 100 * 60 + offset % 100 }
    }

    /// Parses a date such as `2026-01-31`, at midnight UTC, or a time such as
    /// `2026-01-31T12:00:00+01:00`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, time) = match text.trim().split_once(['T', ' ']) {
            Some((date, time)) => (date, Some(time)),
            None => (text.trim(), None),
        };
        let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
        let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
        if !(0..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        let mut result = Self { seconds: days(year, month, day) * DAY_SECONDS, offset_minutes: 0 };
        if let Some(time) = time {
            let (clock, offset) = match time.find(['Z', '+', '-']) {
                Some(at) => (time.get(..at)?, time.get(at..)?),
                None => (time, "Z"),
            };
            let clock = clock.split('.').next()?.trim_end();
            let mut parts = clock.splitn(3, ':').map(str::parse::<i64>);
            let (hour, minute) = (parts.next()?.ok()?, parts.next()?.ok()?);
            let second = parts.next().unwrap_or(Ok(0)).ok()?;
            let in_range = |value, max| (0..=max).contains(&value);
            if !in_range(hour, 24) || !in_range(minute, 59) || !in_range(second, 60) {
                return None;
            }
            result.seconds += hour * 3600 + minute * 60 + second;
            if offset != "Z" {
                let digits: String = offset.chars().filter(|it| *it != ':').collect();
                result.offset_minutes = Self::parse_raw(&format!("0 {digits}")).offset_minutes;
                result.seconds -= result.offset_minutes * 60;
            }
        }
        Some(result)
    }

    /// Returns the date in the time zone of the author.
    pub(crate) fn date(&self) -> String {
        self.to_string().split('T').next().unwrap_or_default().to_owned()
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let local = self.seconds + self.offset_minutes * 60;
        let (year, month, day) = civil(local.div_euclid(DAY_SECONDS));
        let second = local.rem_euclid(DAY_SECONDS);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let sign = if self.offset_minutes < 0 { '-' } else { '+' };
        let offset = self.offset_minutes.abs();
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{sign}{:02}:{:02}",
            offset / 60,
            offset % 60
        )
    }
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

/// Returns year, month and day of the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let year = era * 400 + year_of_era;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2000-03-01", 951_868_800),
            ("2100-03-01", 4_107_542_400),
            ("1969-12-31T23:59:59", -1),
            ("2026-01-31T12:00:00+01:30", 1_769_855_400),
            ("2026-01-31 10:30Z", 1_769_855_400),
        ] {
            let time = Time::parse(text).unwrap();
            assert_eq!(time.seconds, seconds, "{text}");
            assert!(time.to_string().starts_with(text.get(..10).unwrap()), "{time}");
        }
    }

    #[test]
    fn other_texts_are_no_dates() {
        for text in ["", "yesterday", "2026-13-01", "2026-01", "2026-01-01T25:00", "1-2-3T"] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
        assert_eq!(Time::parse_raw("x y"), Time::default());
        Time::parse_raw("9223372036854775807 -9999").to_string();
    }
}
