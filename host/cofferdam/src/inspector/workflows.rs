//! Workflows and their checkpoints for the pages of an inspector.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_inspector::{
    OutlineEdge, RunCheckpoint, RunProgress, RunQuestion, WorkflowOutline, WorkflowRunSummary,
    WorkflowSource,
};
use cofferdam_record::UtcTime;
use cofferdam_workflow::{
    CheckpointId, Checkpoints, Snapshot, UserRequest, Workflow, WorkflowEvent,
};
use tokio::runtime::Handle;

use crate::workflow_file::{WorkflowFile, open_checkpoints_ambient};
use crate::{Error, Result, flags};

/// Maximum number of runs that are listed for a workflow. Each has one checkpoint to read.
const RUNS_MAX: usize = 20;
/// Maximum number of checkpoints that are read of a run, the newest.
const CHECKPOINTS_MAX: usize = 200;
/// Maximum bytes of a question.
const PROMPT_BYTES_MAX: usize = 64 * 1024;
/// Hexadecimal digits of the id of a run that are its start in milliseconds.
const START_DIGITS: usize = 12;

/// Reads workflow files, and a directory of checkpoints if there is one, for each page.
struct WorkflowFiles {
    files: Vec<PathBuf>,
    checkpoints: Option<PathBuf>,
    progress: Option<RunProgress>,
    runtime: Handle,
}

/// Returns the workflows of files, the runs whose checkpoints are in a directory, and the run in
/// this process.
///
/// # Panics
/// Outside of a tokio runtime.
#[must_use]
pub fn workflows_of_files(
    files: Vec<PathBuf>,
    checkpoints: Option<PathBuf>,
    progress: Option<RunProgress>,
) -> Arc<dyn WorkflowSource> {
    Arc::new(WorkflowFiles { files, checkpoints, progress, runtime: Handle::current() })
}

/// Reports an event of the run in this process.
pub fn report_event(progress: &RunProgress, event: &WorkflowEvent) {
    match event {
        WorkflowEvent::SuperstepStarted { superstep } => progress.superstep_started(*superstep),
        WorkflowEvent::SuperstepCompleted { checkpoint, .. } => {
            progress.superstep_completed(checkpoint.as_ref().map(ToString::to_string));
        }
        WorkflowEvent::ExecutorInvoked { executor } => progress.executor_started(executor),
        WorkflowEvent::ExecutorCompleted { executor } => progress.executor_completed(executor),
        WorkflowEvent::ExecutorFailed { executor, .. } => progress.executor_failed(executor),
        WorkflowEvent::Request(request) => progress.asked(run_question(request)),
        _ => {}
    }
}

/// Returns a request to the user as pages show it.
#[must_use]
pub fn run_question(request: &UserRequest) -> RunQuestion {
    let prompt = request.prompt.display_text();
    let end = prompt.floor_char_boundary(PROMPT_BYTES_MAX);
    RunQuestion {
        executor: request.executor.clone(),
        id: request.id.clone(),
        prompt: prompt.get(..end).unwrap_or_default().to_owned(),
    }
}

impl WorkflowSource for WorkflowFiles {
    fn workflows(&self) -> Vec<WorkflowOutline> {
        self.files.iter().map(|file| self.runtime.block_on(self.outline(file))).collect()
    }

    fn checkpoints(&self, workflow: &str, run: &str) -> Result<Vec<RunCheckpoint>, String> {
        let read = self.runtime.block_on(self.of_run(workflow, run));
        read.map_err(|error| format!("{error:#}"))
    }

    fn newest_checkpoint(&self, workflow: &str, run: &str) -> Option<String> {
        self.runtime.block_on(async {
            let ids = list(&self.open().ok()??, workflow).await.ok()?;
            let newest = ids.into_iter().rev().find(|id| id.run() == run);
            newest.map(|id| id.to_string())
        })
    }

    fn progress(&self) -> Option<RunProgress> {
        self.progress.clone()
    }
}

impl WorkflowFiles {
    /// Returns the graph of a file with its runs. Errors are part of it.
    async fn outline(&self, file: &Path) -> WorkflowOutline {
        let workflow = match graph(file) {
            Ok(workflow) => workflow,
            Err(error) => {
                let (name, problem) = (file.display().to_string(), Some(format!("{error:#}")));
                return WorkflowOutline { name, problem, ..WorkflowOutline::default() };
            }
        };
        let edges = workflow.edges().into_iter().map(|edge| OutlineEdge {
            from: edge.from,
            to: edge.to,
            label: edge.label,
        });
        let mut outline = WorkflowOutline {
            name: workflow.name().to_owned(),
            start: workflow.start().to_owned(),
            executors: workflow.executors().map(str::to_owned).collect(),
            edges: edges.collect(),
            ..WorkflowOutline::default()
        };
        if let Err(error) = self.add_runs(file, &mut outline).await {
            outline.problem = Some(format!("{error:#}"));
        }
        outline
    }

    async fn add_runs(&self, file: &Path, outline: &mut WorkflowOutline) -> Result<()> {
        let Some(checkpoints) = self.open()? else { return Ok(()) };
        let mut newest: Vec<CheckpointId> = Vec::new();
        for id in list(&checkpoints, &outline.name).await?.into_iter().rev() {
            if newest.last().is_none_or(|last| last.run() != id.run()) {
                newest.push(id);
            }
        }
        outline.runs_left_out = newest.len().saturating_sub(RUNS_MAX);
        for id in newest.into_iter().take(RUNS_MAX) {
            let latest = self.read(&checkpoints, file, &outline.name, &id).await;
            let (started, id) = (started(&id), id.run().to_owned());
            outline.runs.push(WorkflowRunSummary { id, started, latest });
        }
        Ok(())
    }

    async fn of_run(&self, workflow: &str, run: &str) -> Result<Vec<RunCheckpoint>> {
        let file = self.files.iter().find(|file| {
            WorkflowFile::read_ambient(file).is_ok_and(|file| file.name() == workflow)
        });
        let unknown = || Error::invalid("there is no such run");
        let (Some(file), Some(checkpoints)) = (file, self.open()?) else { return Err(unknown()) };
        let ids = list(&checkpoints, workflow).await?;
        let own: Vec<_> = ids.into_iter().filter(|id| id.run() == run).collect();
        let skipped = own.len().saturating_sub(CHECKPOINTS_MAX);
        let mut read = Vec::new();
        for id in own.iter().skip(skipped) {
            read.push(self.read(&checkpoints, file, workflow, id).await);
        }
        if read.is_empty() { Err(unknown()) } else { Ok(read) }
    }

    fn open(&self) -> Result<Option<Checkpoints>> {
        let opened = self.checkpoints.as_deref().map(open_checkpoints_ambient).transpose();
        opened.map_err(|error| Error::invalid(error.to_string()))
    }

    async fn read(
        &self,
        checkpoints: &Checkpoints,
        file: &Path,
        workflow: &str,
        id: &CheckpointId,
    ) -> RunCheckpoint {
        match checkpoints.load(workflow, id).await {
            Ok(snapshot) => self.state(file, id, &snapshot),
            Err(error) => RunCheckpoint {
                id: id.to_string(),
                superstep: id.superstep(),
                problem: Some(error.to_string()),
                ..RunCheckpoint::default()
            },
        }
    }

    fn state(&self, file: &Path, id: &CheckpointId, snapshot: &Snapshot) -> RunCheckpoint {
        let questions = snapshot.requests().iter().map(run_question);
        RunCheckpoint {
            id: id.to_string(),
            superstep: snapshot.superstep(),
            next: snapshot.next_executors().into_iter().map(str::to_owned).collect(),
            questions: questions.collect(),
            resume_command: (!snapshot.is_done()).then(|| self.resume_command(file, id, snapshot)),
            problem: None,
        }
    }

    fn resume_command(&self, file: &Path, id: &CheckpointId, snapshot: &Snapshot) -> String {
        let directory = self.checkpoints.as_deref().unwrap_or(Path::new("DIR"));
        let [file, directory] =
            [file, directory].map(|path| flags::word(&path.display().to_string()));
        let answers = snapshot.requests().iter();
        let answers: String =
            answers.map(|request| format!(" --answer {}=TEXT", flags::word(&request.id))).collect();
        format!("cofferdam workflow run {file} --checkpoints {directory} --resume={id}{answers}")
    }
}

fn graph(file: &Path) -> Result<Workflow> {
    WorkflowFile::read_ambient(file)?.outline()
}

async fn list(checkpoints: &Checkpoints, workflow: &str) -> Result<Vec<CheckpointId>> {
    let listed = checkpoints.list(workflow).await;
    listed.map_err(|error| Error::invalid(format!("the checkpoints cannot be listed: {error}")))
}

/// Returns the start of a run, which its id begins with.
fn started(id: &CheckpointId) -> UtcTime {
    let millis = id.run().get(..START_DIGITS).and_then(|hex| i64::from_str_radix(hex, 16).ok());
    UtcTime::from_micros(millis.unwrap_or_default().saturating_mul(1000))
}
