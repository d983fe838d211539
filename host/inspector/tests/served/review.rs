//! A workflow that pages show.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use cofferdam_inspector::{
    OutlineEdge, RunCheckpoint, RunProgress, RunQuestion, WorkflowOutline, WorkflowRunSummary,
    WorkflowSource,
};
use cofferdam_record::UtcTime;

/// A workflow with one run, which waits for the user, and one in this process.
#[derive(Default)]
pub(crate) struct Review {
    /// Part of every name.
    pub(crate) suffix: String,
    pub(crate) progress: Option<RunProgress>,
    /// Number of checkpoints of the run that can be seen, if not all.
    pub(crate) supersteps: Option<Arc<AtomicUsize>>,
}

impl Review {
    fn name(&self, name: &str) -> String {
        format!("{name}{}", self.suffix)
    }

    fn checkpoint(&self, superstep: u64, next: &[&str], asks: bool) -> RunCheckpoint {
        let question = RunQuestion {
            executor: self.name("approve"),
            id: "approve-1".to_owned(),
            prompt: self.name("Print this?"),
        };
        RunCheckpoint {
            id: format!("0193c0ffee00a1b2c3d4-{superstep:06}"),
            superstep,
            next: next.iter().map(|executor| self.name(executor)).collect(),
            questions: asks.then_some(question).into_iter().collect(),
            resume_command: asks.then(|| "cofferdam workflow run review.yaml --resume".to_owned()),
            problem: None,
        }
    }
}

impl WorkflowSource for Review {
    fn workflows(&self) -> Vec<WorkflowOutline> {
        let edge = |from: &str, to: &str, label: Option<&str>| OutlineEdge {
            from: self.name(from),
            to: self.name(to),
            label: label.map(|label| self.name(label)),
        };
        let executors = ["writer", "reviewer", "approve", "printer"];
        let review = WorkflowOutline {
            name: self.name("review"),
            start: self.name("writer"),
            executors: executors.map(|id| self.name(id)).to_vec(),
            edges: vec![
                edge("writer", "reviewer", None),
                edge("reviewer", "approve", Some("contains good")),
                edge("reviewer", "writer", Some("otherwise")),
                edge("approve", "printer", None),
            ],
            runs: vec![WorkflowRunSummary {
                id: "0193c0ffee00a1b2c3d4".to_owned(),
                started: UtcTime::from_micros(1_764_000_000_000_000),
                latest: self.checkpoint(3, &[], true),
            }],
            ..WorkflowOutline::default()
        };
        let problem = Some(self.name("the file is missing"));
        let broken = WorkflowOutline {
            name: self.name("other.yaml"),
            problem,
            ..WorkflowOutline::default()
        };
        vec![review, broken]
    }

    fn checkpoints(&self, workflow: &str, run: &str) -> Result<Vec<RunCheckpoint>, String> {
        if workflow != self.name("review") || run != "0193c0ffee00a1b2c3d4" {
            return Err("there is no such run".to_owned());
        }
        let mut checkpoints = vec![
            self.checkpoint(1, &["reviewer"], false),
            self.checkpoint(2, &["approve"], false),
            self.checkpoint(3, &[], true),
        ];
        checkpoints.truncate(self.supersteps.as_ref().map_or(3, |seen| seen.load(Relaxed)));
        Ok(checkpoints)
    }

    fn newest_checkpoint(&self, workflow: &str, run: &str) -> Option<String> {
        self.checkpoints(workflow, run).ok()?.pop().map(|newest| newest.id)
    }

    fn progress(&self) -> Option<RunProgress> {
        self.progress.clone()
    }
}
