//! Tasks and their owners.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, DetailedTask, InputResponses, Task};
use rmcp::task_manager::{TaskContext, TaskFuture, TaskManager, TaskOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::principal::Principal;

/// Maximum number of calls that run as tasks at the same time. Further calls run as ordinary calls.
const RUNNING_MAX: usize = 64;
/// Maximum number of tasks that are tracked, including finished ones that have not expired.
const TRACKED_MAX: usize = 1024;
/// Maximum number of these that belong to one principal.
const OWNED_MAX: usize = 512;
/// Maximum bytes of the results of finished tasks.
const KEPT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Maximum bytes of those of one principal.
const OWNED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lifetime of a task from its creation, and time for which the result of a finished one is kept.
const TTL: Duration = Duration::from_secs(60 * 60);

/// Tasks of all clients. A task belongs to the principal whose request created it; to other
/// principals it does not exist.
pub(super) struct Tasks {
    running: Arc<Semaphore>,
    /// Tasks by the id that their clients know.
    owned: Mutex<HashMap<String, OwnedTask>>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { running: Arc::new(Semaphore::new(RUNNING_MAX)), owned: Mutex::default() }
    }
}

/// Permit for a call to run as a task.
pub(super) type TaskPermit = OwnedSemaphorePermit;

struct OwnedTask {
    owner: String,
    /// State of this task alone: dropping it frees everything, which a manager of many tasks
    /// cannot.
    manager: TaskManager,
    /// Id in the manager, which is another one if another server has started the task.
    local_id: String,
    created: Instant,
    end: Arc<OnceLock<TaskEnd>>,
}

/// End of a task.
#[derive(Debug, Clone, Copy)]
struct TaskEnd {
    at: Instant,
    /// Bytes of the result.
    bytes: usize,
}

impl OwnedTask {
    fn is_expired(&self) -> bool {
        if self.created.elapsed() >= TTL {
            // Ends a task that runs too long.
            self.manager.running_task_count();
        }
        self.end.get().is_some_and(|end| end.at.elapsed() >= TTL)
    }

    fn bytes(&self) -> usize {
        self.end.get().map_or(0, |end| end.bytes)
    }
}

/// Notes the end of a task, also of one that is aborted.
struct EndNote {
    end: Arc<OnceLock<TaskEnd>>,
    bytes: usize,
}

impl Drop for EndNote {
    fn drop(&mut self) {
        let _ = self.end.set(TaskEnd { at: Instant::now(), bytes: self.bytes });
    }
}

impl Tasks {
    /// Returns a permit for a call of a principal to become a task. If the principal has too many
    /// finished tasks, the oldest are forgotten. Returns `None` if there are too many tasks.
    pub(super) fn reserve(&self, principal: &Principal) -> Option<TaskPermit> {
        let permit = Arc::clone(&self.running).try_acquire_owned().ok()?;
        let mut owned = self.owned.lock();
        make_room(&mut owned, principal.name()).then_some(permit)
    }

    /// Returns true if a call may become a task at the moment.
    pub(super) fn has_permits(&self) -> bool {
        self.running.available_permits() > 0
    }

    /// Returns true if another task of a principal can be tracked, such as one that another server
    /// has started. If the principal has too many finished tasks, the oldest are forgotten.
    pub(super) fn tracks_more(&self, principal: &Principal) -> bool {
        make_room(&mut self.owned.lock(), principal.name())
    }

    /// Starts a task. One that another server has started keeps its `id`, and needs no permit.
    pub(super) fn spawn(
        &self,
        principal: &Principal,
        id: Option<String>,
        mut options: TaskOptions,
        permit: Option<TaskPermit>,
        run: impl FnOnce(TaskContext) -> TaskFuture,
    ) -> Task {
        options.ttl_ms = u64::try_from(TTL.as_millis()).ok();
        let (manager, end) = (TaskManager::new(), Arc::<OnceLock<TaskEnd>>::default());
        let noted = Arc::clone(&end);
        let mut task = manager.spawn(options, |context| {
            let running = run(context);
            Box::pin(async move {
                let _permit = permit;
                let mut note = EndNote { end: noted, bytes: 0 };
                let ended = running.await;
                note.bytes = ended.as_ref().map_or(0, result_bytes);
                ended
            })
        });
        let owned = OwnedTask {
            owner: principal.name().to_owned(),
            manager,
            local_id: task.task_id.clone(),
            created: Instant::now(),
            end,
        };
        task.task_id = id.unwrap_or(task.task_id);
        self.owned.lock().insert(task.task_id.clone(), owned);
        task
    }

    pub(super) fn get(&self, principal: &Principal, id: &str) -> Result<DetailedTask, ErrorData> {
        let (manager, local_id) = self.find(principal, id)?;
        let mut detailed = manager.get_task(&local_id)?;
        id.clone_into(&mut detailed.task.task_id);
        Ok(detailed)
    }

    pub(super) fn answer(
        &self,
        principal: &Principal,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        let (manager, local_id) = self.find(principal, id)?;
        manager.update_task(&local_id, responses)
    }

    pub(super) fn cancel(&self, principal: &Principal, id: &str) -> Result<(), ErrorData> {
        let (manager, local_id) = self.find(principal, id)?;
        manager.cancel_task(&local_id)
    }

    /// Forgets a task that another server continues, unless this server has taken it back.
    pub(super) fn forget(&self, id: &str, local_id: &str) {
        let mut owned = self.owned.lock();
        if owned.get(id).is_some_and(|task| task.local_id == local_id) {
            owned.remove(id);
        }
    }

    pub(super) fn stop(&self) {
        self.owned.lock().values().for_each(|task| task.manager.shutdown());
    }

    /// Returns whether this server has the task.
    pub(super) fn has(&self, principal: &Principal, id: &str) -> bool {
        self.find(principal, id).is_ok()
    }

    fn find(&self, principal: &Principal, id: &str) -> Result<(TaskManager, String), ErrorData> {
        let mut owned = self.owned.lock();
        match owned.get(id) {
            Some(task) if task.is_expired() => drop(owned.remove(id)),
            Some(task) if task.owner == principal.name() => {
                return Ok((task.manager.clone(), task.local_id.clone()));
            }
            _ => {}
        }
        Err(ErrorData::invalid_params("there is no task of this id", None))
    }
}

/// Makes room for another task of an owner: forgets expired tasks, and the oldest finished ones of
/// the owner if it has too many. Returns false if there is no room.
fn make_room(tasks: &mut HashMap<String, OwnedTask>, owner: &str) -> bool {
    tasks.retain(|_, task| !task.is_expired());
    let (mut count, mut bytes, mut finished) = (0, 0, Vec::new());
    for (id, task) in tasks.iter().filter(|(_, task)| task.owner == owner) {
        count += 1;
        bytes += task.bytes();
        finished.extend(task.end.get().map(|end| (end.at, end.bytes, id.clone())));
    }
    finished.sort();
    for (_, bytes_of_task, id) in finished {
        if count < OWNED_MAX && bytes < OWNED_BYTES_MAX {
            break;
        }
        tasks.remove(&id);
        count -= 1;
        bytes -= bytes_of_task;
    }
    let kept: usize = tasks.values().map(OwnedTask::bytes).sum();
    count < OWNED_MAX && tasks.len() < TRACKED_MAX && kept < KEPT_BYTES_MAX
}

fn result_bytes(result: &CallToolResult) -> usize {
    serde_json::to_vec(result).map_or(0, |bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use rmcp::model::ContentBlock;
    use rmcp::task_manager::TaskExit;

    use super::*;

    fn principal(name: &str) -> Principal {
        Principal::new(name.to_owned(), None)
    }

    fn pending() -> TaskFuture {
        Box::pin(std::future::pending())
    }

    fn spawn(tasks: &Tasks, owner: &Principal, id: &str, run: TaskFuture) {
        tasks.spawn(owner, Some(id.to_owned()), TaskOptions::default(), None, |_| run);
    }

    async fn ended(tasks: &Tasks, id: &str) {
        while tasks.owned.lock()[id].end.get().is_none() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn tasks_that_other_servers_have_started_count_against_the_limits() {
        let tasks = Tasks::default();
        let [one, other] = ["a", "b"].map(principal);
        for (number, owner) in (0..TRACKED_MAX).zip([&one, &other].into_iter().cycle()) {
            assert!(tasks.tracks_more(owner));
            spawn(&tasks, owner, &number.to_string(), pending());
        }
        assert!(!tasks.tracks_more(&one) && !tasks.tracks_more(&principal("c")));

        let local_id = tasks.owned.lock()["0"].local_id.clone();
        tasks.forget("0", "another one");
        assert!(!tasks.tracks_more(&one));
        tasks.forget("0", &local_id);
        assert!(tasks.tracks_more(&one) && !tasks.tracks_more(&other));
    }

    #[tokio::test]
    async fn concurrent_calls_do_not_get_more_permits_than_there_are() {
        let (tasks, principal) = (Tasks::default(), Principal::local());
        let permits: Vec<_> = (0..RUNNING_MAX).map_while(|_| tasks.reserve(&principal)).collect();
        assert_eq!(permits.len(), RUNNING_MAX);
        assert!(tasks.reserve(&principal).is_none() && !tasks.has_permits());
        for (number, permit) in permits.into_iter().enumerate() {
            let run: TaskFuture = Box::pin(async { Err(TaskExit::Cancelled) });
            let options = TaskOptions::default();
            tasks.spawn(&principal, Some(number.to_string()), options, Some(permit), |_| run);
            ended(&tasks, &number.to_string()).await;
        }
        assert!(tasks.reserve(&principal).is_some());
    }

    #[tokio::test]
    async fn the_oldest_results_of_an_owner_make_room() {
        let (tasks, owner) = (Tasks::default(), principal("a"));
        let mib = "x".repeat(1024 * 1024);
        for number in 0..80 {
            assert!(tasks.tracks_more(&owner));
            let text = mib.clone();
            let run = async move { Ok(CallToolResult::success(vec![ContentBlock::text(text)])) };
            spawn(&tasks, &owner, &number.to_string(), Box::pin(run));
            ended(&tasks, &number.to_string()).await;
        }
        let (first, last) = (tasks.get(&owner, "0"), tasks.get(&owner, "79"));
        assert!(first.is_err() && last.is_ok());
        let kept: usize = tasks.owned.lock().values().map(OwnedTask::bytes).sum();
        assert!(kept <= OWNED_BYTES_MAX + 2 * 1024 * 1024, "{kept}");
        // Results of others are not forgotten for it.
        spawn(&tasks, &principal("b"), "other", Box::pin(async { Err(TaskExit::Cancelled) }));
        assert!(tasks.tracks_more(&owner) && tasks.has(&principal("b"), "other"));
        assert!(!tasks.has(&owner, "other"));
    }
}
