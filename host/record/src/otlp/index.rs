//! Calls by the ids that callers gave to them, by which inner calls find their outer calls.

use std::collections::{BTreeSet, HashMap};

use crate::{CallEntry, LOST, RUNNING, UtcTime};

/// Maximum depth of inner calls, as a guard against loops in what callers give as ids.
const DEPTH_MAX: usize = 64;

/// Process, session, and id that the caller gave.
pub(super) type CallKey = (String, Option<String>, String);

/// Calls that may have made others.
#[derive(Debug, Default)]
pub(super) struct CallIndex {
    calls: HashMap<CallKey, Vec<IndexedCall>>,
    /// Ends and keys of the calls that have ended, for removal.
    ended: BTreeSet<(UtcTime, CallKey)>,
    count: usize,
}

/// Part of a call by which inner calls find it.
#[derive(Debug, Clone)]
struct IndexedCall {
    id: String,
    outer: Option<String>,
    at: UtcTime,
    /// `None` if the call has not ended.
    end: Option<UtcTime>,
}

/// Position of a call in a trace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TracePosition {
    /// Id of the outermost call.
    pub(super) root: String,
    /// Id of the call that made the call.
    pub(super) parent: Option<String>,
    /// Key of an outer call that is not known.
    pub(super) missing: Option<CallKey>,
}

impl CallIndex {
    /// Adds a call, or the end of one that was running.
    pub(super) fn add(&mut self, call: &CallEntry) {
        let is_open = call.outcome == LOST || call.outcome == RUNNING;
        let end = (!is_open).then(|| call.at.after(call.us));
        let key = key(call, &call.call);
        let calls = self.calls.entry(key.clone()).or_default();
        match calls.iter_mut().find(|one| one.id == call.id) {
            Some(known) if known.end.is_none() => known.end = end,
            Some(_) => return,
            None => {
                let (id, outer) = (call.id.clone(), call.outer.clone());
                calls.push(IndexedCall { id, outer, at: call.at, end });
                self.count += 1;
            }
        }
        if let Some(end) = end {
            self.ended.insert((end, key));
        }
    }

    /// Returns the number of calls.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Removes the call that ended first, or everything if none has ended.
    pub(super) fn remove_first(&mut self) {
        let Some((end, key)) = self.ended.pop_first() else {
            *self = Self::default();
            return;
        };
        if let Some(calls) = self.calls.get_mut(&key) {
            let before = calls.len();
            calls.retain(|call| call.end != Some(end));
            self.count -= before - calls.len();
            if calls.is_empty() {
                self.calls.remove(&key);
            }
        }
    }

    /// Returns the position of a call in its trace.
    pub(super) fn position(&self, call: &CallEntry) -> TracePosition {
        let mut position = TracePosition { root: call.id.clone(), parent: None, missing: None };
        let (mut at, mut outer) = (call.at, call.outer.clone());
        for _ in 0..DEPTH_MAX {
            let Some(name) = outer.take() else { break };
            let key = key(call, &name);
            let Some(found) = self.around(&key, &position.root, at) else {
                position.missing = Some(key);
                break;
            };
            position.parent.get_or_insert_with(|| found.id.clone());
            position.root.clone_from(&found.id);
            (at, outer) = (found.at, found.outer.clone());
        }
        position
    }

    /// Returns the call with a key that was running at a time. Callers may give an id to several
    /// calls.
    fn around(&self, key: &CallKey, inner: &str, at: UtcTime) -> Option<&IndexedCall> {
        let is_around = |outer: &&IndexedCall| {
            outer.id != inner && outer.at <= at && outer.end.is_none_or(|end| at <= end)
        };
        self.calls.get(key)?.iter().filter(is_around).max_by_key(|outer| outer.at)
    }
}

/// Returns the key of a call, or of another one with the id `name` in its session.
pub(super) fn key(call: &CallEntry, name: &str) -> CallKey {
    (process(&call.id).to_owned(), call.session.clone(), name.to_owned())
}

/// Returns the digits of the process, with which the id of a call starts.
fn process(id: &str) -> &str {
    id.split_once('-').map_or("", |(process, _)| process)
}
