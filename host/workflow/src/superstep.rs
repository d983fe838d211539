//! Execution of a run, superstep by superstep (`WF-5`, `WF-6`, `WF-11`).

use std::sync::Arc;
use std::time::Duration;

use cofferdam_agent::RunContext;
use futures_util::future::try_join_all;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::builder::{Graph, Workflow};
use super::checkpoint::RunCheckpoints;
use super::error::WorkflowError;
use super::event::{EventObserver, WorkflowEvent};
use super::executor::Executor;
use super::routing;
use super::snapshot::{Delivery, Snapshot};
use super::step::{Effects, Step, StepStart};

/// Time that executors have to end by themselves after a run is canceled. It is longer than the
/// time that an agent allows its tools.
const GRACE: Duration = Duration::from_secs(3);

/// Run in progress.
pub(super) struct RunState {
    pub(super) workflow: Workflow,
    pub(super) snapshot: Snapshot,
    pub(super) context: RunContext,
    pub(super) keeper: Option<RunCheckpoints>,
    pub(super) events: mpsc::Sender<WorkflowEvent>,
    pub(super) observer: Option<EventObserver>,
}

/// Messages of one executor in one superstep.
struct ExecutorTurn {
    executor: Arc<dyn Executor>,
    deliveries: Vec<Delivery>,
    step: Step,
}

impl RunState {
    /// Runs supersteps until no messages are left (`WF-5`).
    pub(super) async fn run(mut self) -> Result<Snapshot, WorkflowError> {
        let max_iterations = self.workflow.graph.limits.max_iterations;
        while !self.snapshot.queue.is_empty() {
            if self.context.cancellation.is_cancelled() {
                return Err(WorkflowError::Cancelled);
            }
            if self.snapshot.superstep.saturating_sub(self.snapshot.counted_from) >= max_iterations
            {
                return Err(WorkflowError::NotConverged { max_iterations });
            }
            self.superstep().await?;
        }
        Ok(self.snapshot)
    }

    async fn superstep(&mut self) -> Result<(), WorkflowError> {
        let graph = Arc::clone(&self.workflow.graph);
        let superstep = self.snapshot.superstep.saturating_add(1);
        self.tell(WorkflowEvent::SuperstepStarted { superstep }).await;
        let (turns, events) = self.turns(&graph, superstep)?;
        let steps: Vec<_> = turns.iter().map(|turn| turn.step.clone()).collect();
        let work = async {
            let worked = tokio::select! {
                biased;
                worked = try_join_all(turns.into_iter().map(ExecutorTurn::take)) => worked.map(drop),
                () = long_cancelled(&self.context.cancellation) => Err(WorkflowError::Cancelled),
            };
            // Clones of a step that outlive the superstep have no effect any more.
            let effects: Vec<_> =
                steps.iter().map(|step| (step.executor().to_owned(), step.end())).collect();
            worked.map(|()| effects)
        };
        let (worked, ()) = tokio::join!(work, forward(events, &self.events));
        let effects = match worked {
            Err(_) if self.context.cancellation.is_cancelled() => {
                return Err(WorkflowError::Cancelled);
            }
            worked => worked?,
        };
        publish(&graph, &mut self.snapshot, effects)?;
        self.snapshot.superstep = superstep;
        self.snapshot.check_limits(&graph)?;
        let checkpoint = match &self.keeper {
            Some(keeper) => Some(keeper.save(&self.snapshot).await?),
            None => None,
        };
        self.tell(WorkflowEvent::SuperstepCompleted { superstep, checkpoint }).await;
        Ok(())
    }

    /// Returns the turns of the superstep, in the order in which the first message of each executor
    /// was sent.
    fn turns(
        &mut self,
        graph: &Graph,
        superstep: u64,
    ) -> Result<(Vec<ExecutorTurn>, Vec<mpsc::UnboundedReceiver<WorkflowEvent>>), WorkflowError>
    {
        let state = Arc::new(self.snapshot.state.clone());
        let (mut turns, mut all_events) = (Vec::<ExecutorTurn>::new(), Vec::new());
        for delivery in std::mem::take(&mut self.snapshot.queue) {
            if let Some(turn) = turns.iter_mut().find(|turn| turn.executor.id() == delivery.to) {
                turn.deliveries.push(delivery);
                continue;
            }
            let executor = graph.executor(&delivery.to).ok_or(WorkflowError::Structure)?;
            let (events, receiver) = mpsc::unbounded_channel();
            let step = Step::new(StepStart {
                executor: delivery.to.clone(),
                superstep,
                sends: executor.sends(),
                yields: executor.yields(),
                targets: targets(graph, &delivery.to),
                shown: graph.designated.of(&delivery.to),
                limits: graph.limits,
                context: self.context.clone(),
                state: Arc::clone(&state),
                label: self.snapshot.label.clone(),
                own: self.snapshot.own.get(&delivery.to).cloned().unwrap_or_default(),
                asked: self.snapshot.asked.get(&delivery.to).copied().unwrap_or_default(),
                events,
                observer: self.observer.clone(),
            });
            turns.push(ExecutorTurn {
                executor: Arc::clone(executor),
                deliveries: vec![delivery],
                step,
            });
            all_events.push(receiver);
        }
        Ok((turns, all_events))
    }

    async fn tell(&self, event: WorkflowEvent) {
        if let Some(observer) = &self.observer {
            observer(&event);
        }
        // Ignores a dropped receiver: the stream that holds it also holds the run, so both end
        // together.
        let _ = self.events.send(event).await;
    }
}

impl ExecutorTurn {
    /// Handles the messages one after another.
    async fn take(self) -> Result<(), WorkflowError> {
        let Self { executor, deliveries, step } = self;
        let id = || executor.id().to_owned();
        for Delivery { from, message, request, .. } in deliveries {
            step.begin(&from);
            step.emit(WorkflowEvent::ExecutorInvoked { executor: id() });
            let handled = match request {
                Some(request) => executor.answered(request, message, &step).await,
                None => executor.handle(message, &step).await,
            };
            if let Err(source) = handled {
                let error = source.to_string();
                step.emit(WorkflowEvent::ExecutorFailed { executor: id(), error });
                return Err(WorkflowError::Executor { executor: id(), source });
            }
            step.emit(WorkflowEvent::ExecutorCompleted { executor: id() });
        }
        Ok(())
    }
}

/// Forwards events as they arrive, executor by executor, so that their order does not depend on the
/// time that each executor takes.
async fn forward(
    events: Vec<mpsc::UnboundedReceiver<WorkflowEvent>>,
    to: &mpsc::Sender<WorkflowEvent>,
) {
    for mut of_executor in events {
        while let Some(event) = of_executor.recv().await {
            let _ = to.send(event).await;
        }
    }
}

/// Publishes the effects of the executors in order: state, requests, messages.
fn publish(
    graph: &Graph,
    snapshot: &mut Snapshot,
    effects: Vec<(String, Effects)>,
) -> Result<(), WorkflowError> {
    for (executor, effects) in effects {
        for (key, value) in effects.state {
            if value.is_null() {
                snapshot.state.shift_remove(&key);
            } else {
                snapshot.state.insert(key, value);
            }
        }
        if effects.own.is_null() {
            snapshot.own.remove(&executor);
        } else {
            snapshot.own.insert(executor.clone(), effects.own);
        }
        if effects.asked > 0 {
            snapshot.asked.insert(executor.clone(), effects.asked);
        }
        snapshot.requests.extend(effects.requests);
        snapshot.label.add(&effects.label);
        for (message, target) in effects.sent {
            routing::send(graph, snapshot, &executor, &message, target.as_deref())?;
            if snapshot.queue.len() > graph.limits.messages_max {
                return Err(WorkflowError::TooMuch {
                    what: "messages",
                    max: graph.limits.messages_max,
                });
            }
        }
    }
    Ok(())
}

/// Returns the targets of an executor, each once.
fn targets(graph: &Graph, source: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for (from, to) in graph.edges.iter().flat_map(|group| group.edges()) {
        if from == source && !targets.iter().any(|known| known == to) {
            targets.push(to.to_owned());
        }
    }
    targets
}

async fn long_cancelled(cancellation: &CancellationToken) {
    cancellation.cancelled().await;
    tokio::time::sleep(GRACE).await;
}
