//! Task messages of a server, in the form of the earlier draft and of the extension.

use serde_json::{Map, Value};

use super::limits::TASK_ID_BYTES_MAX;

/// Task protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskDialect {
    /// The caller requests a task and fetches its result with `tasks/result` (revision 2025-11-25).
    Asked,
    /// The server creates a task, and its final state contains the result (the extension).
    Offered,
}

/// Task that was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreatedTask {
    pub(crate) id: String,
    pub(crate) draft: TaskDialect,
}

impl CreatedTask {
    /// Parses the response to a call. Returns `None` if it is not a task. Each form may come from
    /// servers of both generations.
    pub(crate) fn read(result: &Value) -> Option<Self> {
        let (task, draft) = match result.get("task") {
            Some(task) => (task, TaskDialect::Asked),
            None if result.get("resultType").is_some_and(|kind| kind == "task") => {
                (result, TaskDialect::Offered)
            }
            None => return None,
        };
        let id = task.get("taskId")?.as_str()?;
        (!id.is_empty() && id.len() <= TASK_ID_BYTES_MAX).then(|| Self { id: id.to_owned(), draft })
    }
}

/// State of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskState {
    pub(crate) status: Status,
    pub(crate) message: Option<String>,
    pub(crate) interval_ms: Option<i64>,
    /// All members of the response, including those that the extension adds to the status.
    pub(crate) payload: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl TaskState {
    /// Parses the response to `tasks/get` for the task with this id. Returns `None` for anything
    /// else (`MCP-30`).
    pub(crate) fn read(id: &str, result: Value) -> Option<Self> {
        let Value::Object(payload) = result else { return None };
        if payload.get("taskId").and_then(Value::as_str) != Some(id) {
            return None;
        }
        let all = [
            Status::Working,
            Status::InputRequired,
            Status::Completed,
            Status::Failed,
            Status::Cancelled,
        ];
        let word = payload.get("status")?.as_str()?;
        let status = all.into_iter().find(|status| status.word() == word)?;
        let message = payload.get("statusMessage").and_then(Value::as_str).map(str::to_owned);
        let interval = payload.get("pollIntervalMs").or_else(|| payload.get("pollInterval"));
        let interval_ms = interval.and_then(whole);
        Some(Self { status, message, interval_ms, payload })
    }
}

/// Returns a whole number of milliseconds and drops any fraction.
fn whole(value: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a cast saturates, and the delay is clamped"
    )]
    value.as_i64().or_else(|| value.as_f64().map(|number| number as i64))
}
