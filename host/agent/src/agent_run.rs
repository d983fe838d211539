//! Agents behind an interface: those of this crate, workflows, and agents that run elsewhere.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ask::{Asker, LogSink};
use cofferdam_tool::invoke::{FileEffects, HostValues, ProgressSink};
use cofferdam_tool::trace::TraceContext;
use cofferdam_tool::{CallContext, DuplicateTool, ToolSource};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::live::LiveTools;
use crate::{
    Agent, IntoMessages, Message, Response, RunError, RunStream, Session, TokenBudget, TokenUsage,
};

/// Maximum number of agents that run inside each other, the outermost included (`LOOP-57`). Deeper
/// nesting is nearly always two agents that call each other.
pub const AGENT_DEPTH_MAX: u32 = 4;

/// An agent that other agents and workflows can run: an [`Agent`], or an agent that runs elsewhere.
///
/// * **Calls.** Any number at a time. Only the session carries state from one run to the next.
/// * **Cancellation.** The run ends soon after [`RunContext::cancellation`] is canceled, and when
///   its stream is dropped.
/// * **Usage.** The run adds the tokens that it has used to [`RunContext::usage`] and counts them
///   to [`RunContext::budgets`], even if it fails.
/// * **Approvals.** A response with [approval requests](Response::approval_requests) is not final.
///   The next request with the same session contains the answers.
#[async_trait]
pub trait AgentRun: Send + Sync {
    /// Returns the name of the agent.
    fn name(&self) -> &str;

    /// Runs the agent on new messages, as a stream. The run starts when the stream is read.
    fn stream(&self, request: AgentRequest) -> RunStream;

    /// Runs the agent on new messages.
    ///
    /// # Errors
    /// The error that ended the run.
    async fn run(&self, request: AgentRequest) -> Result<Response, RunError> {
        self.stream(request).finish().await
    }

    /// Makes the session `to` as restricted as `from` for the guard of the agent, because it gets
    /// content of it without being its continuation.
    fn carry_over(&self, from: &Session, to: &Session) {
        let _ = (from, to);
    }

    /// Returns the agent with the tools of another source added, or `None` if it takes no tools of
    /// its caller. Such an agent can take part in every orchestration except a handoff.
    ///
    /// # Errors
    /// [`DuplicateTool`] if the agent has a tool of the same name.
    fn with_tools(
        &self,
        source: Arc<dyn ToolSource>,
    ) -> Option<Result<Arc<dyn AgentRun>, DuplicateTool>> {
        let _ = source;
        None
    }
}

/// Input of one run of an [`AgentRun`].
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct AgentRequest {
    /// New messages, or answers to approval requests.
    pub messages: Vec<Arc<Message>>,
    /// Session that the run is a turn of.
    pub session: Option<Session>,
    /// Services and limits of the caller.
    pub context: RunContext,
}

/// Services and limits that a run gets from its caller.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct RunContext {
    /// Token that cancels the run.
    pub cancellation: CancellationToken,
    /// Budgets that the run counts to, in addition to its own.
    pub budgets: Vec<TokenBudget>,
    /// Total of the tokens that runs with this context have used.
    pub usage: UsageMeter,
    /// Handler that answers questions of running tools.
    pub asker: Option<Arc<dyn Asker>>,
    /// Receiver of log lines from tools.
    pub log: Option<Arc<dyn LogSink>>,
    /// Receiver of progress from tools.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// Values of the host, for middleware and for tools of remote servers.
    pub host: Option<Arc<HostValues>>,
    /// Treatment of changes that tools make to files.
    pub file_effects: FileEffects,
    /// Span of the caller. The run has its own below it, or starts a trace.
    pub trace: Option<TraceContext>,
    /// Session of the outermost tool call that the run is inside of. For a served agent, it is the
    /// name of the authenticated caller.
    pub caller: Option<Arc<str>>,
    /// Number of agents that the run is nested in.
    pub(crate) depth: u32,
}

/// Sum of token usage. Clones share the sum.
#[derive(Debug, Clone, Default)]
pub struct UsageMeter {
    used: Arc<Mutex<Option<TokenUsage>>>,
}

impl AgentRequest {
    /// Creates a request without a session and without services of a caller.
    pub fn new(messages: impl IntoMessages) -> Self {
        Self { messages: messages.into_messages(), ..Self::default() }
    }

    /// Sets the session.
    #[must_use]
    pub fn session(mut self, session: &Session) -> Self {
        self.session = Some(session.clone());
        self
    }

    /// Sets the services and limits of the caller.
    #[must_use]
    pub fn context(mut self, context: RunContext) -> Self {
        self.context = context;
        self
    }
}

impl RunContext {
    /// Creates the context of an agent that runs inside of a tool call: one level deeper than the
    /// agent that made the call, with its budgets, its usage, and the services of the call. The
    /// deadline of the call is the duty of the tool.
    ///
    /// # Errors
    /// [`RunError::TooDeep`] if too many agents would be nested (`LOOP-57`).
    pub fn inside(call: &CallContext) -> Result<Self, RunError> {
        let outer = call.run.as_deref().and_then(LiveTools::of_run);
        let depth = outer.map_or(0, |outer| outer.nested().depth);
        if depth >= AGENT_DEPTH_MAX {
            return Err(RunError::TooDeep { depth_max: AGENT_DEPTH_MAX });
        }
        let (budgets, usage) = outer.map_or_else(Default::default, |outer| {
            (outer.nested().budgets.clone(), outer.nested().usage.clone())
        });
        let caller = outer.and_then(|outer| outer.nested().caller.clone());
        Ok(Self {
            cancellation: call.cancellation.child_token(),
            budgets,
            usage,
            asker: call.asker.clone(),
            log: call.log.clone(),
            progress: call.progress.clone(),
            host: call.host.clone(),
            file_effects: call.file_effects,
            trace: call.trace,
            caller: caller.or_else(|| call.session.as_deref().map(Arc::from)),
            depth,
        })
    }
}

impl UsageMeter {
    /// Adds usage.
    pub fn add(&self, used: TokenUsage) {
        *self.used.lock().get_or_insert_default() += used;
    }

    /// Returns the usage since the last call, or `None` if there was none.
    #[must_use]
    pub fn take(&self) -> Option<TokenUsage> {
        self.used.lock().take()
    }
}

#[async_trait]
impl AgentRun for Agent {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn stream(&self, request: AgentRequest) -> RunStream {
        self.requested(request).stream()
    }

    async fn run(&self, request: AgentRequest) -> Result<Response, RunError> {
        self.requested(request).await
    }

    fn carry_over(&self, from: &Session, to: &Session) {
        self.carry_over_guard(from, to);
    }

    fn with_tools(
        &self,
        source: Arc<dyn ToolSource>,
    ) -> Option<Result<Arc<dyn AgentRun>, DuplicateTool>> {
        Some(self.with_source(source).map(Into::into))
    }
}

impl From<Agent> for Arc<dyn AgentRun> {
    fn from(agent: Agent) -> Self {
        Arc::new(agent)
    }
}

impl std::fmt::Debug for RunContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunContext").field("depth", &self.depth).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for AgentRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentRequest")
            .field("messages", &self.messages.len())
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}
