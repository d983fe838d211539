//! Clock of a run.

use std::time::Instant;

/// Source of time for `max_duration` and rate limits.
pub trait Clock: Send + Sync {
    /// Returns the current time, which never decreases.
    fn now(&self) -> Instant;
}

/// The monotonic clock of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }
}
