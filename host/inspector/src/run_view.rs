//! State of a run of a workflow as its page shows it, from checkpoints or from the progress of this
//! process. Events of the page have the same as plain text.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::PageError;
use crate::format;
use crate::progress::{ProgressState, RunProgress, SuperstepProgress, THIS_PROCESS};
use crate::text::{PAYLOAD_BYTES_MAX, plain, plain_line};
use crate::workflows::{RunCheckpoint, RunQuestion, WorkflowOutline, WorkflowSource};

/// Maximum number of executors and supersteps that are listed.
pub(crate) const LISTED_MAX: usize = 300;
/// Maximum number of supersteps in one event. A page that lacks more loads itself again.
const SUPERSTEPS_PER_EVENT_MAX: usize = 40;
/// Maximum number of questions on a page.
const QUESTIONS_MAX: usize = 20;

/// State of a run.
#[derive(Debug, Default)]
pub(crate) struct RunView {
    /// Number of the newest superstep.
    pub(crate) superstep: u64,
    pub(crate) state: StateWords,
    /// Whether nothing changes any more.
    pub(crate) is_over: bool,
    /// Classes and states in words, in the order of the outline.
    pub(crate) executors: Vec<(&'static str, String)>,
    pub(crate) supersteps: Vec<SuperstepView>,
    /// Number of older supersteps.
    pub(crate) left_out: usize,
    pub(crate) questions: Vec<RunQuestion>,
    pub(crate) resume_command: Option<String>,
}

/// A superstep of a run.
#[derive(Debug)]
pub(crate) struct SuperstepView {
    pub(crate) number: u64,
    pub(crate) executors: StateWords,
    pub(crate) then: StateWords,
    pub(crate) checkpoint: String,
}

/// A state in words: own words, and names or a message of others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StateWords {
    pub(crate) words: &'static str,
    pub(crate) names: String,
}

/// Content of an event: plain text with hostile characters as escapes.
#[derive(Serialize)]
struct RunEventData {
    superstep: u64,
    state: StateWords,
    is_over: bool,
    executors: Vec<(&'static str, String)>,
    supersteps: Vec<(u64, StateWords, StateWords, String)>,
    questions: Vec<RunEventQuestion>,
    resume_command: Option<String>,
}

#[derive(Serialize)]
struct RunEventQuestion {
    executor: String,
    id: String,
    prompt: String,
}

impl StateWords {
    fn new(words: &'static str, names: impl Into<String>) -> Self {
        Self { words, names: names.into() }
    }

    fn plain(&self) -> Self {
        Self::new(self.words, plain_line(&self.names))
    }
}

impl RunView {
    /// Reads the state of a run, which may block. `outline` is that of its workflow.
    pub(crate) fn read(
        source: &dyn WorkflowSource,
        outline: &WorkflowOutline,
        run: &str,
    ) -> Result<Self, PageError> {
        if run == THIS_PROCESS {
            let progress = progress_of(source, &outline.name).ok_or(PageError::NotFound)?;
            return Ok(progress.read(|state| Self::of_progress(outline, state)));
        }
        let checkpoints = source.checkpoints(&outline.name, run).map_err(PageError::Query)?;
        Self::of_checkpoints(outline, &checkpoints).ok_or(PageError::NotFound)
    }

    fn of_checkpoints(outline: &WorkflowOutline, checkpoints: &[RunCheckpoint]) -> Option<Self> {
        let latest = checkpoints.last()?;
        let left_out = checkpoints.len().saturating_sub(LISTED_MAX);
        let superstep = |(index, checkpoint): (usize, &RunCheckpoint)| SuperstepView {
            number: checkpoint.superstep,
            executors: match ran(outline, checkpoints, index) {
                Some(executors) => StateWords::new("", executors.join(", ")),
                None => StateWords::new("not known: the checkpoint before is not of this run", ""),
            },
            then: state_of(checkpoint),
            checkpoint: checkpoint.id.clone(),
        };
        Some(Self {
            superstep: latest.superstep,
            state: state_of(latest),
            is_over: latest.is_done(),
            executors: executors_of(outline, checkpoints, latest),
            supersteps: checkpoints.iter().enumerate().skip(left_out).map(superstep).collect(),
            left_out,
            questions: latest.questions.clone(),
            resume_command: latest.resume_command.clone(),
        })
    }

    fn of_progress(outline: &WorkflowOutline, progress: &ProgressState) -> Self {
        let is_asking = |id: &str| progress.questions.iter().any(|asked| asked.executor == id);
        let executor = |id: &String| {
            let state = progress.executors.get(id).copied().unwrap_or_default();
            if state.is_running {
                let words = match state.times.saturating_sub(1) {
                    0 => "runs now".to_owned(),
                    before => format!("runs now, {}", ran_times(before)),
                };
                ("running", words)
            } else if state.has_failed {
                ("failed", "failed".to_owned())
            } else if is_asking(id) {
                ("asking", "waits for the user".to_owned())
            } else if state.times > 0 {
                ("ran", ran_times(state.times))
            } else {
                ("idle", "has not run".to_owned())
            }
        };
        let superstep = |(index, superstep): (usize, &SuperstepProgress)| SuperstepView {
            number: superstep.number,
            executors: StateWords::new("", superstep.executors.join(", ")),
            then: match progress.supersteps.get(index + 1) {
                Some(next) => StateWords::new("", next.executors.join(", ")),
                None => progress.state(),
            },
            checkpoint: superstep.checkpoint.clone().unwrap_or_default(),
        };
        Self {
            superstep: progress.superstep(),
            state: progress.state(),
            is_over: progress.end.is_some(),
            executors: outline.executors.iter().map(executor).collect(),
            supersteps: progress.supersteps.iter().enumerate().map(superstep).collect(),
            left_out: progress.left_out,
            questions: progress.questions.clone(),
            resume_command: None,
        }
    }

    /// Returns the questions that a page shows.
    pub(crate) fn shown_questions(&self) -> impl Iterator<Item = &RunQuestion> {
        self.questions.iter().take(QUESTIONS_MAX)
    }

    /// Returns the state as the data of an event, with the newest supersteps only.
    pub(crate) fn to_json(&self) -> String {
        let skipped = self.supersteps.len().saturating_sub(SUPERSTEPS_PER_EVENT_MAX);
        let supersteps = self.supersteps.iter().skip(skipped).map(|superstep| {
            let SuperstepView { number, executors, then, checkpoint } = superstep;
            (*number, executors.plain(), then.plain(), plain_line(checkpoint))
        });
        let questions = self.shown_questions().map(|question| RunEventQuestion {
            executor: plain_line(&question.executor),
            id: plain_line(&question.id),
            prompt: plain(&question.prompt, PAYLOAD_BYTES_MAX),
        });
        let data = RunEventData {
            superstep: self.superstep,
            state: self.state.plain(),
            is_over: self.is_over,
            executors: self.executors.iter().take(LISTED_MAX).cloned().collect(),
            supersteps: supersteps.collect(),
            questions: questions.collect(),
            resume_command: self.resume_command.as_deref().map(plain_line),
        };
        serde_json::to_string(&data).unwrap_or_default()
    }
}

impl ProgressState {
    /// Returns the number of the newest superstep; 0 before the first.
    pub(crate) fn superstep(&self) -> u64 {
        self.supersteps.back().map_or(0, |superstep| superstep.number)
    }

    /// Returns the state of the run in words.
    pub(crate) fn state(&self) -> StateWords {
        let is_complete = self.supersteps.back().is_some_and(|superstep| superstep.is_complete);
        let running = self.executors.iter().filter(|(_, executor)| executor.is_running);
        let running: Vec<_> = running.map(|(id, _)| id.as_str()).collect();
        if let Some(end) = &self.end {
            StateWords::new("", end.as_str())
        } else if is_complete && !self.questions.is_empty() {
            StateWords::new("waits for the user at ", askers(&self.questions))
        } else if running.is_empty() {
            StateWords::new("runs", "")
        } else {
            StateWords::new("runs ", running.join(", "))
        }
    }
}

/// Returns the progress of the workflow in this process, if it runs there.
pub(crate) fn progress_of(source: &dyn WorkflowSource, workflow: &str) -> Option<RunProgress> {
    source.progress().filter(|progress| progress.workflow() == workflow)
}

/// Returns the state of a run in words. A checkpoint does not say whether a process is running.
pub(crate) fn state_of(checkpoint: &RunCheckpoint) -> StateWords {
    if let Some(problem) = &checkpoint.problem {
        StateWords::new("cannot be read: ", problem.as_str())
    } else if checkpoint.is_done() {
        StateWords::new("done", "")
    } else if checkpoint.next.is_empty() {
        StateWords::new("waits for the user at ", askers(&checkpoint.questions))
    } else {
        StateWords::new("goes on, or was stopped, before ", checkpoint.next.join(", "))
    }
}

fn askers(questions: &[RunQuestion]) -> String {
    let executors: Vec<_> = questions.iter().map(|question| question.executor.as_str()).collect();
    executors.join(", ")
}

/// Returns the class and the state in words of each executor.
fn executors_of(
    outline: &WorkflowOutline,
    checkpoints: &[RunCheckpoint],
    latest: &RunCheckpoint,
) -> Vec<(&'static str, String)> {
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for superstep in 0..checkpoints.len() {
        for executor in ran(outline, checkpoints, superstep).unwrap_or_default() {
            *times.entry(executor).or_default() += 1;
        }
    }
    let state = |id: &String| {
        let times = times.get(id.as_str()).copied().unwrap_or(0);
        let count = ran_times(times);
        if latest.questions.iter().any(|question| question.executor == *id) {
            ("asking", "waits for the user".to_owned())
        } else if latest.next.contains(id) {
            ("next", format!("is next, {count}"))
        } else if times > 0 {
            ("ran", count)
        } else {
            ("idle", "has not run".to_owned())
        }
    };
    outline.executors.iter().map(state).collect()
}

fn ran_times(times: u64) -> String {
    format!("ran {}", format::counted(times, "time"))
}

/// Returns the executors that ran in the superstep of a checkpoint: those that messages waited for
/// before. `None` for the first superstep after a run was resumed.
fn ran<'c>(
    outline: &'c WorkflowOutline,
    checkpoints: &'c [RunCheckpoint],
    index: usize,
) -> Option<Vec<&'c str>> {
    let checkpoint = checkpoints.get(index)?;
    let before = index.checked_sub(1).and_then(|before| checkpoints.get(before));
    match before {
        Some(before)
            if before.problem.is_none() && before.superstep + 1 == checkpoint.superstep =>
        {
            Some(before.next.iter().map(String::as_str).collect())
        }
        None if checkpoint.superstep == 1 => Some(vec![outline.start.as_str()]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline() -> WorkflowOutline {
        let executors = ["writer", "approve"].map(str::to_owned).to_vec();
        WorkflowOutline { name: "w".to_owned(), executors, ..WorkflowOutline::default() }
    }

    fn seen(progress: &RunProgress) -> (String, Vec<&'static str>) {
        let view = progress.read(|state| RunView::of_progress(&outline(), state));
        let classes = view.executors.iter().map(|(class, _)| *class).collect();
        (format!("{}{}", view.state.words, view.state.names), classes)
    }

    #[test]
    fn progress_has_the_executors_that_run_and_those_that_wait() {
        let progress = RunProgress::new("w");
        assert_eq!(seen(&progress), ("runs".to_owned(), vec!["idle", "idle"]));
        progress.superstep_started(1);
        progress.executor_started("writer");
        assert_eq!(seen(&progress), ("runs writer".to_owned(), vec!["running", "idle"]));
        progress.executor_completed("writer");
        progress.superstep_completed(None);
        progress.superstep_started(2);
        progress.executor_started("approve");
        let (executor, id) = ("approve".to_owned(), "approve-1".to_owned());
        progress.asked(RunQuestion { executor, id, prompt: "Print?\u{202e}".to_owned() });
        assert_eq!(seen(&progress), ("runs approve".to_owned(), vec!["ran", "running"]));
        progress.executor_completed("approve");
        progress.superstep_completed(Some("0a-2".to_owned()));
        let waits = "waits for the user at approve".to_owned();
        assert_eq!(seen(&progress), (waits, vec!["ran", "asking"]));
        let view = progress.read(|state| RunView::of_progress(&outline(), state));
        let json: serde_json::Value = serde_json::from_str(&view.to_json()).unwrap();
        assert_eq!(json["questions"][0]["prompt"], "Print?\\u{202e}");
        assert_eq!(json["supersteps"][0][2]["names"], "approve");
        assert_eq!(json["supersteps"][1][3], "0a-2");
        progress.answered("approve-1");
        progress.superstep_started(3);
        progress.executor_started("approve");
        progress.ended("stopped");
        assert_eq!(seen(&progress), ("stopped".to_owned(), vec!["ran", "ran"]));
        assert!(progress.read(|state| RunView::of_progress(&outline(), state)).is_over);
    }

    #[test]
    fn an_event_has_the_newest_supersteps_only() {
        let progress = RunProgress::new("w");
        for number in 1..=60 {
            progress.superstep_started(number);
            progress.superstep_completed(None);
        }
        let view = progress.read(|state| RunView::of_progress(&outline(), state));
        let json: serde_json::Value = serde_json::from_str(&view.to_json()).unwrap();
        let numbers: Vec<_> =
            json["supersteps"].as_array().unwrap().iter().map(|s| &s[0]).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[39]), (40, &21.into(), &60.into()));
    }
}
