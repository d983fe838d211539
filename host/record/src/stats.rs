//! Counts and durations of calls by tool, plugin or session.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::filter::CallBrief;
use crate::search::CallCollector;
use crate::summary::{SegmentSummary, SummaryKind};
use crate::{CallEntry, LOST, REFUSED, RUNNING, UtcTime};

/// Number of bits of a duration that its bucket keeps: an error of at most 3 %.
const PRECISION_BITS: u32 = 5;
/// Maximum number of names that are counted on their own.
const NAMES_MAX: usize = 4096;

/// Counts and durations of the calls of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ToolStats {
    /// Number of calls.
    pub calls: u64,
    /// Number of calls that ended in an error, reported a failure, or were lost.
    pub errors: u64,
    /// Number of calls that were refused a capability, or did not start.
    pub refused: u64,
    /// Median of the durations in microseconds, within 3 %.
    pub p50_us: u64,
    /// 99th percentile of the durations in microseconds, within 3 %.
    pub p99_us: u64,
    /// Longest duration in microseconds.
    pub longest_us: u64,
    /// Start of the newest call.
    #[serde(skip)]
    pub newest: Option<UtcTime>,
}

/// Name by which calls are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StatsKey {
    /// Name of the tool.
    #[default]
    Tool,
    /// Configured name of the plugin.
    Plugin,
    /// Session.
    Session,
}

/// Counts calls by a name.
#[derive(Clone, Default)]
pub(crate) struct StatsCollector {
    key: StatsKey,
    counts: BTreeMap<String, DurationCounts>,
}

/// Counts and durations of calls.
#[derive(Clone, Default)]
pub(crate) struct DurationCounts {
    stats: ToolStats,
    /// Numbers of calls by bucket of their duration.
    buckets: BTreeMap<u32, u64>,
}

impl CallCollector for StatsCollector {
    fn add(&mut self, entry: CallEntry) {
        self.add_brief(&CallBrief::of(&entry));
    }

    fn add_brief(&mut self, call: &CallBrief<'_>) -> bool {
        let name = match self.key {
            StatsKey::Tool => Some(call.tool),
            StatsKey::Plugin => call.plugin,
            StatsKey::Session => call.session,
        };
        let Some(name) = name else { return true };
        let name = match self.counts.len() {
            NAMES_MAX.. if !self.counts.contains_key(name) => "",
            _ => name,
        };
        if !self.counts.contains_key(name) {
            self.counts.insert(name.to_owned(), DurationCounts::default());
        }
        if let Some(counts) = self.counts.get_mut(name) {
            counts.add(call);
        }
        true
    }
}

impl DurationCounts {
    pub(crate) fn add(&mut self, call: &CallBrief<'_>) {
        let stats = &mut self.stats;
        stats.newest = stats.newest.max(call.at);
        stats.calls += 1;
        stats.errors += u64::from(["error", "failure", LOST].contains(&call.outcome));
        let is_refused = call.outcome == REFUSED || call.has_refusal;
        stats.refused += u64::from(is_refused);
        if ![REFUSED, LOST, RUNNING].contains(&call.outcome) {
            stats.longest_us = stats.longest_us.max(call.us);
            *self.buckets.entry(bucket(call.us)).or_default() += 1;
        }
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.stats.newest = self.stats.newest.max(other.stats.newest);
        self.stats.calls += other.stats.calls;
        self.stats.errors += other.stats.errors;
        self.stats.refused += other.stats.refused;
        self.stats.longest_us = self.stats.longest_us.max(other.stats.longest_us);
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
    }

    pub(crate) fn into_stats(self) -> ToolStats {
        let Self { mut stats, buckets } = self;
        stats.p50_us = percentile(&buckets, 50).min(stats.longest_us);
        stats.p99_us = percentile(&buckets, 99).min(stats.longest_us);
        stats
    }
}

impl SegmentSummary for StatsCollector {
    fn kind(&self) -> SummaryKind {
        SummaryKind::Stats(self.key)
    }

    fn join(&mut self, other: &Self) {
        for (name, counts) in &other.counts {
            let name = match self.counts.len() {
                NAMES_MAX.. if !self.counts.contains_key(name) => "",
                _ => name.as_str(),
            };
            match self.counts.get_mut(name) {
                Some(known) => known.join(counts),
                None => drop(self.counts.insert(name.to_owned(), counts.clone())),
            }
        }
    }

    fn names(&self) -> usize {
        self.counts.len()
    }
}

impl StatsCollector {
    pub(crate) fn new(key: StatsKey) -> Self {
        Self { key, counts: BTreeMap::new() }
    }

    pub(crate) fn stats(self) -> BTreeMap<String, ToolStats> {
        self.counts.into_iter().map(|(name, counts)| (name, counts.into_stats())).collect()
    }
}

/// Returns the bucket of a duration: its highest bits and their position.
fn bucket(us: u64) -> u32 {
    let shift = (u64::BITS - us.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    (shift << (PRECISION_BITS + 1)) + u32::try_from(us >> shift).unwrap_or(0)
}

/// Returns the middle of the durations of a bucket.
fn middle(bucket: u32) -> u64 {
    let shift = bucket >> (PRECISION_BITS + 1);
    let high = u64::from(bucket & ((1 << (PRECISION_BITS + 1)) - 1));
    (high << shift) + ((1_u64 << shift) >> 1)
}

fn percentile(buckets: &BTreeMap<u32, u64>, percent: u64) -> u64 {
    let total: u64 = buckets.values().sum();
    let rank = (total * percent).div_ceil(100).max(1);
    let mut seen = 0;
    let found = buckets.iter().find(|(_, count)| {
        seen += **count;
        seen >= rank
    });
    found.map_or(0, |(bucket, _)| middle(*bucket))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_three_percent() {
        let mut collector = StatsCollector::default();
        for us in 1..=10_000 {
            let entry = CallEntry { tool: "t".to_owned(), us, ..CallEntry::default() };
            collector.add(entry);
        }
        let stats = collector.stats().remove("t").unwrap();
        assert!(stats.p50_us.abs_diff(5000) < 150, "{stats:?}");
        assert!(stats.p99_us.abs_diff(9900) < 300, "{stats:?}");
        assert_eq!((stats.calls, stats.longest_us), (10_000, 10_000));
        for us in [0, 1, 63, 64, 65, 1000, u64::MAX / 2, u64::MAX] {
            let close = middle(bucket(us));
            assert!(close.abs_diff(us) <= us / 32, "{us} {close}");
        }
    }
}
