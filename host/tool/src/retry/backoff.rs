//! Number of retries and the pauses between them.

use std::time::Duration;

/// Number of retries, and the pause before each: twice the previous one, up to a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Maximum number of retries after the first attempt.
    pub retries_max: u32,
    /// Pause before the first retry.
    pub pause: Duration,
    /// Maximum pause.
    pub pause_max: Duration,
}

impl Backoff {
    /// Returns the pause after `attempts` failed attempts, or `None` if no retry is left.
    #[must_use]
    pub fn pause_after(&self, attempts: u32) -> Option<Duration> {
        if attempts > self.retries_max {
            return None;
        }
        let doublings = attempts.saturating_sub(1);
        Some(self.pause.saturating_mul(2_u32.saturating_pow(doublings)).min(self.pause_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_maximum_and_end_with_the_retries() {
        let pause = Duration::from_millis(5);
        let backoff = Backoff { retries_max: 40, pause, pause_max: Duration::from_millis(30) };
        let pauses: Vec<_> = (1..=4).map(|attempts| backoff.pause_after(attempts)).collect();
        assert_eq!(pauses, [5, 10, 20, 30].map(|millis| Some(Duration::from_millis(millis))));
        assert_eq!(backoff.pause_after(40), Some(backoff.pause_max));
        assert_eq!(backoff.pause_after(41), None);
        assert_eq!(Backoff { retries_max: 0, ..backoff }.pause_after(1), None);
    }
}
