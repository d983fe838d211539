//! Workers of one process: the one with the current tools, and earlier ones whose calls still run.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_cluster::{Worker, WorkerOptions};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::worker::{RunningWorker, WorkerConnection, WorkerSettings};
use super::{DISCOVERY_INTERVAL, not_started};
use crate::serve::{OfferTarget, ServeOptions, ServedState};
use crate::{Operator, Result, text};

/// Maximum number of earlier workers. If there are more, the oldest has to end first.
const RETIRED_MAX: usize = 8;

/// Returns the time for which a version is still called after it was replaced: gateways may miss
/// the new one at one look.
fn handover_wait() -> Duration {
    DISCOVERY_INTERVAL * 2 + Duration::from_secs(2)
}

/// Workers with the same permits on one connection.
pub(super) struct Workers {
    connection: WorkerConnection,
    settings: WorkerSettings,
    operator: Operator,
    /// Ends the earlier workers.
    stop: CancellationToken,
    state: Mutex<WorkersState>,
}

#[derive(Default)]
struct WorkersState {
    current: Option<Worker>,
    /// Earlier workers, the oldest first.
    retired: VecDeque<RetiredWorker>,
}

/// Worker that takes no calls but those of replaced versions, and ends after its last call.
struct RetiredWorker {
    worker: Worker,
    /// Limits the time for its calls.
    drain: CancellationToken,
    ending: JoinHandle<()>,
}

impl Workers {
    pub(super) fn new(
        connection: WorkerConnection,
        settings: WorkerSettings,
        operator: &Operator,
    ) -> Self {
        let (operator, state) = (operator.clone(), Mutex::default());
        Self { connection, settings, operator, stop: CancellationToken::new(), state }
    }

    /// Ends all workers when their calls have ended.
    pub(super) async fn drain(&self) {
        self.stop.cancel();
        let mut state = self.state.lock().await;
        let WorkersState { current, retired } = &mut *state;
        let workers = current.iter().chain(retired.iter().map(|retired| &retired.worker));
        let calls: usize = workers.map(Worker::calls).sum();
        self.operator.note(&format!("ending; calls that still run: {calls}"));
        if let Some(current) = current.take() {
            current.drain(self.settings.drain_wait).await;
        }
        for retired in retired.drain(..) {
            // An error means that the task has panicked, which was reported.
            let _ = retired.ending.await;
        }
    }

    /// Shows a worker to monitoring systems.
    fn show(&self, worker: &Worker, state: &ServedState) {
        let (log, metrics) = (state.call_log(), state.metrics());
        self.connection.monitored.set(RunningWorker { monitor: worker.monitor(), log, metrics });
    }

    /// Starts to end a worker. `is_called` is true if gateways still call it.
    fn retire(&self, worker: Worker, is_called: bool) -> RetiredWorker {
        let (stop, drain) = (self.stop.clone(), self.stop.child_token());
        let (ending, hurried) = (worker.clone(), drain.clone());
        let drain_wait = self.settings.drain_wait;
        let ending = tokio::spawn(async move {
            if is_called {
                stop.run_until_cancelled(tokio::time::sleep(handover_wait())).await;
            }
            // Calls have limits of their own, so that a reload need not cancel them.
            hurried.run_until_cancelled(ending.finish_calls()).await;
            ending.drain(drain_wait).await;
        });
        RetiredWorker { worker, drain, ending }
    }
}

impl WorkersState {
    /// Waits until there is room for another earlier worker.
    async fn make_room(&mut self) {
        self.retired.retain(|retired| !retired.ending.is_finished());
        while self.retired.len() >= RETIRED_MAX
            && let Some(oldest) = self.retired.front_mut()
        {
            oldest.drain.cancel();
            let _ = (&mut oldest.ending).await;
            self.retired.pop_front();
        }
    }
}

impl OfferTarget for Workers {
    fn publish<'a>(
        &'a self,
        state: &'a ServedState,
        options: &'a ServeOptions,
    ) -> BoxFuture<'a, Result<()>> {
        self.start_or_replace(state, options).boxed()
    }
}

impl Workers {
    /// Starts the first worker, or one that takes over from the current one.
    async fn start_or_replace(&self, state: &ServedState, options: &ServeOptions) -> Result<()> {
        let toolset = state.callable(options)?;
        let count = toolset.definitions().len();
        if self.settings.follows_changes {
            state.preload().await;
        }
        let mut workers = self.state.lock().await;
        let Some(before) = workers.current.clone() else {
            let options = WorkerOptions {
                tenant: self.connection.tenant.clone(),
                calls_max: self.settings.calls_max,
                caller_calls_max: self.settings.caller_calls_max.unwrap_or(usize::MAX),
                ..WorkerOptions::default()
            };
            let bus = Arc::clone(&self.connection.bus);
            let worker = Worker::start(bus, toolset, options).await.map_err(not_started)?;
            let tools = text::counted(count, "tool");
            self.operator.note(&format!("worker {} is ready with {tools}", worker.name()));
            self.show(&worker, state);
            workers.current = Some(worker);
            return Ok(());
        };
        workers.make_room().await;
        let next = before.start_successor(toolset).await.map_err(not_started)?;
        for earlier in &workers.retired {
            let _ = earlier.worker.hand_over(&next);
        }
        let is_called = before.hand_over(&next);
        workers.retired.push_back(self.retire(before, is_called));
        self.show(&next, state);
        workers.current = Some(next);
        Ok(())
    }
}
