//! Spans of a log that is read in its order, in bounded memory.
//!
//! An inner call ends before its outer call, so that its line comes first. It is held back until
//! the outer call is known: that has its own line, or a `begin` line at the end of the same batch.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::index::{CallIndex, CallKey, key};
use super::span;
use crate::{CallEntry, LogItem, RUNNING};

/// Maximum number of inner calls that are held back.
const HELD_MAX: usize = 8192;
/// Maximum number of calls that may be outer calls of later ones.
const INDEX_MAX: usize = 32_768;

/// Projects the items of a log to spans. Items come in the order of the log, as [`LogStream`] and
/// [`LogFollower`] return them.
///
/// It holds at most 8,192 calls back whose outer call is not known yet, and remembers ids and times
/// of at most 32,768 calls: 32 MiB together for long ids. An inner call whose outer call is beyond
/// that, or was not added, begins a trace of its own.
///
/// [`LogStream`]: crate::LogStream
/// [`LogFollower`]: crate::LogFollower
#[derive(Debug, Default)]
pub struct SpanProjector {
    index: CallIndex,
    /// Calls that are held back, in the order in which they came.
    held: BTreeMap<u64, HeldCall>,
    /// Numbers of calls that are held back, by the outer call that is not known.
    waiting: HashMap<CallKey, Vec<u64>>,
    next: u64,
}

/// A call whose outer call is not known.
#[derive(Debug)]
struct HeldCall {
    call: Box<CallEntry>,
    missing: CallKey,
    /// Number of parts of the log that have ended since.
    parts: u32,
}

impl SpanProjector {
    /// Adds an item. Appends its span, and those that waited for it, to `spans`.
    pub fn add(&mut self, item: LogItem, spans: &mut Vec<Value>) {
        let call = match item {
            LogItem::Event(event) => return spans.extend(span::of_event(&event)),
            LogItem::Call(call) => call,
        };
        self.index.add(&call);
        while self.index.len() > INDEX_MAX {
            self.index.remove_first();
        }
        let key = key(&call, &call.call);
        if call.outcome != RUNNING {
            self.project(call, spans);
        }
        // Those inside of a call that is held back wait on, for the same outer call as it does.
        for number in self.waiting.remove(&key).unwrap_or_default() {
            if let Some(HeldCall { call, .. }) = self.held.remove(&number) {
                self.project(call, spans);
            }
        }
    }

    /// Ends a part of the log, such as a poll of a follower. Calls that were held back at the end
    /// of the part before become spans without a parent.
    pub fn end_part(&mut self, spans: &mut Vec<Value>) {
        self.held.values_mut().for_each(|held| held.parts += 1);
        while let Some(held) = self.held.first_entry()
            && held.get().parts > 1
        {
            self.release_first(spans);
        }
    }

    /// Ends the log: no call is held back any longer.
    pub fn finish(&mut self, spans: &mut Vec<Value>) {
        while !self.held.is_empty() {
            self.release_first(spans);
        }
        *self = Self::default();
    }

    /// Appends the span of a call that has ended, or holds the call back.
    fn project(&mut self, call: Box<CallEntry>, spans: &mut Vec<Value>) {
        let position = self.index.position(&call);
        // A call with ids of a trace knows its parent.
        let missing = position.missing.clone().filter(|_| call.trace.is_none());
        let Some(missing) = missing else {
            return spans.push(span::of_call(&call, &position));
        };
        self.waiting.entry(missing.clone()).or_default().push(self.next);
        self.held.insert(self.next, HeldCall { call, missing, parts: 0 });
        self.next += 1;
        if self.held.len() > HELD_MAX {
            self.release_first(spans);
        }
    }

    /// Appends the span of the call that was held back first.
    fn release_first(&mut self, spans: &mut Vec<Value>) {
        let Some((number, HeldCall { call, missing, .. })) = self.held.pop_first() else { return };
        if let Some(waiting) = self.waiting.get_mut(&missing) {
            waiting.retain(|other| *other != number);
            if waiting.is_empty() {
                self.waiting.remove(&missing);
            }
        }
        spans.push(span::of_call(&call, &self.index.position(&call)));
    }
}
