//! Rate limits per principal.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;

/// Maximum number of principals that are tracked at the same time. Names come from verified tokens,
/// so guessing cannot exhaust it.
const NAMES_MAX: usize = 10_000;

/// Sustained rate and burst size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Sustained requests per second; 0 means no limit.
    pub per_second: f64,
    /// Number of requests that may arrive at once after a pause.
    pub burst: f64,
}

impl Default for Rate {
    fn default() -> Self {
        Self { per_second: 200.0, burst: 1000.0 }
    }
}

/// Counts requests by name, with one token bucket each.
pub(super) struct Counter {
    rate: Rate,
    buckets: Mutex<HashMap<String, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl Counter {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Counts one request. Returns whether it is within the rate.
    pub(super) fn admits(&self, name: &str, now: Instant) -> bool {
        let Rate { per_second, burst } = self.rate;
        if per_second <= 0.0 {
            return true;
        }
        let refilled = |bucket: &Bucket| {
            let since = now.saturating_duration_since(bucket.at).as_secs_f64();
            burst.min(since.mul_add(per_second, bucket.left))
        };
        let mut buckets = self.buckets.lock();
        if buckets.len() >= NAMES_MAX {
            // A full bucket is equivalent to a missing one.
            buckets.retain(|_, bucket| refilled(bucket) < burst);
        }
        let has_room = buckets.len() < NAMES_MAX;
        let left = match buckets.get_mut(name) {
            Some(bucket) => {
                *bucket = Bucket { left: refilled(bucket), at: now };
                &mut bucket.left
            }
            None if has_room => {
                &mut buckets.entry(name.to_owned()).or_insert(Bucket { left: burst, at: now }).left
            }
            None => return false,
        };
        let is_admitted = *left >= 1.0;
        if is_admitted {
            *left -= 1.0;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let counter = Counter::new(Rate { per_second: 2.0, burst: 3.0 });
        let start = Instant::now();
        let admitted =
            |name: &str, ms: u64| counter.admits(name, start + Duration::from_millis(ms));
        assert_eq!(
            [admitted("a", 0), admitted("a", 0), admitted("a", 0), admitted("a", 0)],
            [true, true, true, false]
        );
        assert!(admitted("b", 0), "another principal is not held up");
        assert!(!admitted("a", 400));
        assert!(admitted("a", 900));
        assert!(!admitted("a", 910));
    }

    #[test]
    fn no_rate_is_no_limit() {
        let counter = Counter::new(Rate { per_second: 0.0, burst: 0.0 });
        assert!((0..1000).all(|_| counter.admits("a", Instant::now())));
    }
}
