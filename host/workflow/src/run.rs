//! Runs of a workflow: starting, reading events, answering requests.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cofferdam_agent::RunContext;
use cofferdam_tool::label::Label;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::builder::Workflow;
use super::checkpoint::{CheckpointError, Checkpoints, RunCheckpoints};
use super::error::WorkflowError;
use super::event::{EventObserver, ProducedOutput, WorkflowEvent};
use super::message::Payload;
use super::routing;
use super::snapshot::{Snapshot, UserRequest};
use super::superstep::RunState;

/// Maximum number of unread events before the run waits for its reader.
const EVENTS_AHEAD_MAX: usize = 1;

type SnapshotFuture = Pin<Box<dyn Future<Output = Result<Snapshot, WorkflowError>> + Send>>;

/// Run that has not started. Await it for its [`RunOutcome`], or read its
/// [`stream`](WorkflowRun::stream).
#[must_use = "a run does nothing unless it is awaited or its stream is read"]
pub struct WorkflowRun {
    workflow: Workflow,
    from: StartPoint,
    answers: Vec<(String, Payload)>,
    label: Label,
    is_labelled: bool,
    context: RunContext,
    checkpoints: Option<Result<RunCheckpoints, CheckpointError>>,
    observer: Option<EventObserver>,
}

enum StartPoint {
    Input(Payload),
    Snapshot(Box<Snapshot>),
}

/// Result of a run that is complete or waits for answers.
#[derive(Debug, Clone)]
#[must_use = "a run may wait for answers"]
pub struct RunOutcome {
    /// All events, in order.
    pub events: Vec<WorkflowEvent>,
    /// Snapshot to [resume](Workflow::resume) from.
    pub snapshot: Snapshot,
}

/// Stream of the events of a run. The run progresses only while the stream is read, and ends when
/// the stream is dropped.
pub struct WorkflowStream {
    run: Option<SnapshotFuture>,
    events: mpsc::Receiver<WorkflowEvent>,
    ended: Option<Result<Snapshot, WorkflowError>>,
}

impl WorkflowRun {
    pub(super) fn beginning(workflow: Workflow, input: Payload) -> Self {
        Self::of(workflow, StartPoint::Input(input))
    }

    pub(super) fn resumed(workflow: Workflow, snapshot: Snapshot) -> Self {
        Self::of(workflow, StartPoint::Snapshot(Box::new(snapshot)))
    }

    fn of(workflow: Workflow, from: StartPoint) -> Self {
        Self {
            workflow,
            from,
            answers: Vec::new(),
            label: Label::default(),
            is_labelled: false,
            context: RunContext::default(),
            checkpoints: None,
            observer: None,
        }
    }

    /// Answers a request (`WF-12`). Unanswered requests stay open.
    pub fn answer(mut self, id: impl Into<String>, answer: impl Into<Payload>) -> Self {
        self.answers.push((id.into(), answer.into()));
        self
    }

    /// Adds the label of what the run gets, such as that of the session of its caller.
    pub fn label(mut self, label: &Label) -> Self {
        self.label.add(label);
        self
    }

    /// States that a label policy applies to the agents. What a run has read before, without a
    /// policy, gets the label [`Label::unknown`]. Snapshots record the statement: without it, runs
    /// from them fail with [`WorkflowError::PolicyMissing`].
    pub fn labelled(mut self) -> Self {
        self.is_labelled = true;
        self
    }

    /// Sets a token that cancels the run. The executors of the current superstep have a few seconds
    /// to end by themselves; if they do not, the superstep has no effect.
    pub fn cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.context.cancellation = cancellation;
        self
    }

    /// Sets the services and limits that the agents of the workflow get, the token that cancels
    /// the run among them.
    pub fn context(mut self, context: RunContext) -> Self {
        self.context = context;
        self
    }

    /// Saves a checkpoint after each superstep (`WF-12`), under a new id of the run.
    pub fn checkpoints(mut self, checkpoints: &Checkpoints) -> Self {
        self.checkpoints = Some(RunCheckpoints::new(checkpoints));
        self
    }

    /// Saves a checkpoint after each superstep under an id that the caller knows before the run
    /// starts, so that it can lock it. A run that goes on from its own last snapshot can keep its
    /// id; another one would overwrite checkpoints.
    pub fn checkpoints_of(mut self, run: &RunCheckpoints) -> Self {
        self.checkpoints = Some(Ok(run.clone()));
        self
    }

    /// Calls a function with each event when it happens. Events of executors that run at the same
    /// time come in the order of time; the stream has them executor by executor. The function must
    /// not block.
    pub fn observer(mut self, observer: impl Fn(&WorkflowEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// Returns the events of the run as a stream.
    #[must_use]
    pub fn stream(self) -> WorkflowStream {
        let (sender, events) = mpsc::channel(EVENTS_AHEAD_MAX);
        let run: SnapshotFuture = Box::pin(async move { self.begin(sender)?.run().await });
        WorkflowStream { run: Some(run), events, ended: None }
    }

    /// Checks the input and the answers before anything runs.
    fn begin(self, events: mpsc::Sender<WorkflowEvent>) -> Result<RunState, WorkflowError> {
        let Self { workflow, from, answers, label, is_labelled, context, checkpoints, observer } =
            self;
        let mut snapshot = match from {
            StartPoint::Input(input) => beginning(&workflow, input)?,
            StartPoint::Snapshot(snapshot) if is_labelled && !snapshot.is_labelled => {
                let mut snapshot = *snapshot;
                snapshot.label.add(&Label::unknown());
                snapshot
            }
            StartPoint::Snapshot(snapshot) if snapshot.is_labelled && !is_labelled => {
                return Err(WorkflowError::PolicyMissing);
            }
            StartPoint::Snapshot(snapshot) => *snapshot,
        };
        snapshot.is_labelled |= is_labelled;
        snapshot.label.add(&label);
        for (id, answer) in answers {
            snapshot.answer(&id, answer)?;
        }
        let keeper = checkpoints.transpose()?;
        Ok(RunState { workflow, snapshot, context, keeper, events, observer })
    }
}

fn beginning(workflow: &Workflow, input: Payload) -> Result<Snapshot, WorkflowError> {
    let graph = &workflow.graph;
    if !routing::takes(graph, &graph.start, &input) {
        let takes = graph.executor(&graph.start).map(|start| start.accepts()).unwrap_or_default();
        return Err(WorkflowError::Input {
            executor: graph.start.clone(),
            takes,
            given: input.message_type,
        });
    }
    let snapshot = Snapshot::beginning(graph, input);
    snapshot.check_limits(graph)?;
    Ok(snapshot)
}

impl IntoFuture for WorkflowRun {
    type Output = Result<RunOutcome, WorkflowError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let mut stream = self.stream();
            let mut events = Vec::new();
            while let Some(event) = stream.next().await {
                events.push(event);
            }
            Ok(RunOutcome { events, snapshot: stream.finish().await? })
        })
    }
}

impl RunOutcome {
    /// Returns the outputs, in order (`WF-9`).
    pub fn outputs(&self) -> impl Iterator<Item = &ProducedOutput> {
        self.events.iter().filter_map(|event| match event {
            WorkflowEvent::Output(produced) => Some(produced),
            _ => None,
        })
    }

    /// Returns the intermediate outputs, in order (`WF-9`).
    pub fn intermediates(&self) -> impl Iterator<Item = &ProducedOutput> {
        self.events.iter().filter_map(|event| match event {
            WorkflowEvent::Intermediate(produced) => Some(produced),
            _ => None,
        })
    }

    /// Returns the open requests to the user, whose answers the run needs to continue (`WF-12`).
    #[must_use]
    pub fn requests(&self) -> &[UserRequest] {
        self.snapshot.requests()
    }

    /// Returns the last output as the user reads it; empty if there is none.
    #[must_use]
    pub fn text(&self) -> String {
        self.outputs().last().map(ProducedOutput::text).unwrap_or_default()
    }
}

impl WorkflowStream {
    /// Reads the remaining events and returns the final snapshot.
    ///
    /// # Errors
    /// The error that ended the run.
    pub async fn finish(mut self) -> Result<Snapshot, WorkflowError> {
        while self.next().await.is_some() {}
        self.ended.unwrap_or(Err(WorkflowError::Cancelled))
    }
}

impl Stream for WorkflowStream {
    type Item = WorkflowEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Poll::Ready(event) = self.events.poll_recv(context)
                && (event.is_some() || self.run.is_none())
            {
                return Poll::Ready(event);
            }
            let Some(run) = &mut self.run else { return Poll::Ready(None) };
            match run.as_mut().poll(context) {
                Poll::Ready(ended) => {
                    self.ended = Some(ended);
                    // Dropping the run drops the sender too, so the stream ends after the remaining
                    // events.
                    self.run = None;
                }
                Poll::Pending => return self.events.poll_recv(context),
            }
        }
    }
}
