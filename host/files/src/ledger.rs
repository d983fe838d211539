//! Tracks the usage of a store.
//!
//! Counting may take long, so it happens at the first change, and later changes add their own
//! effect to that count. Because others may change the store too, a count is trusted for fifty
//! times as long as it took and at least a second, so that counting takes a fiftieth of the time at
//! most. A ledger of growth needs no count and is always trusted.

use std::time::{Duration, Instant};

use crate::{QuotaCounts, Usage};

const TRUSTED_MIN: Duration = Duration::from_secs(1);
const TRUSTED_PER_COUNT: u32 = 50;

/// Last known usage of a store.
#[derive(Debug, Default)]
pub(crate) struct UsageLedger {
    counts: QuotaCounts,
    known: Option<KnownUsage>,
    has_changed: bool,
}

#[derive(Debug, Clone, Copy)]
struct KnownUsage {
    usage: Usage,
    /// `None` if it is trusted forever.
    trusted_until: Option<Instant>,
}

impl UsageLedger {
    /// Creates a ledger for a quota that counts as `counts` says.
    pub(crate) fn new(counts: QuotaCounts) -> Self {
        let known = match counts {
            QuotaCounts::Total => None,
            QuotaCounts::Growth => Some(KnownUsage { usage: counts.start(), trusted_until: None }),
        };
        Self { counts, known, has_changed: false }
    }

    /// Returns true once, for the first change of a store that counts growth.
    pub(crate) fn is_first_change_of_growth(&mut self) -> bool {
        self.counts == QuotaCounts::Growth && !std::mem::replace(&mut self.has_changed, true)
    }

    /// Returns the usage of the store, if a count is still trusted.
    pub(crate) fn known(&self) -> Option<Usage> {
        let now = Instant::now();
        self.known
            .filter(|known| known.trusted_until.is_none_or(|until| now < until))
            .map(|known| known.usage)
    }

    /// Records a count that began at `started`, and returns its usage.
    pub(crate) fn counted(&mut self, usage: Usage, started: Instant) -> Usage {
        let trusted = started.elapsed().saturating_mul(TRUSTED_PER_COUNT).max(TRUSTED_MIN);
        self.known = Instant::now()
            .checked_add(trusted)
            .map(|trusted_until| KnownUsage { usage, trusted_until: Some(trusted_until) });
        usage
    }

    /// Records the effect of a completed change on the usage.
    pub(crate) fn change(&mut self, change: impl FnOnce(Usage) -> Usage) {
        if let Some(known) = &mut self.known {
            known.usage = change(known.usage);
        }
    }

    /// Records the usage after a completed change.
    pub(crate) fn enter(&mut self, usage: Usage) {
        self.change(|_| usage);
    }

    /// Records the deletion of a file of `bytes` bytes.
    pub(crate) fn enter_deletion(&mut self, bytes: u64) {
        self.change(|usage| usage.without_file(bytes));
    }

    /// Records the removal of a directory.
    pub(crate) fn enter_removal(&mut self) {
        self.change(Usage::without_directory);
    }

    /// Discards the count after a change that failed halfway, because the usage is unknown. Growth
    /// keeps its previous value.
    pub(crate) fn forget(&mut self) {
        if self.counts == QuotaCounts::Total {
            self.known = None;
        }
    }
}
