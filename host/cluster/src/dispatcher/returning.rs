//! Workers that have asked a question whose answer comes with a new call.
//!
//! A client without sessions ends a call by its question and makes the call again with the answer.
//! The worker may have kept what it needs to continue, so that the new call goes to it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofferdam_tool::CallContext;

use crate::keyed::digest;
use crate::subject::NodeName;

/// Maximum number of calls whose workers are remembered. Those that asked first are forgotten
/// first; their calls go to any worker.
const CALLS_MAX: usize = 1024;

/// A call that a client makes again with the answers to its questions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReturningCall {
    /// Digest of the route, the tool, its arguments and the caller.
    digest: String,
    /// True if the call has answers to earlier questions.
    has_answers: bool,
}

impl ReturningCall {
    /// Returns `None` if questions do not end the call.
    pub(super) fn new(
        (route, tool): (&str, &str),
        arguments: &str,
        context: &CallContext,
    ) -> Option<Self> {
        let has_answers = !context.asker.as_ref()?.earlier_questions()?.is_empty();
        let caller = context.session.as_deref().unwrap_or_default();
        Some(Self { digest: digest(&[route, tool, arguments, caller]), has_answers })
    }
}

/// Workers by the calls that they ended with a question.
#[derive(Debug, Default)]
pub(super) struct AskingWorkers {
    workers: Mutex<VecDeque<(String, NodeName)>>,
}

impl AskingWorkers {
    pub(super) fn add(&self, call: ReturningCall, worker: NodeName) {
        let mut workers = self.lock();
        workers.retain(|(digest, _)| *digest != call.digest);
        workers.push_back((call.digest, worker));
        if workers.len() > CALLS_MAX {
            workers.pop_front();
        }
    }

    /// Removes and returns the worker that a call with answers returns to.
    pub(super) fn take(&self, call: &ReturningCall) -> Option<NodeName> {
        if !call.has_answers {
            return None;
        }
        let mut workers = self.lock();
        let position = workers.iter().position(|(digest, _)| *digest == call.digest)?;
        workers.remove(position).map(|(_, worker)| worker)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, NodeName)>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_with_answers_returns_to_its_last_worker_once() {
        let call =
            |digest: usize, has_answers| ReturningCall { digest: digest.to_string(), has_answers };
        let workers = AskingWorkers::default();
        for worker in ["a", "b"] {
            workers.add(call(0, false), NodeName::new(worker).unwrap());
        }
        assert_eq!(workers.take(&call(0, false)), None);
        assert_eq!(workers.take(&call(1, true)), None);
        assert_eq!(workers.take(&call(0, true)), Some(NodeName::new("b").unwrap()));
        assert_eq!(workers.take(&call(0, true)), None);
        for digest in 0..=CALLS_MAX {
            workers.add(call(digest, false), NodeName::new("a").unwrap());
        }
        assert_eq!(workers.take(&call(0, true)), None);
        assert!(workers.take(&call(1, true)).is_some());
    }
}
