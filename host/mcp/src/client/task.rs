//! Life cycle of a task, from the call that creates it to its result (`MCP-21` to `MCP-35`).

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::CallContext;
use serde_json::{Map, Value, json};

use super::answer::CallAnswer;
use super::call_error::CallError;
use super::limits::{CANCEL_WAIT, MESSAGE_BYTES_MAX, cut};
use super::plain::{Resend, ResendOutcome, twice};
use super::question::{self, Questions};
use super::remote::{Remote, RequestError};
use super::task_options::{TaskOptions, poll_delay};
use super::task_state::{CreatedTask, Status, TaskDialect, TaskState};

/// Error codes of servers without task support, or without it for this tool (`MCP-24`).
const NOT_AS_A_TASK: [i64; 2] = [-32601, -32602];
/// Error code for a poll that should be repeated after [`POLL_AGAIN_DELAY`].
const POLL_AGAIN: i64 = 408;
const POLL_AGAIN_DELAY: Duration = Duration::from_millis(500);
/// Error message for a task that requires more than its arguments.
const NO_INPUT: &str = "MCP task requires additional input and cannot continue.";

/// Result of creating a task.
pub(crate) enum Creation {
    /// The server created a task.
    Task(CreatedTask),
    /// The server did the work at once.
    Answer(CallAnswer),
    /// The tool must be called without a task.
    Plain,
}

/// Creates a task. This request is not repeated if the server may have started the task.
pub(crate) async fn create(
    remote: &dyn Remote,
    tool: &str,
    mut parameters: Map<String, Value>,
    options: &TaskOptions,
    call: &CallContext,
) -> Result<Creation, CallError> {
    let ttl_ms =
        options.default_ttl().map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    parameters
        .insert("task".to_owned(), ttl_ms.map_or_else(|| json!({}), |ttl| json!({"ttl": ttl})));
    let mut created = remote.request("tools/call", parameters.clone(), call).await;
    if let Err(RequestError::Lost { connection, is_sent: false }) = created {
        let reconnected = remote.reconnect(connection).await;
        reconnected.map_err(|failed| CallError::Reconnect { detail: failed.0 })?;
        created = remote.request("tools/call", parameters, call).await;
    }
    let result = match created {
        Ok(result) => result,
        Err(error) if error.lost().is_some() => {
            return Err(CallError::TaskNotKnown { tool: tool.to_owned() });
        }
        Err(RequestError::Protocol { code, .. }) if NOT_AS_A_TASK.contains(&code) => {
            return Ok(Creation::Plain);
        }
        Err(error) => return Err(CallError::of_request(tool, error)),
    };
    if let Some(created) = CreatedTask::read(&result) {
        return Ok(Creation::Task(created));
    }
    let answer = CallAnswer::read(result);
    answer.map(Creation::Answer).ok_or_else(|| CallError::Unparseable { tool: tool.to_owned() })
}

/// Wait for the result of a task.
pub(crate) struct AwaitedTask<'a> {
    pub(crate) remote: &'a Arc<dyn Remote>,
    pub(crate) tool: &'a str,
    pub(crate) task: CreatedTask,
    pub(crate) options: &'a TaskOptions,
    pub(crate) questions: &'a Questions,
    pub(crate) call: &'a CallContext,
    /// Maximum time to wait for the answer to one request.
    pub(crate) answer_wait: Option<Duration>,
}

/// Error that ends the wait, and whether to cancel the remote task.
struct WaitError {
    error: CallError,
    cancels: bool,
}

impl WaitError {
    fn with_cancel(error: CallError) -> Self {
        Self { error, cancels: true }
    }
}

impl From<CallError> for WaitError {
    fn from(error: CallError) -> Self {
        Self { error, cancels: false }
    }
}

impl AwaitedTask<'_> {
    /// Waits for the result, at most for the total time that the options allow.
    pub(crate) async fn run(self) -> Result<CallAnswer, CallError> {
        let mut on_drop = CancelOnDrop {
            remote: Arc::clone(self.remote),
            task: self.options.cancels_remote_task().then(|| self.task.id.clone()),
        };
        let end = tokio::select! {
            biased;
            () = self.call.cancelled() => {
                Err(WaitError { error: CallError::Cancelled, cancels: self.options.cancels_remote_task() })
            }
            end = self.within_time() => end,
        };
        // The task has ended or is canceled below, where the response can be awaited.
        on_drop.task = None;
        match end {
            Ok(answer) => Ok(answer),
            Err(end) => {
                if end.cancels {
                    cancel(self.remote.as_ref(), &self.task.id).await;
                }
                Err(end.error)
            }
        }
    }

    async fn within_time(&self) -> Result<CallAnswer, WaitError> {
        let Some(wait) = self.options.max_task_wait() else { return self.follow().await };
        tokio::time::timeout(wait, self.follow()).await.unwrap_or_else(|_| {
            let seconds = wait.as_secs_f64();
            Err(WaitError::with_cancel(CallError::TaskWait { task: self.task.id.clone(), seconds }))
        })
    }

    async fn follow(&self) -> Result<CallAnswer, WaitError> {
        let mut round = 0_usize;
        loop {
            let state = self.poll().await?;
            match (state.status, self.task.draft) {
                (Status::Working, _) => self.remote.pause(poll_delay(state.interval_ms)).await,
                (Status::Completed, TaskDialect::Asked) => return self.fetch().await,
                (Status::Completed, TaskDialect::Offered) => {
                    let result = state.payload.get("result").cloned().unwrap_or_default();
                    return self.answer(result).map_err(WaitError::from);
                }
                (Status::InputRequired, TaskDialect::Offered) => {
                    self.supply(&state, round).await?;
                    round = round.saturating_add(1);
                    self.remote.pause(poll_delay(state.interval_ms)).await;
                }
                _ => return Err(self.ended(state).into()),
            }
        }
    }

    async fn poll(&self) -> Result<TaskState, WaitError> {
        loop {
            match self.ask("tasks/get", self.parameters()).await {
                Ok(result) => {
                    return TaskState::read(&self.task.id, result).ok_or_else(|| {
                        WaitError::with_cancel(CallError::MalformedPoll {
                            task: self.task.id.clone(),
                        })
                    });
                }
                Err(ResendOutcome::Failed(RequestError::Protocol { code: POLL_AGAIN, .. })) => {
                    self.remote.pause(POLL_AGAIN_DELAY).await;
                }
                Err(end) => return Err(WaitError::with_cancel(self.failed(end).error)),
            }
        }
    }

    async fn fetch(&self) -> Result<CallAnswer, WaitError> {
        match self.ask("tasks/result", self.parameters()).await {
            Ok(result) => self.answer(result).map_err(WaitError::from),
            Err(end) => Err(self.failed(end)),
        }
    }

    /// Answers the questions of a task of the extension.
    async fn supply(&self, state: &TaskState, round: usize) -> Result<(), WaitError> {
        let asked = state.payload.get("inputRequests").and_then(Value::as_object);
        let responses =
            question::answers(self.questions, asked, round, self.call).await.map_err(|_| {
                let message = NO_INPUT.to_owned();
                let (tool, status) = (self.tool.to_owned(), state.status.word());
                WaitError::with_cancel(CallError::TaskEnded { tool, status, message })
            })?;
        let mut parameters = self.parameters();
        parameters.insert("inputResponses".to_owned(), Value::Object(responses));
        match self.ask("tasks/update", parameters).await {
            Ok(_) => Ok(()),
            Err(end) => Err(WaitError::with_cancel(self.failed(end).error)),
        }
    }

    async fn ask(
        &self,
        method: &'static str,
        parameters: Map<String, Value>,
    ) -> Result<Value, ResendOutcome> {
        let asking = twice(self.remote.as_ref(), method, &parameters, self.call, Resend::Always);
        let Some(wait) = self.answer_wait else { return asking.await };
        let answered = tokio::time::timeout(wait, asking).await;
        answered.unwrap_or(Err(ResendOutcome::NoAnswer(wait)))
    }

    fn parameters(&self) -> Map<String, Value> {
        Map::from_iter([("taskId".to_owned(), Value::from(self.task.id.as_str()))])
    }

    /// Converts the error of a request. After a lost connection the task is canceled if it can be
    /// reached; after a refused fetch it is not (`MCP-31`).
    fn failed(&self, end: ResendOutcome) -> WaitError {
        match end {
            ResendOutcome::Lost => {
                WaitError::with_cancel(CallError::TaskConnectionLost { task: self.task.id.clone() })
            }
            ResendOutcome::Reconnect(detail) => {
                WaitError::with_cancel(CallError::Reconnect { detail })
            }
            ResendOutcome::Failed(error) => CallError::of_request(self.tool, error).into(),
            ResendOutcome::NoAnswer(wait) => {
                WaitError::with_cancel(CallError::NoAnswer { seconds: wait.as_secs() })
            }
        }
    }

    fn answer(&self, result: Value) -> Result<CallAnswer, CallError> {
        let malformed = || CallError::MalformedPayload { task: self.task.id.clone() };
        CallAnswer::read(result).ok_or_else(malformed)
    }

    /// Returns the error for a task that ended without a result (`MCP-32`).
    fn ended(&self, state: TaskState) -> CallError {
        let status = state.status.word();
        // The extension reports the error of a failed task next to its status.
        let error = state
            .payload
            .get("error")
            .and_then(|error| error.get("message"))
            .and_then(Value::as_str);
        let message =
            state.message.as_deref().or(error).map(|text| cut(text, MESSAGE_BYTES_MAX).to_owned());
        let message = message.unwrap_or_else(|| match state.status {
            Status::InputRequired => NO_INPUT.to_owned(),
            _ => format!("MCP task ended with status '{status}'."),
        });
        CallError::TaskEnded { tool: self.tool.to_owned(), status, message }
    }
}

/// Cancels the task on the server. Errors are only logged (`MCP-35`).
async fn cancel(remote: &dyn Remote, task: &str) {
    let parameters = Map::from_iter([("taskId".to_owned(), Value::from(task))]);
    // The caller may be gone, so the request belongs to no call.
    let no_caller = CallContext::default();
    match tokio::time::timeout(CANCEL_WAIT, remote.request("tasks/cancel", parameters, &no_caller))
        .await
    {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a remote task could not be cancelled"),
        Err(_) => tracing::debug!("a remote task was not cancelled in time"),
    }
}

/// Cancels the task when the call itself is dropped.
struct CancelOnDrop {
    remote: Arc<dyn Remote>,
    task: Option<String>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let (Some(task), Ok(runtime)) = (self.task.take(), tokio::runtime::Handle::try_current())
        {
            let remote = Arc::clone(&self.remote);
            runtime.spawn(async move { cancel(remote.as_ref(), &task).await });
        }
    }
}
