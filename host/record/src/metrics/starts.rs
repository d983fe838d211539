//! Times at which calls began, by their numbers.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of slots: calls in progress beyond it share a lock. A power of two.
const SLOTS: u64 = 4096;
/// Distance of the slots of successive numbers, so that they are in different cache lines. Odd, so
/// that each slot is used.
const STRIDE: u64 = 1021;
/// Bit of the numbers that are given out here.
const OWN: u64 = 1 << 63;

/// Times at which calls began.
pub(super) struct CallStarts {
    epoch: Instant,
    next: AtomicU64,
    slots: Box<[StartSlot]>,
    /// Calls whose slot is taken.
    others: Mutex<HashMap<u64, Instant>>,
}

/// Number of a call in progress, or 0, and nanoseconds from the epoch to its start.
#[derive(Default)]
struct StartSlot {
    number: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Default for CallStarts {
    fn default() -> Self {
        Self {
            epoch: Instant::now(),
            next: AtomicU64::new(0),
            slots: (0..SLOTS).map(|_| StartSlot::default()).collect(),
            others: Mutex::default(),
        }
    }
}

impl CallStarts {
    /// Notes the start of a call. Returns its number: `given`, unless that is 0.
    pub(super) fn begin(&self, given: u64) -> u64 {
        let number = match given {
            0 => OWN | (self.next.fetch_add(1, Ordering::Relaxed) + 1),
            given => given,
        };
        let now = Instant::now();
        let free = |slot: &&StartSlot| {
            let swap =
                slot.number.compare_exchange(0, number, Ordering::Acquire, Ordering::Relaxed);
            swap.is_ok()
        };
        match self.slot(number).filter(free) {
            Some(slot) => slot.nanoseconds.store(self.nanoseconds(now), Ordering::Relaxed),
            None => {
                let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
                others.insert(number, now);
            }
        }
        number
    }

    /// Returns the time since the start of a call, and forgets it.
    pub(super) fn end(&self, number: u64) -> Duration {
        let now = Instant::now();
        match self.slot(number).filter(|slot| slot.number.load(Ordering::Relaxed) == number) {
            Some(slot) => {
                let start = slot.nanoseconds.load(Ordering::Relaxed);
                slot.number.store(0, Ordering::Release);
                Duration::from_nanos(self.nanoseconds(now).saturating_sub(start))
            }
            None => {
                let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
                others.remove(&number).map_or(Duration::ZERO, |start| now - start)
            }
        }
    }

    /// Returns the number that was given for a call.
    pub(super) fn given(number: u64) -> u64 {
        if number & OWN == 0 { number } else { 0 }
    }

    fn slot(&self, number: u64) -> Option<&StartSlot> {
        let at = number.wrapping_mul(STRIDE) % SLOTS;
        self.slots.get(usize::try_from(at).ok()?)
    }

    fn nanoseconds(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_nanos()).unwrap_or(u64::MAX)
    }
}
