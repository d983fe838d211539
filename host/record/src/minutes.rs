//! Counts and durations of calls by the minute of their start.

use std::collections::BTreeMap;

use crate::filter::CallBrief;
use crate::search::{CallCollector, LogDamage};
use crate::stats::{DurationCounts, ToolStats};
use crate::summary::{SegmentSummary, SummaryKind};
use crate::{CallEntry, UtcTime};

/// Maximum number of minutes: more than a day. Calls of further ones count in the total only.
const MINUTES_MAX: usize = 2048;
/// Microseconds of a minute.
const MINUTE_US: i64 = 60_000_000;

/// Counts and durations of calls by the minute of their start.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct MinuteStats {
    /// Minutes with calls, by their start.
    pub minutes: BTreeMap<UtcTime, ToolStats>,
    /// All calls together.
    pub total: ToolStats,
    /// Damage of the segments that were read.
    pub damage: LogDamage,
}

/// Counts calls by minute.
#[derive(Clone, Default)]
pub(crate) struct MinuteCollector {
    minutes: BTreeMap<UtcTime, DurationCounts>,
    total: DurationCounts,
}

impl UtcTime {
    /// Returns the start of the minute.
    #[must_use]
    pub fn minute(self) -> Self {
        Self::from_micros(self.micros().saturating_sub(self.micros().rem_euclid(MINUTE_US)))
    }
}

impl CallCollector for MinuteCollector {
    fn add(&mut self, entry: CallEntry) {
        self.add_brief(&CallBrief::of(&entry));
    }

    fn add_brief(&mut self, call: &CallBrief<'_>) -> bool {
        self.total.add(call);
        let Some(minute) = call.at.map(UtcTime::minute) else { return true };
        if self.minutes.len() < MINUTES_MAX || self.minutes.contains_key(&minute) {
            self.minutes.entry(minute).or_default().add(call);
        }
        true
    }
}

impl SegmentSummary for MinuteCollector {
    fn kind(&self) -> SummaryKind {
        SummaryKind::Minutes
    }

    fn join(&mut self, other: &Self) {
        self.total.join(&other.total);
        for (minute, counts) in &other.minutes {
            if self.minutes.len() < MINUTES_MAX || self.minutes.contains_key(minute) {
                self.minutes.entry(*minute).or_default().join(counts);
            }
        }
    }

    fn names(&self) -> usize {
        self.minutes.len()
    }
}

impl MinuteCollector {
    pub(crate) fn stats(self, damage: LogDamage) -> MinuteStats {
        let minutes = self.minutes.into_iter();
        MinuteStats {
            minutes: minutes.map(|(minute, counts)| (minute, counts.into_stats())).collect(),
            total: self.total.into_stats(),
            damage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_count_in_the_minute_of_their_start() {
        let mut collector = MinuteCollector::default();
        for (at, us, outcome) in [(59_999_999, 10, "ok"), (60_000_000, 30, "error"), (-1, 20, "ok")]
        {
            let at = UtcTime::from_micros(at);
            let outcome = outcome.to_owned();
            collector.add(CallEntry { at, us, outcome, ..CallEntry::default() });
        }
        let mut twice = collector.clone();
        twice.join(&collector);
        let stats = twice.stats(LogDamage::default());
        let minutes: Vec<_> = stats.minutes.iter().map(|(at, m)| (at.micros(), m.calls)).collect();
        assert_eq!(minutes, [(-MINUTE_US, 2), (0, 2), (MINUTE_US, 2)]);
        assert_eq!((stats.total.calls, stats.total.errors, stats.total.longest_us), (6, 2, 30));
    }

    #[test]
    fn minutes_are_limited() {
        let mut collector = MinuteCollector::default();
        for minute in 0..5000 {
            let at = UtcTime::from_micros(minute * MINUTE_US);
            collector.add(CallEntry { at, ..CallEntry::default() });
        }
        let stats = collector.stats(LogDamage::default());
        assert_eq!((stats.minutes.len(), stats.total.calls), (MINUTES_MAX, 5000));
    }
}
