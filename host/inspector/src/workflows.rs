//! Workflows and their runs, as checkpoints and the process that runs them show them. The call log
//! has no supersteps.

use cofferdam_record::UtcTime;

use crate::RunProgress;

/// Workflows and their checkpoints.
pub trait WorkflowSource: Send + Sync {
    /// Returns the workflows with the newest checkpoint of each run. May block.
    fn workflows(&self) -> Vec<WorkflowOutline>;

    /// Returns the checkpoints of a run, the oldest first, or a message for the operator. May
    /// block.
    ///
    /// # Errors
    /// If the workflow or its checkpoints cannot be read.
    fn checkpoints(&self, workflow: &str, run: &str) -> Result<Vec<RunCheckpoint>, String>;

    /// Returns the id of the newest checkpoint of a run. Open pages of the run call it once a
    /// second, and read the checkpoints again when it changes. May block.
    fn newest_checkpoint(&self, workflow: &str, run: &str) -> Option<String>;

    /// Returns the progress of the run in this process, if there is one.
    fn progress(&self) -> Option<RunProgress>;
}

/// Graph of a workflow, and its runs.
#[derive(Debug, Clone, Default)]
pub struct WorkflowOutline {
    /// Name, or the path of a file that cannot be read.
    pub name: String,
    /// Id of the executor where runs begin.
    pub start: String,
    /// Ids of the executors.
    pub executors: Vec<String>,
    /// Edges.
    pub edges: Vec<OutlineEdge>,
    /// Runs, the newest first.
    pub runs: Vec<WorkflowRunSummary>,
    /// Number of older runs.
    pub runs_left_out: usize,
    /// Reason why the graph or the runs are not known, for the operator.
    pub problem: Option<String>,
}

/// Edge of a graph.
#[derive(Debug, Clone, Default)]
pub struct OutlineEdge {
    /// Id of the executor that sends.
    pub from: String,
    /// Id of the executor that receives.
    pub to: String,
    /// Condition.
    pub label: Option<String>,
}

/// A run with its newest checkpoint.
#[derive(Debug, Clone)]
pub struct WorkflowRunSummary {
    /// Id of the run.
    pub id: String,
    /// Start of the run.
    pub started: UtcTime,
    /// Newest checkpoint.
    pub latest: RunCheckpoint,
}

/// State of a run after a superstep.
#[derive(Debug, Clone, Default)]
pub struct RunCheckpoint {
    /// Id of the checkpoint.
    pub id: String,
    /// Number of the superstep.
    pub superstep: u64,
    /// Ids of the executors that messages wait for.
    pub next: Vec<String>,
    /// Open requests to the user.
    pub questions: Vec<RunQuestion>,
    /// Command that goes on from here.
    pub resume_command: Option<String>,
    /// Reason why the checkpoint cannot be read.
    pub problem: Option<String>,
}

/// Request to the user.
#[derive(Debug, Clone, Default)]
pub struct RunQuestion {
    /// Id of the executor that waits.
    pub executor: String,
    /// Id of the request.
    pub id: String,
    /// Question.
    pub prompt: String,
}

impl RunCheckpoint {
    /// Returns whether the run is complete.
    pub(crate) fn is_done(&self) -> bool {
        self.next.is_empty() && self.questions.is_empty() && self.problem.is_none()
    }
}
