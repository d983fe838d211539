//! Settings of long-running tasks (`MCP-22`, `MCP-27`).

use std::time::Duration;

/// Between two polls, whatever a server says.
const DELAY_MIN: Duration = Duration::from_millis(500);
const DELAY_MAX: Duration = Duration::from_millis(5000);

/// How tasks on a server are made and waited for. They cannot be changed in place: a connection is
/// made with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOptions {
    default_ttl: Option<Duration>,
    max_task_wait: Option<Duration>,
    cancel_remote_task_on_local_cancellation: bool,
}

/// A time that is not above zero.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{option} must be greater than zero.")]
pub struct TaskOptionsError {
    option: &'static str,
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            default_ttl: None,
            max_task_wait: None,
            cancel_remote_task_on_local_cancellation: true,
        }
    }
}

impl TaskOptions {
    /// Options with times in seconds.
    ///
    /// # Errors
    /// The first time that is not above zero, or that no clock can hold.
    pub fn new(
        default_ttl_s: Option<f64>,
        max_task_wait_s: Option<f64>,
        cancel_remote_task_on_local_cancellation: bool,
    ) -> Result<Self, TaskOptionsError> {
        Ok(Self {
            default_ttl: above_zero("default_ttl", default_ttl_s)?,
            max_task_wait: above_zero("max_task_wait", max_task_wait_s)?,
            cancel_remote_task_on_local_cancellation,
        })
    }

    /// How long a server is asked to keep a task.
    #[must_use]
    pub fn default_ttl(&self) -> Option<Duration> {
        self.default_ttl
    }

    /// How long a task is waited for, everything after its creation included.
    #[must_use]
    pub fn max_task_wait(&self) -> Option<Duration> {
        self.max_task_wait
    }

    /// Whether the task of a caller who gives up is cancelled.
    #[must_use]
    pub fn cancels_remote_task(&self) -> bool {
        self.cancel_remote_task_on_local_cancellation
    }
}

fn above_zero(
    option: &'static str,
    seconds: Option<f64>,
) -> Result<Option<Duration>, TaskOptionsError> {
    let Some(seconds) = seconds else { return Ok(None) };
    let duration = Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero());
    duration.map(Some).ok_or(TaskOptionsError { option })
}

/// How long to wait before the next poll, by what the server says in milliseconds (`MCP-27`).
#[must_use]
pub fn poll_delay(server_interval_ms: Option<i64>) -> Duration {
    let named = server_interval_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    named.unwrap_or(DELAY_MIN).clamp(DELAY_MIN, DELAY_MAX)
}
