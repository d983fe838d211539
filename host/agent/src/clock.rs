//! What a run reads the time from.

use std::time::Instant;

/// What a run reads the time from, for `max_duration` and rate limits.
pub trait Clock: Send + Sync {
    /// Now. Never earlier than before.
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
