//! Tasks and their owners.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::ErrorData;
use rmcp::model::{DetailedTask, InputResponses, Task};
use rmcp::task_manager::{TaskContext, TaskFuture, TaskManager, TaskOptions};

use super::principal::Principal;

/// Maximum number of tasks that run at the same time. Further calls run as ordinary calls.
const RUNNING_MAX: usize = 64;
/// Maximum number of tasks that are tracked, including finished ones that have not expired.
const TRACKED_MAX: usize = 1024;

/// Tasks of all clients. A task belongs to the principal whose request created it; to other
/// principals it does not exist.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: TaskManager,
    /// Tasks by the id that their clients know.
    owned: Mutex<HashMap<String, OwnedTask>>,
}

struct OwnedTask {
    owner: String,
    /// Id in the task manager, which is another one if another server has started the task.
    local_id: String,
}

impl Tasks {
    /// Returns true if another call may become a task.
    pub(super) fn has_room(&self) -> bool {
        self.tracks_more() && self.tasks.running_task_count() < RUNNING_MAX
    }

    /// Returns true if another task can be tracked, such as one that another server has started.
    pub(super) fn tracks_more(&self) -> bool {
        let mut owned = self.owned();
        if owned.len() >= TRACKED_MAX {
            owned.retain(|_, task| self.tasks.get_task(&task.local_id).is_ok());
        }
        owned.len() < TRACKED_MAX
    }

    /// Starts a task. One that another server has started keeps its `id`.
    pub(super) fn spawn(
        &self,
        principal: &Principal,
        id: Option<String>,
        options: TaskOptions,
        run: impl FnOnce(TaskContext) -> TaskFuture,
    ) -> Task {
        let mut task = self.tasks.spawn(options, run);
        let owner = principal.name().to_owned();
        let owned = OwnedTask { owner, local_id: task.task_id.clone() };
        task.task_id = id.unwrap_or(task.task_id);
        self.owned().insert(task.task_id.clone(), owned);
        task
    }

    pub(super) fn get(&self, principal: &Principal, id: &str) -> Result<DetailedTask, ErrorData> {
        let mut detailed = self.tasks.get_task(&self.local_id(principal, id)?)?;
        id.clone_into(&mut detailed.task.task_id);
        Ok(detailed)
    }

    pub(super) fn answer(
        &self,
        principal: &Principal,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        self.tasks.update_task(&self.local_id(principal, id)?, responses)
    }

    pub(super) fn cancel(&self, principal: &Principal, id: &str) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&self.local_id(principal, id)?)
    }

    /// Forgets a task that another server continues.
    pub(super) fn forget(&self, id: &str) {
        self.owned().remove(id);
    }

    pub(super) fn stop(&self) {
        self.tasks.shutdown();
    }

    /// Returns whether this server has the task.
    pub(super) fn has(&self, principal: &Principal, id: &str) -> bool {
        self.local_id(principal, id).is_ok_and(|id| self.tasks.get_task(&id).is_ok())
    }

    fn local_id(&self, principal: &Principal, id: &str) -> Result<String, ErrorData> {
        match self.owned().get(id) {
            Some(task) if task.owner == principal.name() => Ok(task.local_id.clone()),
            _ => Err(ErrorData::invalid_params("there is no task of this id", None)),
        }
    }

    fn owned(&self) -> MutexGuard<'_, HashMap<String, OwnedTask>> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tasks_that_other_servers_have_started_count_against_the_limit() {
        let (tasks, principal) = (Tasks::default(), Principal::local());
        for number in 0..TRACKED_MAX {
            assert!(tasks.tracks_more());
            let pending = |_| -> TaskFuture { Box::pin(std::future::pending()) };
            tasks.spawn(&principal, Some(number.to_string()), TaskOptions::default(), pending);
        }
        assert!(!tasks.tracks_more());

        tasks.forget("0");
        assert!(tasks.tracks_more());
    }
}
