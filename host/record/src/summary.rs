//! Summaries of closed segments, which a reader computes once and keeps.
//!
//! A closed segment does not change. Its summary counts only for questions about all of its calls:
//! for others, and for segments that are being written, lines are read each time.

use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::search::CallCollector;
use crate::stats::StatsKey;

/// Maximum number of names in all kept summaries: about 100 MB in the worst case.
const NAMES_MAX: usize = 100_000;

/// Collector whose results for several segments can be joined.
pub(crate) trait SegmentSummary: CallCollector + Clone + Send + Sync + 'static {
    /// Returns the question that the collector answers.
    fn kind(&self) -> SummaryKind;

    /// Adds the results of another segment.
    fn join(&mut self, other: &Self);

    /// Returns the number of names, which the size depends on.
    fn names(&self) -> usize;
}

/// Question that a summary answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SummaryKind {
    Stats(StatsKey),
    Minutes,
    Uses,
}

/// Summary of one segment.
pub(crate) struct SummarizedSegment<C> {
    pub(crate) collector: C,
    /// Lines of calls without an end in the segment, by process and number.
    pub(crate) begins: HashMap<(String, u64), Vec<u8>>,
    /// Ends without a start in the segment.
    pub(crate) ends: HashSet<(String, u64)>,
}

/// Summaries that a reader keeps.
#[derive(Default)]
pub(crate) struct SummaryCache(Mutex<CachedSummaries>);

#[derive(Default)]
struct CachedSummaries {
    summaries: HashMap<(String, SummaryKind), Arc<dyn Any + Send + Sync>>,
    names: usize,
}

impl SummaryCache {
    /// Returns the summary of a segment, if it is known.
    pub(crate) fn get<C: SegmentSummary>(
        &self,
        stem: &str,
        kind: SummaryKind,
    ) -> Option<Arc<SummarizedSegment<C>>> {
        let cached = self.0.lock();
        let summary = cached.summaries.get(&(stem.to_owned(), kind))?;
        Arc::clone(summary).downcast().ok()
    }

    /// Keeps the summary of a segment. If there are too many, all others go first.
    pub(crate) fn add<C: SegmentSummary>(&self, stem: &str, summary: Arc<SummarizedSegment<C>>) {
        let names = summary.collector.names() + summary.begins.len() + summary.ends.len() + 1;
        if names > NAMES_MAX {
            return;
        }
        let mut cached = self.0.lock();
        if cached.names + names > NAMES_MAX {
            *cached = CachedSummaries::default();
        }
        let key = (stem.to_owned(), summary.collector.kind());
        if cached.summaries.insert(key, summary).is_none() {
            cached.names += names;
        }
    }
}

impl std::fmt::Debug for SummaryCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cached = self.0.lock();
        f.debug_struct("SummaryCache").field("names", &cached.names).finish_non_exhaustive()
    }
}
