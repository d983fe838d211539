//! One call of a remote tool, from its arguments to the items of its result.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::CallContext;
use serde_json::{Map, Value};

use super::answer::CallAnswer;
use super::call_error::CallError;
use super::item::{Item, SelectionMode};
use super::limits::RESULT_BYTES_MAX;
use super::plain::Resend;
use super::question::Questions;
use super::remote::Remote;
use super::rounds;
use super::task::{self, AwaitedTask, Creation};
use super::task_options::TaskOptions;
use super::task_state::CreatedTask;

/// Task support that a tool declares in its listing (`MCP-21`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// The tool must be called as a task.
    Required,
    /// The tool is called plainly, even if it could be called as a task.
    #[default]
    Other,
}

impl TaskSupport {
    /// Parses `execution.taskSupport`.
    #[must_use]
    pub fn read(support: Option<&Value>) -> Self {
        if support.is_some_and(|support| support == "required") {
            Self::Required
        } else {
            Self::Other
        }
    }
}

/// Makes the calls of one connection.
#[derive(Clone)]
pub struct Calls {
    /// Connection to the server.
    pub remote: Arc<dyn Remote>,
    /// Options for creating tasks and waiting for them.
    pub tasks: TaskOptions,
    /// Selection of the part of a result that is used.
    pub selection: SelectionMode,
    /// Handlers for the server's questions.
    pub questions: Arc<Questions>,
    /// True if the connection is used for tools (`MCP-20`).
    pub loads_tools: bool,
    /// Calls that are sent again after their connection was lost (`MCP-19`).
    pub resend: Resend,
    /// Maximum time that a server may work on one request of a call. Tasks have a limit of their
    /// own for all their requests.
    pub wait: Option<Duration>,
}

impl Calls {
    /// Calls `tool` with the parameters of `tools/call`: its name, its arguments, and optionally
    /// `_meta`.
    ///
    /// # Errors
    /// [`CallError`]; [`CallError::Cancelled`] if the caller cancels.
    pub async fn call(
        &self,
        tool: &str,
        support: TaskSupport,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Vec<Item>, CallError> {
        if !self.loads_tools {
            return Err(CallError::NotLoaded);
        }
        let answer = match support {
            TaskSupport::Required => self.as_task(tool, parameters, call).await,
            TaskSupport::Other => self.plain(tool, parameters, call).await,
        };
        answer?.into_items(self.selection)
    }

    /// Gets a prompt that is offered as a tool, and returns the contents of its messages.
    ///
    /// # Errors
    /// As for [`Calls::call`].
    pub async fn prompt(
        &self,
        prompt: &str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Vec<Item>, CallError> {
        let result = self.in_rounds(prompt, "prompts/get", parameters, call).await?;
        let messages =
            result.get("messages").and_then(Value::as_array).ok_or_else(|| CallError::Other {
                tool: prompt.to_owned(),
                detail: "the answer to prompts/get has no messages".to_owned(),
            })?;
        let content = messages
            .iter()
            .filter_map(|message| message.get("content"))
            .filter(|block| block.is_object());
        let content = content.cloned().collect();
        CallAnswer { content, ..CallAnswer::default() }.into_items(SelectionMode::ContentOnly)
    }

    /// Sends a request that is passed through, and returns its result as the server wrote it.
    ///
    /// # Errors
    /// As for [`Calls::call`].
    pub(crate) async fn forward_question(
        &self,
        what: &str,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, CallError> {
        let result = self.in_rounds(what, method, parameters, call).await?;
        let bytes = u64::try_from(result.to_string().len()).unwrap_or(u64::MAX);
        if bytes > RESULT_BYTES_MAX {
            return Err(CallError::TooLarge { bytes_max: RESULT_BYTES_MAX });
        }
        Ok(result)
    }

    async fn as_task(
        &self,
        tool: &str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<CallAnswer, CallError> {
        let creation =
            task::create(self.remote.as_ref(), tool, parameters.clone(), &self.tasks, call);
        match unless_cancelled(call, self.in_time(creation)).await? {
            Creation::Task(created) => self.wait(tool, created, call).await,
            Creation::Answer(answer) => Ok(answer),
            Creation::Plain => self.plain(tool, parameters, call).await,
        }
    }

    async fn plain(
        &self,
        tool: &str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<CallAnswer, CallError> {
        let result = self.in_rounds(tool, "tools/call", parameters, call).await?;
        // A server with the task extension decides itself to create a task.
        if let Some(created) = CreatedTask::read(&result) {
            return self.wait(tool, created, call).await;
        }
        CallAnswer::read(result).ok_or_else(|| CallError::Other {
            tool: tool.to_owned(),
            detail: "the answer to tools/call is not a CallToolResult".to_owned(),
        })
    }

    async fn in_rounds(
        &self,
        tool: &str,
        method: &'static str,
        parameters: Map<String, Value>,
        call: &CallContext,
    ) -> Result<Value, CallError> {
        let (remote, questions, resend) = (self.remote.as_ref(), &self.questions, self.resend);
        let asking = rounds::ask(remote, questions, tool, method, parameters, call, resend);
        unless_cancelled(call, self.in_time(asking)).await
    }

    /// Waits for the answer to a request, as long as a server may work on it.
    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let Some(wait) = self.wait else { return work.await };
        let end = tokio::time::timeout(wait, work).await;
        end.unwrap_or(Err(CallError::NoAnswer { seconds: wait.as_secs() }))
    }

    async fn wait(
        &self,
        tool: &str,
        task: CreatedTask,
        call: &CallContext,
    ) -> Result<CallAnswer, CallError> {
        let (remote, options, questions) = (&self.remote, &self.tasks, self.questions.as_ref());
        let answer_wait = self.wait;
        AwaitedTask { remote, tool, task, options, questions, call, answer_wait }.run().await
    }
}

/// Returns the result of `work`, or drops it when the caller cancels.
async fn unless_cancelled<T>(
    call: &CallContext,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::select! {
        biased;
        () = call.cancelled() => Err(CallError::Cancelled),
        result = work => result,
    }
}
