//! The life of a task, from the call that creates it to its result (`MCP-21` to `MCP-35`).

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::CallContext;
use serde_json::{Map, Value, json};

use super::answer::CallAnswer;
use super::call_error::CallError;
use super::limits::{CANCEL_WAIT, MESSAGE_BYTES_MAX, cut};
use super::plain::{Twice, twice};
use super::question::{self, Questions};
use super::remote::{Remote, RequestError};
use super::task_options::{TaskOptions, poll_delay};
use super::task_state::{Created, Draft, State, Status};

/// Codes of servers that have no tasks, or not for this tool (`MCP-24`).
const NOT_AS_A_TASK: [i64; 2] = [-32601, -32602];
/// The code of a poll that should be made again, and when.
const POLL_AGAIN: i64 = 408;
const POLL_AGAIN_DELAY: Duration = Duration::from_millis(500);
/// What is said of a task that wants more than its arguments.
const NO_INPUT: &str = "MCP task requires additional input and cannot continue.";

/// What came of asking for a task.
pub(crate) enum Creation {
    /// There is one.
    Task(Created),
    /// The server did the work at once.
    Answer(CallAnswer),
    /// The plain call is to be made.
    Plain,
}

/// Asks for a task. This is never sent twice: the server may have started it.
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
    let result = match remote.request("tools/call", parameters, call).await {
        Ok(result) => result,
        Err(error) if error.lost().is_some() => {
            return Err(CallError::TaskNotKnown { tool: tool.to_owned() });
        }
        Err(RequestError::Protocol { code, .. }) if NOT_AS_A_TASK.contains(&code) => {
            return Ok(Creation::Plain);
        }
        Err(error) => return Err(CallError::of_request(tool, error)),
    };
    if let Some(created) = Created::read(&result) {
        return Ok(Creation::Task(created));
    }
    let answer = CallAnswer::read(result);
    answer.map(Creation::Answer).ok_or_else(|| CallError::Unparseable { tool: tool.to_owned() })
}

/// A task that is waited for.
pub(crate) struct Waiting<'a> {
    pub(crate) remote: &'a Arc<dyn Remote>,
    pub(crate) tool: &'a str,
    pub(crate) task: Created,
    pub(crate) options: &'a TaskOptions,
    pub(crate) questions: &'a Questions,
    pub(crate) call: &'a CallContext,
}

/// How waiting ended without a result, and whether the task is then cancelled.
struct End {
    error: CallError,
    cancels: bool,
}

impl End {
    fn with_cancel(error: CallError) -> Self {
        Self { error, cancels: true }
    }
}

impl From<CallError> for End {
    fn from(error: CallError) -> Self {
        Self { error, cancels: false }
    }
}

impl Waiting<'_> {
    /// Waits for the result, in all for as long as the options allow.
    pub(crate) async fn run(self) -> Result<CallAnswer, CallError> {
        let mut on_drop = CancelOnDrop {
            remote: Arc::clone(self.remote),
            task: self.options.cancels_remote_task().then(|| self.task.id.clone()),
        };
        let end = tokio::select! {
            biased;
            () = self.call.given_up() => {
                Err(End { error: CallError::Cancelled, cancels: self.options.cancels_remote_task() })
            }
            end = self.within_time() => end,
        };
        // The task is either at its end or cancelled here, where the answer can be waited for.
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

    async fn within_time(&self) -> Result<CallAnswer, End> {
        let Some(wait) = self.options.max_task_wait() else { return self.follow().await };
        tokio::time::timeout(wait, self.follow()).await.unwrap_or_else(|_| {
            let seconds = wait.as_secs_f64();
            Err(End::with_cancel(CallError::TaskWait { task: self.task.id.clone(), seconds }))
        })
    }

    async fn follow(&self) -> Result<CallAnswer, End> {
        let mut round = 0_usize;
        loop {
            let state = self.poll().await?;
            match (state.status, self.task.draft) {
                (Status::Working, _) => self.remote.pause(poll_delay(state.interval_ms)).await,
                (Status::Completed, Draft::Asked) => return self.fetch().await,
                (Status::Completed, Draft::Offered) => {
                    let result = state.payload.get("result").cloned().unwrap_or_default();
                    return self.answer(result).map_err(End::from);
                }
                (Status::InputRequired, Draft::Offered) => {
                    self.supply(&state, round).await?;
                    round = round.saturating_add(1);
                    self.remote.pause(poll_delay(state.interval_ms)).await;
                }
                _ => return Err(self.ended(state).into()),
            }
        }
    }

    async fn poll(&self) -> Result<State, End> {
        loop {
            match self.ask("tasks/get", self.parameters()).await {
                Ok(result) => {
                    return State::read(&self.task.id, result).ok_or_else(|| {
                        End::with_cancel(CallError::MalformedPoll { task: self.task.id.clone() })
                    });
                }
                Err(Twice::Failed(RequestError::Protocol { code: POLL_AGAIN, .. })) => {
                    self.remote.pause(POLL_AGAIN_DELAY).await;
                }
                Err(end) => return Err(End::with_cancel(self.failed(end).error)),
            }
        }
    }

    async fn fetch(&self) -> Result<CallAnswer, End> {
        match self.ask("tasks/result", self.parameters()).await {
            Ok(result) => self.answer(result).map_err(End::from),
            Err(end) => Err(self.failed(end)),
        }
    }

    /// Answers what a task of the extension asks.
    async fn supply(&self, state: &State, round: usize) -> Result<(), End> {
        let asked = state.payload.get("inputRequests").and_then(Value::as_object);
        let responses =
            question::answers(self.questions, asked, round, self.call).await.map_err(|_| {
                let message = NO_INPUT.to_owned();
                let (tool, status) = (self.tool.to_owned(), state.status.word());
                End::with_cancel(CallError::TaskEnded { tool, status, message })
            })?;
        let mut parameters = self.parameters();
        parameters.insert("inputResponses".to_owned(), Value::Object(responses));
        match self.ask("tasks/update", parameters).await {
            Ok(_) => Ok(()),
            Err(end) => Err(End::with_cancel(self.failed(end).error)),
        }
    }

    async fn ask(
        &self,
        method: &'static str,
        parameters: Map<String, Value>,
    ) -> Result<Value, Twice> {
        twice(self.remote.as_ref(), method, &parameters, self.call).await
    }

    fn parameters(&self) -> Map<String, Value> {
        Map::from_iter([("taskId".to_owned(), Value::from(self.task.id.as_str()))])
    }

    /// A lost connection leaves a task behind that is cancelled if it can be reached; a refused
    /// fetch does not (`MCP-31`).
    fn failed(&self, end: Twice) -> End {
        match end {
            Twice::Lost => {
                End::with_cancel(CallError::TaskConnectionLost { task: self.task.id.clone() })
            }
            Twice::Reconnect(detail) => End::with_cancel(CallError::Reconnect { detail }),
            Twice::Failed(error) => CallError::of_request(self.tool, error).into(),
        }
    }

    fn answer(&self, result: Value) -> Result<CallAnswer, CallError> {
        let malformed = || CallError::MalformedPayload { task: self.task.id.clone() };
        CallAnswer::read(result).ok_or_else(malformed)
    }

    /// The text for a task that ended without a result (`MCP-32`).
    fn ended(&self, state: State) -> CallError {
        let status = state.status.word();
        // The extension reports the error of a failed task beside its status.
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

/// Tells the server that nobody waits any more, and does not mind whether it hears that (`MCP-35`).
async fn cancel(remote: &dyn Remote, task: &str) {
    let parameters = Map::from_iter([("taskId".to_owned(), Value::from(task))]);
    // The caller may have given up: the request belongs to nobody.
    let nobody = CallContext::default();
    match tokio::time::timeout(CANCEL_WAIT, remote.request("tasks/cancel", parameters, &nobody))
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
