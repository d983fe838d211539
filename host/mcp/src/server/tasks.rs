//! Tasks and their owners.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

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
    owners: Mutex<HashMap<String, String>>,
}

impl Tasks {
    /// Returns true if another call may become a task.
    pub(super) fn has_room(&self) -> bool {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.len() >= TRACKED_MAX {
            owners.retain(|id, _| self.tasks.get_task(id).is_ok());
        }
        owners.len() < TRACKED_MAX && self.tasks.running_task_count() < RUNNING_MAX
    }

    pub(super) fn spawn(
        &self,
        principal: &Principal,
        options: TaskOptions,
        run: impl FnOnce(TaskContext) -> TaskFuture,
    ) -> Task {
        let task = self.tasks.spawn(options, run);
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.insert(task.task_id.clone(), principal.name().to_owned());
        task
    }

    pub(super) fn get(&self, principal: &Principal, id: &str) -> Result<DetailedTask, ErrorData> {
        self.owned(principal, id)?;
        self.tasks.get_task(id)
    }

    pub(super) fn answer(
        &self,
        principal: &Principal,
        id: &str,
        responses: InputResponses,
    ) -> Result<(), ErrorData> {
        self.owned(principal, id)?;
        self.tasks.update_task(id, responses)
    }

    pub(super) fn cancel(&self, principal: &Principal, id: &str) -> Result<(), ErrorData> {
        self.owned(principal, id)?;
        self.tasks.cancel_task(id)
    }

    pub(super) fn stop(&self) {
        self.tasks.shutdown();
    }

    fn owned(&self, principal: &Principal, id: &str) -> Result<(), ErrorData> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.get(id).is_some_and(|owner| owner == principal.name()) {
            return Ok(());
        }
        Err(ErrorData::invalid_params("there is no task of this id", None))
    }
}
