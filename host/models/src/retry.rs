//! Pauses before retries.

use std::time::{Duration, SystemTime};

use cofferdam_tool::retry::Backoff;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// OpenAI's variant of [`RETRY_AFTER`], in milliseconds.
const RETRY_AFTER_MS: &str = "retry-after-ms";

/// Returns the pause that a response asks for.
pub(super) fn requested_pause(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    if let Some(milliseconds) = text(RETRY_AFTER_MS).and_then(number) {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let written = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(written) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(written).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Returns the pause after this number of attempts; `None` if no retry is left or the provider asks
/// for more than the maximum.
pub(super) fn pause(retries: &Backoff, attempts: u32, asked: Option<Duration>) -> Option<Duration> {
    let pause = retries.pause_after(attempts)?;
    match asked {
        Some(asked) => (asked <= retries.pause_max).then_some(asked),
        None => Some(pause.mul_f64(1.0 - share() / 2.0)),
    }
}

/// Returns a random number from 0 to 1, so that clients that failed together do not retry together.
fn share() -> f64 {
    let mut byte = [0];
    // Without randomness the full pause applies.
    let _no_matter = getrandom::fill(&mut byte);
    f64::from(u8::from_ne_bytes(byte)) / 256.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    #[test]
    fn waits_double_up_to_a_limit_and_end_with_the_tries() {
        let retries = Backoff { retries_max: 39, ..settings::RETRIES };
        for (tries, full) in [(1, 500), (2, 1000), (4, 4000), (7, 30_000), (39, 30_000)] {
            let full = Duration::from_millis(full);
            let wait = pause(&retries, tries, None).unwrap();
            assert!(wait <= full && wait >= full / 2, "{tries}: {wait:?}");
        }
        assert_eq!(pause(&retries, 40, None), None);
    }

    #[test]
    fn a_provider_gets_the_wait_it_asks_for_unless_it_is_too_long() {
        let retries = settings::RETRIES;
        assert_eq!(
            pause(&retries, 1, Some(Duration::from_secs(30))),
            Some(Duration::from_secs(30))
        );
        assert_eq!(pause(&retries, 1, Some(Duration::from_secs(31))), None);
    }

    #[test]
    fn what_is_asked_for_is_read_in_every_form() {
        let asked = |name: &'static str, value: &str| {
            super::requested_pause(&HeaderMap::from_iter([(
                name.try_into().unwrap(),
                value.try_into().unwrap(),
            )]))
        };
        assert_eq!(asked("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(asked("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(asked("retry-after-ms", "20"), Some(Duration::from_millis(20)));
        assert_eq!(asked("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        let later = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!(asked("retry-after", &later).unwrap() > Duration::from_secs(90));
        for nonsense in ["soon", "-1", "NaN", "1e99", "inf"] {
            assert_eq!(asked("retry-after", nonsense), None, "{nonsense}");
        }
    }
}
