//! Options of long-running tasks (`MCP-22`, `MCP-27`).

use std::time::Duration;

/// Limits of the time between two polls, whatever a server requests.
const DELAY_MIN: Duration = Duration::from_millis(500);
const DELAY_MAX: Duration = Duration::from_millis(5000);

/// Options for creating tasks on a server and waiting for them. They are fixed when the connection
/// is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskOptions {
    default_ttl: Option<Duration>,
    max_task_wait: Option<Duration>,
    cancel_remote_task_on_local_cancellation: bool,
}

/// Error for a duration that is not positive.
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
    /// Creates options from durations in seconds.
    ///
    /// # Errors
    /// The first duration that is not positive or not representable.
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

    /// Returns the time that the server is asked to keep a task.
    #[must_use]
    pub fn default_ttl(&self) -> Option<Duration> {
        self.default_ttl
    }

    /// Returns the maximum time to wait for a task after its creation.
    #[must_use]
    pub fn max_task_wait(&self) -> Option<Duration> {
        self.max_task_wait
    }

    /// Returns the options with a maximum time to wait for a task.
    #[must_use]
    pub fn with_max_task_wait(self, wait: Duration) -> Self {
        Self { max_task_wait: Some(wait), ..self }
    }

    /// Returns true if a task is canceled when its caller cancels.
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

/// Returns the delay before the next poll, based on the server's interval in milliseconds
/// (`MCP-27`).
#[must_use]
pub fn poll_delay(server_interval_ms: Option<i64>) -> Duration {
    let named = server_interval_ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    named.unwrap_or(DELAY_MIN).clamp(DELAY_MIN, DELAY_MAX)
}
