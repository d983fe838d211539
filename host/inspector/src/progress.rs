//! Progress of a workflow that runs in this process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cofferdam_record::UtcTime;
use tokio::sync::watch;

use crate::workflows::RunQuestion;

/// Id of the run in this process. Runs with checkpoints have ids of hexadecimal digits.
pub(crate) const THIS_PROCESS: &str = "this-process";
/// Maximum number of supersteps that are stored, the newest.
const SUPERSTEPS_MAX: usize = 300;

/// Progress of the run of a workflow in this process, for its page. Clones share it.
///
/// The program that runs the workflow reports what happens. A report waits for no browser.
#[derive(Clone)]
pub struct RunProgress {
    workflow: Arc<str>,
    state: Arc<watch::Sender<ProgressState>>,
}

/// State of the run.
#[derive(Debug, Clone)]
pub(crate) struct ProgressState {
    pub(crate) started: UtcTime,
    /// Supersteps of this process, the oldest first.
    pub(crate) supersteps: VecDeque<SuperstepProgress>,
    /// Number of older supersteps.
    pub(crate) left_out: usize,
    pub(crate) executors: BTreeMap<String, ExecutorProgress>,
    /// Open requests to the user.
    pub(crate) questions: Vec<RunQuestion>,
    /// End of the run, for the operator.
    pub(crate) end: Option<String>,
}

/// A superstep of the run.
#[derive(Debug, Clone)]
pub(crate) struct SuperstepProgress {
    pub(crate) number: u64,
    /// Ids of the executors that have received messages.
    pub(crate) executors: Vec<String>,
    pub(crate) is_complete: bool,
    pub(crate) checkpoint: Option<String>,
}

/// State of an executor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ExecutorProgress {
    /// Number of supersteps in which it has received messages.
    pub(crate) times: u64,
    pub(crate) is_running: bool,
    pub(crate) has_failed: bool,
}

impl RunProgress {
    /// Returns the progress of a run that starts now.
    pub fn new(workflow: impl Into<Arc<str>>) -> Self {
        let state = ProgressState {
            started: UtcTime::now(),
            supersteps: VecDeque::new(),
            left_out: 0,
            executors: BTreeMap::new(),
            questions: Vec::new(),
            end: None,
        };
        Self { workflow: workflow.into(), state: Arc::new(watch::Sender::new(state)) }
    }

    /// Returns the name of the workflow.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// Reports that a superstep starts.
    pub fn superstep_started(&self, number: u64) {
        self.state.send_modify(|state| {
            state.supersteps.push_back(SuperstepProgress {
                number,
                executors: Vec::new(),
                is_complete: false,
                checkpoint: None,
            });
            if state.supersteps.len() > SUPERSTEPS_MAX {
                state.supersteps.pop_front();
                state.left_out += 1;
            }
        });
    }

    /// Reports that a superstep is complete, and the id of its checkpoint.
    pub fn superstep_completed(&self, checkpoint: Option<String>) {
        self.state.send_modify(|state| {
            if let Some(superstep) = state.supersteps.back_mut() {
                superstep.is_complete = true;
                superstep.checkpoint = checkpoint;
            }
        });
    }

    /// Reports that an executor receives a message.
    pub fn executor_started(&self, id: &str) {
        self.state.send_modify(|state| {
            let executor = state.executors.entry(id.to_owned()).or_default();
            executor.is_running = true;
            let Some(superstep) = state.supersteps.back_mut() else { return };
            // An executor can receive several messages in a superstep.
            if !superstep.executors.iter().any(|known| known == id) {
                superstep.executors.push(id.to_owned());
                executor.times += 1;
            }
        });
    }

    /// Reports that an executor has handled a message.
    pub fn executor_completed(&self, id: &str) {
        self.change(id, |executor| executor.is_running = false);
    }

    /// Reports that an executor failed.
    pub fn executor_failed(&self, id: &str) {
        self.change(id, |executor| {
            executor.is_running = false;
            executor.has_failed = true;
        });
    }

    /// Reports a request to the user.
    pub fn asked(&self, question: RunQuestion) {
        self.state.send_modify(|state| {
            state.questions.retain(|open| open.id != question.id);
            state.questions.push(question);
        });
    }

    /// Reports the answer to a request.
    pub fn answered(&self, id: &str) {
        self.state.send_modify(|state| state.questions.retain(|open| open.id != id));
    }

    /// Reports the end of the run, in words for the operator.
    pub fn ended(&self, end: impl Into<String>) {
        self.state.send_modify(|state| {
            state.executors.values_mut().for_each(|executor| executor.is_running = false);
            state.end = Some(end.into());
        });
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut ExecutorProgress)) {
        self.state.send_modify(|state| change(state.executors.entry(id.to_owned()).or_default()));
    }

    /// Returns a receiver of changes.
    pub(crate) fn changes(&self) -> watch::Receiver<ProgressState> {
        self.state.subscribe()
    }

    /// Returns a value made from the state, while reports wait.
    pub(crate) fn read<T>(&self, make: impl FnOnce(&ProgressState) -> T) -> T {
        make(&self.state.borrow())
    }
}

impl std::fmt::Debug for RunProgress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunProgress").field("workflow", &self.workflow).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_supersteps_are_counted_only() {
        let progress = RunProgress::new("w");
        for number in 1..=310 {
            progress.superstep_started(number);
            progress.executor_started("a");
            progress.executor_started("a");
            progress.executor_completed("a");
            progress.superstep_completed(None);
        }
        progress.read(|state| {
            assert_eq!((state.supersteps.len(), state.left_out, state.superstep()), (300, 10, 310));
            assert_eq!(state.executors["a"].times, 310);
        });
    }
}
