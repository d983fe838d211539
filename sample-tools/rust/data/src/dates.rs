//! Dates and times in ISO 8601.

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// A date with the seconds since its midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Days since 1970-01-01.
    pub(crate) days: i64,
    pub(crate) seconds: i64,
}

/// A date of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

impl Date {
    /// Returns the date that is a number of days after 1970-01-01.
    pub(crate) fn of_days(days: i64) -> Self {
        // Years begin in March, so that the leap day is the last one; 400 of them are an era.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: era * 400 + year_of_era + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
        }
    }

    /// Returns the number of days after 1970-01-01.
    pub(crate) fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let shifted_month = (self.month + 9) % 12;
        let day_of_year = (153 * shifted_month + 2) / 5 + self.day - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
            - 719_468
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Moment {
    /// Parses `2026-01-31`, optionally with a time after `T` or a blank. A time zone is ignored.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (date, time) = (text.get(..10)?, text.get(10..)?);
        let mut parts = date.split('-').map(digits);
        let date = Date { year: parts.next()??, month: parts.next()??, day: parts.next()?? };
        // Dates that do not exist, such as February 30, become another date.
        if Date::of_days(date.days()) != date {
            return None;
        }
        let mut seconds = 0;
        if let Some(time) = time.strip_prefix(['T', ' ']) {
            let mut parts = time.splitn(3, ':');
            let hours = digits(parts.next()?)?;
            let minutes = digits(parts.next().and_then(|it| it.get(..2))?)?;
            let rest = parts.next().and_then(|it| it.get(..2)).map_or(Some(0), digits)?;
            seconds = hours * 3_600 + minutes * 60 + rest;
        } else if !time.is_empty() {
            return None;
        }
        Some(Self { days: date.days(), seconds })
    }
}

fn digits(text: &str) -> Option<i64> {
    text.bytes().all(|it| it.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns the time of microseconds since midnight, such as `09:30:00`.
pub(crate) fn of_time(micros: i64) -> String {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let fraction = micros.rem_euclid(MICROS_PER_SECOND);
    let time = format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 {
        time
    } else {
        format!("{time}.{fraction:06}").trim_end_matches('0').to_owned()
    }
}

/// Returns the date and time of microseconds since 1970 in UTC, such as `2026-01-31T09:30:00Z`.
pub(crate) fn of_micros(micros: i64) -> String {
    let micros_per_day = SECONDS_PER_DAY * MICROS_PER_SECOND;
    let date = Date::of_days(micros.div_euclid(micros_per_day));
    format!("{date}T{}Z", of_time(micros.rem_euclid(micros_per_day)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted() {
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (20_456, "2026-01-03"),
            (19_782, "2024-02-29"),
            (11_016, "2000-02-29"),
            (-25_509, "1900-02-28"),
        ] {
            assert_eq!(Date::of_days(days).to_string(), expected);
            assert_eq!(Moment::parse(expected), Some(Moment { days, seconds: 0 }));
        }
        for days in (-800_000..800_000).step_by(97) {
            assert_eq!(Date::of_days(days).days(), days);
        }
    }

    #[test]
    fn moments_are_parsed_and_written() {
        assert_eq!(of_micros(1_767_434_400_500_000), "2026-01-03T10:00:00.5Z");
        assert_eq!(of_micros(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(of_time(34_200_000_000), "09:30:00");
        assert_eq!(
            Moment::parse("1970-01-02T01:02:03.5Z"),
            Some(Moment { days: 1, seconds: 3_723 })
        );
        assert_eq!(Moment::parse("1970-01-02 01:02"), Some(Moment { days: 1, seconds: 3_720 }));
        for text in ["", "2026-02-30", "2026-1-1", "2026-01-01x", "+026-01-01", "ä026-01-01"] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
        let _ = (of_micros(i64::MIN), of_micros(i64::MAX), of_time(i64::MAX));
    }
}
