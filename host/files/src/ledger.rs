//! What a store holds, as far as it is known.
//!
//! Counting may take long, so it happens at the first change, and later changes go by that count and what they did themselves.
//! Because others may change the store too, a count is trusted for fifty times as long as it took and at least a
//! second, so that counting takes a fiftieth of the time at most.

use std::time::{Duration, Instant};

use crate::Usage;

const TRUSTED_MIN: Duration = Duration::from_secs(1);
const TRUSTED_PER_COUNT: u32 = 50;

/// The usage of a store as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    known: Option<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    usage: Usage,
    trusted_until: Instant,
}

impl Ledger {
    /// What the store holds, if a count is still trusted.
    pub(crate) fn known(&self) -> Option<Usage> {
        let now = Instant::now();
        self.known.filter(|known| now < known.trusted_until).map(|known| known.usage)
    }

    /// Enters a count that began at `started`, and gives it back.
    pub(crate) fn counted(&mut self, usage: Usage, started: Instant) -> Usage {
        let trusted = started.elapsed().saturating_mul(TRUSTED_PER_COUNT).max(TRUSTED_MIN);
        self.known = Instant::now().checked_add(trusted).map(|trusted_until| Known { usage, trusted_until });
        usage
    }

    /// Enters what a change that took place has made of the usage.
    pub(crate) fn change(&mut self, change: impl FnOnce(Usage) -> Usage) {
        if let Some(known) = &mut self.known {
            known.usage = change(known.usage);
        }
    }

    /// Enters what a change that took place has left.
    pub(crate) fn enter(&mut self, usage: Usage) {
        self.change(|_| usage);
    }

    /// Enters that a file of `bytes` is gone.
    pub(crate) fn enter_deletion(&mut self, bytes: u64) {
        self.change(|usage| usage.without_file(bytes));
    }

    /// Enters that a directory is gone.
    pub(crate) fn enter_removal(&mut self) {
        self.change(Usage::without_directory);
    }

    /// After a change that failed half-way nobody knows what is there.
    pub(crate) fn forget(&mut self) {
        self.known = None;
    }
}
