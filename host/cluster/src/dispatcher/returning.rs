//! Workers that have asked a question whose answer comes with a new call.
//!
//! A client without sessions ends a call by its question and makes the call again with the answer.
//! The worker may have kept what it needs to continue, so that the new call goes to it.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use cofferdam_tool::CallContext;
use parking_lot::Mutex;

use crate::subject::NodeName;

/// Maximum number of calls whose workers are remembered. Those that asked first are forgotten
/// first; their calls go to any worker.
const CALLS_MAX: usize = 1024;

/// A call that a client makes again with the answers to its questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReturningCall {
    /// Hash of the route, the tool, its arguments and the caller.
    hash: u64,
    /// True if the call has answers to earlier questions.
    has_answers: bool,
}

/// Workers by the calls that they ended with a question.
#[derive(Debug, Default)]
pub(super) struct AskingWorkers {
    hasher: RandomState,
    workers: Mutex<VecDeque<(u64, NodeName)>>,
}

impl AskingWorkers {
    /// Returns a call as its client makes it again. Returns `None` if questions do not end it.
    pub(super) fn call(
        &self,
        (route, tool): (&str, &str),
        arguments: &str,
        context: &CallContext,
    ) -> Option<ReturningCall> {
        let has_answers = !context.asker.as_ref()?.earlier_questions()?.is_empty();
        let hash = self.hasher.hash_one((route, tool, arguments, &context.session));
        Some(ReturningCall { hash, has_answers })
    }

    pub(super) fn add(&self, call: ReturningCall, worker: NodeName) {
        let mut workers = self.workers.lock();
        workers.retain(|(hash, _)| *hash != call.hash);
        workers.push_back((call.hash, worker));
        if workers.len() > CALLS_MAX {
            workers.pop_front();
        }
    }

    /// Removes and returns the worker that a call with answers returns to.
    pub(super) fn take(&self, call: ReturningCall) -> Option<NodeName> {
        if !call.has_answers {
            return None;
        }
        let mut workers = self.workers.lock();
        let position = workers.iter().position(|(hash, _)| *hash == call.hash)?;
        workers.remove(position).map(|(_, worker)| worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_answers_returns_to_its_last_worker_once() {
        let call = |hash: u64, has_answers| ReturningCall { hash, has_answers };
        let workers = AskingWorkers::default();
        for worker in ["a", "b"] {
            workers.add(call(0, false), NodeName::new(worker).unwrap());
        }
        assert_eq!(workers.take(call(0, false)), None);
        assert_eq!(workers.take(call(1, true)), None);
        assert_eq!(workers.take(call(0, true)), Some(NodeName::new("b").unwrap()));
        assert_eq!(workers.take(call(0, true)), None);
        for hash in 0..=CALLS_MAX {
            workers.add(call(u64::try_from(hash).unwrap(), false), NodeName::new("a").unwrap());
        }
        assert_eq!(workers.take(call(0, true)), None);
        assert!(workers.take(call(1, true)).is_some());
    }
}
