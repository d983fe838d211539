//! Counts and durations of calls, for a monitoring system that reads them over HTTP.
//!
//! Each thread counts in a part of its own, so that two cores do not write to one cache line; the
//! parts are joined when the text is made. Outcomes and reasons have the words of the log.

mod text;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use cofferdam_tool::sink::{ApprovalDecision, CallSink, ObservedCall};
use cofferdam_tool::{CallContext, Completion, RefusedCall};
use hashbrown::HashTable;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::capture::{cut, reason};
pub use text::{Gauge, gauges_text};

/// Number of parts, each for some threads.
const SHARDS: usize = 16;
/// Maximum number of tools that are counted on their own. Others are counted together, without
/// names.
const TOOLS_MAX: usize = 1024;
/// Maximum number of reasons and tools of refused calls.
const REFUSALS_MAX: usize = 1024;
/// Outcomes of calls that have begun.
const OUTCOMES: [&str; 4] = ["ok", "failure", "error", "cancelled"];
/// Reason of a call that has begun and was refused a capability.
const CAPABILITY: &str = "Capability";
/// Upper bounds of the buckets of durations, in nanoseconds and as they are written, in seconds.
const BOUNDS: [(u64, &str); 21] = [
    (10_000, "0.00001"),
    (20_000, "0.00002"),
    (50_000, "0.00005"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1"),
    (2_000_000_000, "2"),
    (5_000_000_000, "5"),
    (10_000_000_000, "10"),
    (30_000_000_000, "30"),
    (60_000_000_000, "60"),
];

/// Counts calls, refusals and durations by tool, and passes the calls on to another sink.
///
/// At most 1,024 tools are counted on their own; calls of others are counted under empty names.
/// [`prometheus`](Self::prometheus) returns the text for an endpoint such as `/metrics`.
///
/// ```
/// use std::sync::Arc;
///
/// use cofferdam_record::CallMetrics;
/// use cofferdam_tool::Toolset;
///
/// let metrics = Arc::new(CallMetrics::new(None));
/// let mut toolset = Toolset::new();
/// toolset.set_sink(Arc::clone(&metrics) as _);
/// assert!(metrics.prometheus().contains("cofferdam_calls_in_progress 0"));
/// ```
pub struct CallMetrics {
    next: Option<Arc<dyn CallSink>>,
    shards: [Shard; SHARDS],
    hasher: RandomState,
    /// Tools that are counted on their own, in all parts together.
    tools: Mutex<BTreeMap<ToolKey, ()>>,
    refusals: Mutex<BTreeMap<RefusalKey, u64>>,
}

/// Plugin or source, and tool.
type ToolKey = (String, String);
/// Tool that was called, or nothing for a name that no tool has, and reason.
type RefusalKey = (String, &'static str);

/// Part that some threads count in. Aligned to the pair of cache lines that processors fetch.
#[derive(Default)]
#[repr(align(128))]
struct Shard {
    /// Calls that began here, less those that ended here.
    in_progress: AtomicI64,
    tools: Mutex<HashTable<ToolCounts>>,
}

/// Counts of one tool.
#[derive(Clone)]
struct ToolCounts {
    owner: String,
    tool: String,
    outcomes: [u64; OUTCOMES.len()],
    /// Calls that were refused a capability.
    refused: u64,
    /// Durations by bucket; the last one has those beyond all bounds.
    buckets: [u64; BOUNDS.len() + 1],
    nanoseconds: u128,
}

impl CallMetrics {
    /// Returns metrics without calls. Calls are passed on to `next`, such as a
    /// [`Recorder`](crate::Recorder), whose numbers they keep.
    #[must_use]
    pub fn new(next: Option<Arc<dyn CallSink>>) -> Self {
        Self {
            next,
            shards: Default::default(),
            hasher: RandomState::new(),
            tools: Mutex::default(),
            refusals: Mutex::default(),
        }
    }

    /// Returns the metrics in the text format of Prometheus, version 0.0.4. Its media type is
    /// `text/plain; version=0.0.4`. [`gauges_text`] returns further ones.
    #[must_use]
    pub fn prometheus(&self) -> String {
        let mut tools = BTreeMap::<ToolKey, ToolCounts>::new();
        for shard in &self.shards {
            for counts in shard.tools.lock().iter() {
                let key = (counts.owner.clone(), counts.tool.clone());
                tools.entry(key).or_insert_with(|| ToolCounts::new("", "")).add(counts);
            }
        }
        let in_progress = |shard: &Shard| shard.in_progress.load(Ordering::Relaxed);
        // A call can end while the parts are added up.
        let in_progress = self.shards.iter().map(in_progress).sum::<i64>().max(0);
        text::write(&tools, &self.refusals.lock(), in_progress)
    }

    fn count(&self, call: &ObservedCall<'_>, completion: &Completion, duration: Duration) {
        let owner = call.plugin().map_or_else(|| call.source.name(), |plugin| plugin.name.as_str());
        let (owner, tool) = (cut(owner), call.tool.name.as_str());
        let shard = self.shard();
        shard.in_progress.fetch_sub(1, Ordering::Relaxed);
        let hash = self.hasher.hash_one((owner, tool));
        let mut tools = shard.tools.lock();
        if let Some(counts) = tools.find_mut(hash, |counts| counts.is(owner, tool)) {
            return counts.count(completion, duration);
        }
        drop(tools);
        let (owner, tool) = if self.admits(owner, tool) { (owner, tool) } else { ("", "") };
        let hash = |owner: &str, tool: &str| self.hasher.hash_one((owner, tool));
        let mut tools = shard.tools.lock();
        let entry = tools.entry(
            hash(owner, tool),
            |counts| counts.is(owner, tool),
            |counts| hash(&counts.owner, &counts.tool),
        );
        let mut entry = entry.or_insert_with(|| ToolCounts::new(owner, tool));
        entry.get_mut().count(completion, duration);
    }

    /// Returns whether a tool is counted on its own.
    fn admits(&self, owner: &str, tool: &str) -> bool {
        let key = (owner.to_owned(), tool.to_owned());
        let mut tools = self.tools.lock();
        if tools.len() < TOOLS_MAX {
            tools.insert(key, ());
            return true;
        }
        tools.contains_key(&key)
    }

    /// Returns the part of the current thread.
    fn shard(&self) -> &Shard {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        thread_local! {
            static SHARD: Cell<usize> = const { Cell::new(usize::MAX) };
        }
        let at = SHARD.with(|shard| {
            if shard.get() == usize::MAX {
                shard.set(NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
            }
            shard.get()
        });
        // The position is in range; the first part is as good as any.
        let [first, ..] = &self.shards;
        self.shards.get(at).unwrap_or(first)
    }
}

impl CallSink for CallMetrics {
    fn begin(&self, call: &ObservedCall<'_>, arguments: &Map<String, Value>) -> Option<u64> {
        self.shard().in_progress.fetch_add(1, Ordering::Relaxed);
        self.next.as_ref().and_then(|next| next.begin(call, arguments))
    }

    fn end(&self, number: Option<u64>, call: &ObservedCall<'_>, completion: &Completion) {
        let duration = call.began.elapsed();
        if let Some(next) = &self.next {
            next.end(number, call, completion);
        }
        self.count(call, completion, duration);
    }

    fn refused(&self, name: &str, refused: &RefusedCall, context: &CallContext) {
        // A name that no tool has is one that a model made up.
        let is_unknown = matches!(refused, RefusedCall::UnknownTool { .. });
        let tool = if is_unknown { "" } else { cut(name) };
        let mut refusals = self.refusals.lock();
        let mut key = (tool.to_owned(), reason(refused));
        if refusals.len() >= REFUSALS_MAX && !refusals.contains_key(&key) {
            key.0.clear();
        }
        *refusals.entry(key).or_default() += 1;
        drop(refusals);
        if let Some(next) = &self.next {
            next.refused(name, refused, context);
        }
    }

    fn decided(&self, decision: &ApprovalDecision<'_>) {
        if let Some(next) = &self.next {
            next.decided(decision);
        }
    }
}

impl std::fmt::Debug for CallMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallMetrics").finish_non_exhaustive()
    }
}

impl ToolCounts {
    fn new(owner: &str, tool: &str) -> Self {
        Self {
            owner: owner.to_owned(),
            tool: tool.to_owned(),
            outcomes: [0; OUTCOMES.len()],
            refused: 0,
            buckets: [0; BOUNDS.len() + 1],
            nanoseconds: 0,
        }
    }

    fn is(&self, owner: &str, tool: &str) -> bool {
        self.tool == tool && self.owner == owner
    }

    fn count(&mut self, completion: &Completion, duration: Duration) {
        let word = completion.outcome.word();
        let outcomes = OUTCOMES.iter().zip(&mut self.outcomes);
        outcomes.filter(|(outcome, _)| **outcome == word).for_each(|(_, count)| *count += 1);
        self.refused += u64::from(!completion.record.refused.is_empty());
        let nanoseconds = duration.as_nanos();
        let bucket = BOUNDS.partition_point(|(bound, _)| u128::from(*bound) < nanoseconds);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
        self.nanoseconds += nanoseconds;
    }

    fn add(&mut self, other: &Self) {
        let counts = self.outcomes.iter_mut().chain(&mut self.buckets);
        let others = other.outcomes.iter().chain(&other.buckets);
        counts.zip(others).for_each(|(count, other)| *count += other);
        self.refused += other.refused;
        self.nanoseconds += other.nanoseconds;
    }
}

#[cfg(test)]
mod tests;
