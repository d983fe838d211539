//! Tasks that several servers share: a client may ask any of them.
//!
//! The server that is asked takes the task over. It then has the task as if it had started it:
//! questions, progress and cancellation work as they do for its own.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::handover::Handover;
use cofferdam_tool::{CallContext, Completion, ToolName};
use futures_util::future::BoxFuture;
use rmcp::model::{DetailedTask, TaskPayload};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use tokio::sync::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::ServerShared;
use super::caller::Caller;
use super::calls::{PromotedCall, RunningCall};
use super::elicitation::{self, Elicitation};
use super::principal::Principal;
use super::report::Reports;

/// Longest id of a task, in bytes. Those of servers are UUIDs.
const ID_BYTES_MAX: usize = 64;
/// Time to wait for the worker of a task that was taken over, which repeats its open questions.
const WORKER_WAIT_MAX: Duration = Duration::from_secs(3);
/// Number of locks, at most 32.
const LOCKS: usize = 32;
/// Interval in which a server looks whether such a task has ended.
const END_INTERVAL: Duration = Duration::from_millis(20);

/// Store of the tasks that servers share.
#[async_trait]
pub trait SharedTasks: Send + Sync {
    /// Takes over the task that a server has started for this caller. Returns `None` if no server
    /// has.
    ///
    /// # Errors
    /// A message for the client if the store does not answer.
    async fn take_over(&self, caller: &str, id: &str) -> Result<Option<TakenTask>, String>;
}

/// A task that another server has started.
pub struct TakenTask {
    /// Tool that was called.
    pub tool: ToolName,
    /// Waits for the end of the call. The context receives its questions and reports.
    pub run: Box<dyn FnOnce(CallContext) -> BoxFuture<'static, Completion> + Send>,
}

/// Locks that are taken while a task is taken over. Each is for some tasks, so that a store or
/// worker that is slow with one delays few others.
#[derive(Default)]
pub(super) struct TakeOverLocks {
    locks: [Mutex<()>; LOCKS],
    hasher: RandomState,
}

impl TakeOverLocks {
    async fn lock(&self, principal: &Principal, id: &str) -> MutexGuard<'_, ()> {
        let hash = self.hasher.hash_one((principal.name(), id));
        let [first, ..] = &self.locks;
        let index = usize::try_from(hash % LOCKS as u64).unwrap_or_default();
        self.locks.get(index).unwrap_or(first).lock().await
    }
}

impl ServerShared {
    /// Returns the caller of a request about a task, which is taken over if another server has it.
    pub(super) async fn task_caller(
        self: &Arc<Self>,
        context: RequestContext<RoleServer>,
        id: &str,
    ) -> Result<Arc<Caller>, ErrorData> {
        let caller = Arc::new(Caller::new(context));
        self.ensure_task(&caller, id).await?;
        Ok(caller)
    }

    /// Returns a task, which is taken over if another server has it, and the caller of the request
    /// for it.
    pub(super) async fn polled_task(
        self: &Arc<Self>,
        context: RequestContext<RoleServer>,
        id: &str,
    ) -> Result<(Arc<Caller>, DetailedTask), ErrorData> {
        let caller = self.task_caller(context, id).await?;
        let mut task = self.tasks.get(&caller.principal, id);
        if task.is_err() {
            // Another server may have taken it over since then.
            self.ensure_task(&caller, id).await?;
            task = self.tasks.get(&caller.principal, id);
        }
        Ok((caller, task?))
    }

    /// Takes a task over if another server has it.
    async fn ensure_task(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        id: &str,
    ) -> Result<(), ErrorData> {
        let principal = &caller.principal;
        let Some(tasks) = self.shared_tasks.get() else { return Ok(()) };
        if self.tasks.has(principal, id) || id.len() > ID_BYTES_MAX {
            return Ok(());
        }
        // Of two requests at the same time, the second one finds the task.
        let taking = self.taking_over.lock(principal, id).await;
        if self.tasks.has(principal, id) {
            return Ok(());
        }
        if !self.tasks.tracks_more(principal) {
            let message = "this server has too many tasks; ask again when some have ended";
            return Err(ErrorData::internal_error(message, None));
        }
        let taken = tasks.take_over(principal.name(), id).await;
        if let Some(taken) = taken.map_err(|error| ErrorData::internal_error(error, None))? {
            let handover = self.continue_task(caller, id, taken)?;
            drop(taking);
            // A call that has ended, or a worker that is lost, has no open questions.
            let ended = async {
                while !self.has_ended(principal, id) {
                    tokio::time::sleep(END_INTERVAL).await;
                }
            };
            let known = async {
                tokio::select! {
                    () = handover.attached() => {}
                    () = ended => {}
                }
            };
            let _ = tokio::time::timeout(WORKER_WAIT_MAX, known).await;
        }
        Ok(())
    }

    fn has_ended(&self, principal: &Principal, id: &str) -> bool {
        let task = self.tasks.get(principal, id);
        !task.is_ok_and(|task| matches!(task.payload, TaskPayload::Working))
    }

    /// Continues a task that was taken over.
    fn continue_task(
        self: &Arc<Self>,
        caller: &Arc<Caller>,
        id: &str,
        taken: TakenTask,
    ) -> Result<Arc<Handover>, ErrorData> {
        let catalog = self.catalog(&caller.principal);
        let entry = catalog.tools.iter().find(|entry| entry.definition.name == taken.tool);
        let wire = entry.map(|entry| entry.wire.clone()).ok_or_else(|| {
            ErrorData::internal_error("the tool of the task is not offered at the moment", None)
        })?;
        let (reports, stop) = (Arc::new(Reports::default()), CancellationToken::new());
        let elicitation = Arc::new(Elicitation::by_request(Arc::clone(caller), None));
        let handover = Handover::new();
        let context = CallContext {
            session: Some(caller.principal.name().to_owned()),
            cancellation: stop.clone(),
            progress: Some(Arc::clone(&reports) as _),
            asker: Some(elicitation::asker(&elicitation)),
            handover: Some(Arc::clone(&handover)),
            ..CallContext::new(self.next_call_id())
        };
        let call = Box::pin(async move { Ok((taken.run)(context).await) });
        let running =
            RunningCall { elicitation, reports, call, stop, handover: Some(Arc::clone(&handover)) };
        let principal = caller.principal.clone();
        let promoted = PromotedCall { running, permit: None, catalog, wire, principal };
        self.spawn_task(promoted, Some(id.to_owned()), None);
        Ok(handover)
    }
}
