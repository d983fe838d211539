//! Times of lines: microseconds since 1970 in UTC, written as RFC 3339.

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MICROS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;

/// Time in UTC with microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcTime(i64);

/// Error returned for a string that is neither an age nor a date.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a time; write an age such as 30m, 12h or 7d, or a date such as 2026-11-24 or \
     2026-11-24T08:30:00Z"
)]
pub struct InvalidTime(String);

/// Wall clock and monotonic clock at one moment.
#[derive(Clone, Copy)]
pub(crate) struct ClockAnchor {
    wall: UtcTime,
    monotonic: Instant,
}

impl ClockAnchor {
    pub(crate) fn now() -> Self {
        Self { wall: UtcTime::now(), monotonic: Instant::now() }
    }

    /// Returns the wall time of an earlier moment.
    pub(crate) fn time(self, at: Instant) -> UtcTime {
        self.wall.before(self.monotonic.saturating_duration_since(at))
    }
}

impl UtcTime {
    /// Returns the current time.
    #[must_use]
    pub fn now() -> Self {
        Self::from(SystemTime::now())
    }

    /// Returns the time that is `micros` microseconds after the start of 1970.
    #[must_use]
    pub fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since the start of 1970.
    #[must_use]
    pub fn micros(self) -> i64 {
        self.0
    }

    /// Returns the time `duration` earlier.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the time `micros` microseconds later.
    pub(crate) fn after(self, micros: u64) -> Self {
        Self(self.0.saturating_add_unsigned(micros))
    }

    /// Returns the time elapsed since `earlier`, or zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// Parses `2026-11-22T05:36:06.123456Z`, with any number of digits after the point or none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
        let mut parts = date.splitn(3, '-').map(digits);
        let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
        let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
        let mut parts = time.splitn(3, ':').map(digits);
        let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
        let is_valid = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 61;
        if !is_valid {
            return None;
        }
        if civil(days(year, month, day)) != (year, month, day) {
            return None;
        }
        let seconds = days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
        Some(Self(seconds * MICROS + micros(fraction)?))
    }

    /// Parses an age such as `30m`, `12h` or `7d`, or a date such as `2026-11-24` or
    /// `2026-11-24T08:30:00Z`.
    ///
    /// # Errors
    /// [`InvalidTime`].
    pub fn parse_age_or_date(text: &str) -> Result<Self, InvalidTime> {
        let units = [('s', 1), ('m', 60), ('h', 60 * 60), ('d', 24 * 60 * 60)];
        let age = units.iter().find_map(|(unit, seconds)| {
            let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
            Some(Duration::from_secs(number.saturating_mul(*seconds)))
        });
        if let Some(age) = age {
            return Ok(Self::now().before(age));
        }
        let date = if text.contains('T') { text.to_owned() } else { format!("{text}T00:00:00Z") };
        Self::parse(&date).ok_or_else(|| InvalidTime(text.to_owned()))
    }

    /// Returns year, month, day, hour, minute, second and microsecond.
    fn parts(self) -> [i64; 7] {
        let (seconds, micros) = (self.0.div_euclid(MICROS), self.0.rem_euclid(MICROS));
        let (day, second) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
        let (year, month, date) = civil(day);
        [year, month, date, second / 3600, second / 60 % 60, second % 60, micros]
    }

    /// Returns the time as it is written, if its year has four digits. Each line has a time, and
    /// the machinery of formats takes several times as long.
    fn bytes(self) -> Option<[u8; 27]> {
        let parts = self.parts();
        let [year, ..] = parts;
        if !(0..=9999).contains(&year) {
            return None;
        }
        let mut text = *b"0000-00-00T00:00:00.000000Z";
        let ranges = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19, 20..26];
        for (range, mut number) in ranges.into_iter().zip(parts) {
            for digit in text.get_mut(range)?.iter_mut().rev() {
                *digit = b'0' + u8::try_from(number % 10).ok()?;
                number /= 10;
            }
        }
        Some(text)
    }

    /// Parses a time as [`compact`](Self::compact) writes it.
    pub(crate) fn parse_compact(text: &str) -> Option<Self> {
        let part = |range| text.get(range);
        let date = format!("{}-{}-{}", part(0..4)?, part(4..6)?, part(6..8)?);
        let time = format!("{}:{}:{}", part(9..11)?, part(11..13)?, text.get(13..)?);
        Self::parse(&format!("{date}T{time}"))
    }

    /// Returns the time as `20261122T053606.123456Z`, for file names.
    pub(crate) fn compact(self) -> String {
        self.to_string().replace(['-', ':'], "")
    }
}

impl From<SystemTime> for UtcTime {
    fn from(time: SystemTime) -> Self {
        let signed = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self(signed(after)),
            Err(before) => Self(-signed(before.duration())),
        }
    }
}

impl std::fmt::Display for UtcTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(text) = self.bytes() {
            return f.write_str(std::str::from_utf8(&text).unwrap_or_default());
        }
        let [year, month, date, hour, minute, second, micros] = self.parts();
        write!(f, "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

impl Serialize for UtcTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.bytes();
        match text.as_ref().and_then(|text| std::str::from_utf8(text).ok()) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for UtcTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TimeVisitor;
        impl serde::de::Visitor<'_> for TimeVisitor {
            type Value = UtcTime;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a time such as `2026-11-22T05:36:06.123456Z`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<UtcTime, E> {
                UtcTime::parse(text)
                    .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(TimeVisitor)
    }
}

fn digits(text: &str) -> Option<i64> {
    let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Returns the microseconds of the digits after the point.
fn micros(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded = fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
    Some(padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
}

/// Returns the day number of a civil date (Howard Hinnant's algorithm); 1970-01-01 is 0.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Returns year, month and day of a day number.
fn civil(day: i64) -> (i64, i64, i64) {
    let day = day.saturating_add(719_468);
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let date = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ages_or_dates() {
        let age = |typed: &str| {
            let since = UtcTime::parse_age_or_date(typed).unwrap();
            UtcTime::now().since(since).as_secs()
        };
        assert_eq!(age("2d"), 2 * 24 * 60 * 60);
        assert_eq!(age("90s"), 90);
        let date = UtcTime::parse_age_or_date("2026-11-24").unwrap();
        assert_eq!(date.to_string(), "2026-11-24T00:00:00.000000Z");
        assert!(UtcTime::parse_age_or_date("2026-11-24T08:30:00Z").is_ok());
        for wrong in ["", "yesterday", "2026-13-01", "2026-02-30", "2025-02-29", "d"] {
            let error = UtcTime::parse_age_or_date(wrong).unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{wrong}` is not a time; ")));
        }
    }

    #[test]
    fn times_are_written_and_read() {
        for (micros, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_795_325_766_123_456, "2026-11-22T05:36:06.123456Z"),
            (4_102_444_799_999_999, "2099-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(UtcTime::from_micros(micros).to_string(), text);
            assert_eq!(UtcTime::parse(text), Some(UtcTime::from_micros(micros)));
        }
        assert_eq!(UtcTime::parse("1970-01-01T00:00:01Z"), Some(UtcTime::from_micros(MICROS)));
        assert_eq!(UtcTime::from_micros(0).compact(), "19700101T000000.000000Z");
        for text in ["", "Z", "1970-01-01", "1970-13-01T00:00:00Z", "1970-01-01T00:00:00.xZ"] {
            assert_eq!(UtcTime::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_has_one_date() {
        for day in -200_000..200_000 {
            let (year, month, date) = civil(day);
            assert_eq!(days(year, month, date), day);
        }
        let _ = UtcTime::from_micros(i64::MAX).to_string();
        let _ = UtcTime::from_micros(i64::MIN).to_string();
    }
}
