//! Agents as tools of other agents (`LOOP-56` to `LOOP-59`).
//!
//! A call of the tool runs the agent in a session of its own and returns its last answer. The agent
//! gets the caller's cancellation, deadline, budgets, progress and questions; the caller gets its
//! usage. Nothing else passes between the two, so neither sees the other's conversation.
//!
//! An agent as a tool is a third party for information-flow labels: its result counts as untrusted,
//! and the policy of the outer agent does not see the calls of the inner one.

mod approval;
mod caller;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_tool::declaration::{Declaration, DeclarationError};
use cofferdam_tool::{
    Annotations, CallContext, CallRecord, Completion, Outcome, Output, ToolCall, ToolDefinition,
    ToolFailure, ToolSource,
};
use futures_util::StreamExt as _;
use serde_json::json;

use self::approval::ApprovalQuestions;
use self::caller::{CallAsker, CallReports};
use crate::{
    Agent, AgentRequest, AgentRun, IntoMessages as _, Message, Response, RunContext, RunError,
    Session,
};

/// Name of the argument that holds the task, unless the options name another one.
const ARGUMENT: &str = "task";
/// Longest name that is derived from the name of an agent, in characters. Some providers accept no
/// longer names.
const NAME_CHARS_MAX: usize = 64;
/// Time for an agent to end by itself when the call is canceled: longer than it allows its tools.
const GRACE: Duration = Duration::from_secs(3);
/// Maximum number of times that one call asks the user for approvals.
const APPROVAL_ROUNDS_MAX: u32 = 32;

/// Source of one tool, which runs an agent.
///
/// ```
/// use std::sync::Arc;
///
/// use cofferdam_agent::{Agent, AgentToolOptions, ScriptedClient};
/// use cofferdam_tool::Toolset;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedClient::read("script", br#"{"text":"42 is even."}"#.as_slice())?;
/// let mathematician = Agent::builder(model).name("mathematician").build()?;
///
/// let script = r#"
/// {"calls":[{"tool":"mathematician","arguments":{"task":"Is 42 even?"}}]}
/// {"text":"It is even."}
/// "#;
/// let mut tools = Toolset::new();
/// tools.add(Arc::new(mathematician.into_tool(AgentToolOptions::default())?))?;
/// let agent = Agent::builder(ScriptedClient::read("script", script.as_bytes())?).tools(tools).build()?;
/// assert_eq!(agent.run("42?").await?.text(), "It is even.");
/// # Ok(())
/// # }
/// ```
pub struct AgentTool {
    agent: Arc<dyn AgentRun>,
    argument: String,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

/// Options of an agent's tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentToolOptions {
    /// Name of the tool. Defaults to the name of the agent, with `_` for characters
    /// that a tool's name cannot have (`LOOP-56`).
    pub name: Option<String>,
    /// Description of the tool, for the model.
    pub description: Option<String>,
    /// Name of the argument. Defaults to `task`.
    pub argument: Option<String>,
    /// Description of the argument, for the model.
    pub argument_description: Option<String>,
}

/// Error returned if an agent cannot become a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAgentTool {
    /// The agent's name has no character that a tool's name can have.
    #[error("no tool can be named after the agent `{agent}`; set `AgentToolOptions::name`")]
    NoName {
        /// Name of the agent.
        agent: String,
    },
    /// The name of the tool or the name of the argument is invalid.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
}

/// Reason why a call of the tool has no answer.
enum AgentFailure {
    Cancelled,
    Failed { failure: ToolFailure, detail: Option<String> },
}

impl Agent {
    /// Makes the agent a tool of other agents.
    ///
    /// # Errors
    /// [`InvalidAgentTool`] if the name of the tool or of its argument is invalid.
    pub fn into_tool(self, options: AgentToolOptions) -> Result<AgentTool, InvalidAgentTool> {
        AgentTool::new(self, options)
    }
}

impl AgentTool {
    /// Makes an agent a tool.
    ///
    /// # Errors
    /// [`InvalidAgentTool`] if the name of the tool or of its argument is invalid.
    pub fn new(
        agent: impl Into<Arc<dyn AgentRun>>,
        options: AgentToolOptions,
    ) -> Result<Self, InvalidAgentTool> {
        let agent = agent.into();
        let name = match options.name {
            Some(name) => name,
            None => tool_name(agent.name())
                .ok_or_else(|| InvalidAgentTool::NoName { agent: agent.name().to_owned() })?,
        };
        let argument = options.argument.unwrap_or_else(|| ARGUMENT.to_owned());
        let description = options.description.unwrap_or_else(|| {
            format!("Gives the agent `{}` a task and returns its answer.", agent.name())
        });
        let about = options.argument_description.unwrap_or_else(|| {
            format!("Task for {name}. It sees nothing else of the conversation.")
        });
        let schema = json!({
            "type": "object",
            "properties": {argument.as_str(): {"type": "string", "description": about}},
            "required": [argument],
            "additionalProperties": false,
        });
        let mut declaration = Declaration::new(name, description, schema.to_string());
        declaration.annotations =
            Annotations { long_running: Some(true), ..Annotations::default() };
        let definition = Arc::new(declaration.compile()?);
        Ok(Self { agent, argument, definitions: Arc::from([definition]) })
    }

    /// Runs the agent on a task until it answers, asking the caller for approvals.
    async fn answer(
        &self,
        task: &str,
        call: &CallContext,
        questions: &mut ApprovalQuestions,
    ) -> Result<String, AgentFailure> {
        let mut context = RunContext::inside(call).map_err(|error| self.failed(error))?;
        let reports = CallReports::of(call);
        context.progress = call.progress.is_some().then(|| Arc::clone(&reports) as _);
        context.log = call.log.is_some().then(|| Arc::clone(&reports) as _);
        context.asker = call.asker.clone().map(|asker| Arc::new(CallAsker::new(asker)) as _);
        let session = Session::new();
        let mut messages = Message::user(task).into_messages();
        for _ in 0..APPROVAL_ROUNDS_MAX {
            let request = AgentRequest::new(messages).session(&session).context(context.clone());
            let response = self.run(request, call, &reports).await?;
            if let Some(call) = response.caller_requests().next() {
                let needs =
                    format!("it called `{}`, which only its own program can run", call.name);
                return Err(self.failed(RunError::NeedsInput(needs)));
            }
            let requests: Vec<_> = response.approval_requests().cloned().collect();
            if requests.is_empty() {
                let text = response.text();
                return match text.is_empty() {
                    true => Err(self.without_answer("ended without an answer", None)),
                    false => Ok(text),
                };
            }
            let answers = tokio::select! {
                biased;
                () = call.cancelled() => return Err(AgentFailure::Cancelled),
                answers = questions.ask(self.agent.name(), call.asker.as_deref(), &requests) => answers,
            };
            let Some(answers) = answers else {
                let names =
                    requests.iter().map(|request| format!("`{}`", request.function_call.name));
                let names: Vec<_> = names.collect();
                let needs = format!("the user has to approve its call of {}", names.join(", "));
                return Err(self.failed(RunError::NeedsInput(needs)));
            };
            messages = answers.into_messages();
        }
        let needs = format!("it asked for approvals more than {APPROVAL_ROUNDS_MAX} times");
        Err(self.failed(RunError::NeedsInput(needs)))
    }

    /// Makes one run. It is canceled with the call, and dropped if it does not end by itself.
    async fn run(
        &self,
        request: AgentRequest,
        call: &CallContext,
        reports: &CallReports,
    ) -> Result<Response, AgentFailure> {
        let cancellation = request.context.cancellation.clone();
        let read = async {
            if call.progress.is_none() {
                return self.agent.run(request).await;
            }
            let mut stream = self.agent.stream(request);
            while let Some(update) = stream.next().await {
                reports.update(&update?);
            }
            stream.finish().await
        };
        let cancelled = async {
            call.cancelled().await;
            cancellation.cancel();
            tokio::time::sleep(GRACE).await;
        };
        let ended = tokio::select! {
            biased;
            ended = read => ended,
            () = cancelled => Err(RunError::Cancelled),
        };
        ended.map_err(|error| self.failed(error))
    }

    /// Describes the failure of a run for the model, without details of the host (`LOOP-59`).
    fn failed(&self, error: RunError) -> AgentFailure {
        let detail = Some(error.to_string());
        match error {
            RunError::Cancelled => AgentFailure::Cancelled,
            RunError::Chat(error) => {
                let failure = self.without_answer("got no answer from its model", detail);
                failure.transient(error.kind.is_transient())
            }
            RunError::BudgetExceeded(_) => {
                self.without_answer("has used up its token budget", detail)
            }
            RunError::Calls(_) => {
                self.without_answer("gave up because its calls kept failing", detail)
            }
            RunError::Answer(_) => {
                self.without_answer("gave no answer in the required form", detail)
            }
            RunError::TooDeep { depth_max } => {
                let reason = format!(
                    "was not started: at most {depth_max} agents can run inside each other"
                );
                self.without_answer(&reason, detail).transient(false)
            }
            RunError::NeedsInput(needs) => {
                self.without_answer(&format!("cannot continue: {needs}"), detail)
            }
            RunError::GuardMissing { .. } | RunError::FailClosed(_) | RunError::Other(_) => {
                self.without_answer("failed", detail)
            }
        }
    }

    fn without_answer(&self, reason: &str, detail: Option<String>) -> AgentFailure {
        let failure = ToolFailure::new(format!("The agent `{}` {reason}.", self.agent.name()));
        AgentFailure::Failed { failure, detail }
    }
}

impl AgentFailure {
    fn transient(mut self, is_transient: bool) -> Self {
        if let Self::Failed { failure, .. } = &mut self {
            failure.transient = Some(is_transient);
        }
        self
    }
}

/// Returns the name of the tool of an agent: letters, digits, `_` and `-` stay, every sequence of
/// other characters becomes one `_`.
fn tool_name(agent: &str) -> Option<String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let parts = agent.split(|c| !is_allowed(c)).filter(|part| !part.is_empty());
    let name: String = parts.collect::<Vec<_>>().join("_").chars().take(NAME_CHARS_MAX).collect();
    name.contains(|c: char| c.is_ascii_alphanumeric()).then_some(name)
}

#[async_trait]
impl ToolSource for AgentTool {
    fn name(&self) -> &str {
        self.agent.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let started = Instant::now();
        let task = call.arguments.value().get(&self.argument);
        let task = task.and_then(serde_json::Value::as_str).unwrap_or_default();
        let mut questions = ApprovalQuestions::default();
        let answered = self.answer(task, context, &mut questions).await;
        let mut record = CallRecord::begun(context);
        let (outcome, detail) = match answered {
            Ok(text) => (Outcome::Ok(Output::Value(text.into())), None),
            Err(AgentFailure::Cancelled) => (Outcome::Cancelled, None),
            Err(AgentFailure::Failed { failure, detail }) => (Outcome::Failure(failure), detail),
        };
        record.set_outcome(&outcome);
        record.detail = detail;
        record.tool = Some(call.tool.name.clone());
        record.questions = questions.count();
        record.phases.run = started.elapsed();
        Completion::new(outcome, record)
    }
}

impl std::fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentTool").field("agent", &self.agent.name()).finish_non_exhaustive()
    }
}
