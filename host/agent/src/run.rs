//! Runs of an agent, from new messages to an answer.

mod answer;
mod calls;
mod compact;
mod cycle;
mod inner_calls;
mod model;
mod plan;
mod transcript;
mod turn;

#[cfg(test)]
mod tests;

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ask::{Asker, LogSink};
use cofferdam_tool::invoke::{FileEffects, HostValues, ProgressSink};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentParts;
use crate::choice::{InvalidChoice, ServiceSettings};
use crate::middleware::{AgentContext, AgentResult, Innermost, Layer, Next, Signal};
use crate::{
    Agent, ChatOptions, ChoiceBehavior, LoopSettings, Message, MessageContent, MiddlewareRefused,
    Response, ResponseFormat, Role, RunContext, RunError, RunStream, Session, TokenBudget,
    ToolMode,
};

/// A run that has not started. Await it for the whole response, or read its
/// [`stream`](Run::stream).
#[must_use = "a run does nothing unless it is awaited or its stream is read"]
pub struct Run {
    agent: Agent,
    messages: Vec<Arc<Message>>,
    given: RunInput,
}

/// Options of one run, set by the caller.
#[derive(Clone, Default)]
pub(crate) struct RunInput {
    pub(crate) session: Option<Session>,
    pub(crate) options: ChatOptions,
    pub(crate) response_format: Option<ResponseFormat>,
    pub(crate) settings: Option<LoopSettings>,
    pub(crate) choice: Option<ChoiceBehavior>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) context: RunContext,
}

/// Input that a run can begin with: a string, a message, or several.
pub trait IntoMessages {
    /// Converts the input to messages.
    fn into_messages(self) -> Vec<Arc<Message>>;
}

impl<M: Into<Message>> IntoMessages for M {
    fn into_messages(self) -> Vec<Arc<Message>> {
        vec![Arc::new(self.into())]
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Vec<Arc<Message>> {
        self.into_iter().map(Arc::new).collect()
    }
}

impl IntoMessages for Vec<Arc<Message>> {
    fn into_messages(self) -> Vec<Arc<Message>> {
        self
    }
}

/// Wraps answers to approval requests in a user message.
impl IntoMessages for Vec<MessageContent> {
    fn into_messages(self) -> Vec<Arc<Message>> {
        vec![Arc::new(Message::new(Role::User, self))]
    }
}

impl RunInput {
    /// Returns the budgets that a run of an agent with these parts counts to.
    pub(crate) fn budgets(&self, parts: &AgentParts) -> Vec<TokenBudget> {
        let own = [&self.budget, &parts.budget].into_iter().flatten();
        own.chain(&self.context.budgets).cloned().collect()
    }
}

impl Run {
    pub(crate) fn new(agent: Agent, messages: Vec<Arc<Message>>) -> Self {
        let options = agent.parts.options.clone();
        Self { agent, messages, given: RunInput { options, ..RunInput::default() } }
    }

    /// Sets the session that the run belongs to.
    pub fn session(mut self, session: &Session) -> Self {
        self.given.session = Some(session.clone());
        self
    }

    /// Sets the options of model requests, replacing the agent's.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.given.options = options;
        self
    }

    /// Sets the form of the answer, instead of the one of the options or the agent (`LOOP-65`).
    /// [`Response::value`] then returns the decoded answer.
    pub fn response_format(mut self, format: ResponseFormat) -> Self {
        self.given.response_format = Some(format);
        self
    }

    /// Sets whether the model may, must or must not call functions.
    pub fn tool_choice(mut self, mode: ToolMode) -> Self {
        self.given.options.tool_choice = Some(mode);
        self
    }

    /// Sets the settings of the loop, replacing the agent's.
    pub fn settings(mut self, settings: LoopSettings) -> Self {
        self.given.settings = Some(settings);
        self
    }

    /// Sets which functions are advertised, and whether the model may or must call them. Replaces
    /// the agent's behavior as a whole (`CHOICE-12`).
    pub fn choice(mut self, behavior: ChoiceBehavior) -> Self {
        self.given.choice = Some(behavior);
        self
    }

    /// Applies the settings of a prompt file: the behavior, unless the run has one, and the options
    /// that neither the agent nor the run has set so far (`CHOICE-12`, `CHOICE-16`).
    ///
    /// # Errors
    /// [`InvalidChoice::Form`] if an option of the file has the wrong form.
    pub fn prompt_settings(mut self, settings: &ServiceSettings) -> Result<Self, InvalidChoice> {
        self.given.options = settings.complete(std::mem::take(&mut self.given.options))?;
        self.given.choice = settings.behavior_or(self.given.choice.take());
        Ok(self)
    }

    /// Sets a token that cancels the run, including the model call and tools (`LOOP-15`).
    pub fn cancellation(mut self, cancellation: CancellationToken) -> Self {
        self.given.context.cancellation = cancellation;
        self
    }

    /// Adds middleware inside of the agent's (`MW-3`).
    pub fn layer(mut self, layer: Layer) -> Self {
        self.given.layers.push(layer);
        self
    }

    /// Sets a budget for this run, in addition to the agent's.
    pub fn budget(mut self, budget: TokenBudget) -> Self {
        self.given.budget = Some(budget);
        self
    }

    /// Sets values of the host, for middleware and for tools of remote servers (`MCP-2`).
    pub fn host_values(mut self, values: HostValues) -> Self {
        self.given.context.host = Some(Arc::new(values));
        self
    }

    /// Sets the handler that answers questions of running tools.
    pub fn asker(mut self, asker: Arc<dyn Asker>) -> Self {
        self.given.context.asker = Some(asker);
        self
    }

    /// Sets the receiver of log lines from tools.
    pub fn log(mut self, log: Arc<dyn LogSink>) -> Self {
        self.given.context.log = Some(log);
        self
    }

    /// Sets the receiver of progress from tools.
    pub fn progress(mut self, progress: Arc<dyn ProgressSink>) -> Self {
        self.given.context.progress = Some(progress);
        self
    }

    /// Sets how changes by tools to files are handled.
    pub fn file_effects(mut self, effects: FileEffects) -> Self {
        self.given.context.file_effects = effects;
        self
    }

    /// Sets the services and limits that the run gets from an outer run or a workflow, replacing
    /// those that were set one by one.
    pub fn context(mut self, context: RunContext) -> Self {
        self.given.context = context;
        self
    }

    /// Returns the run as a stream.
    pub fn stream(self) -> RunStream {
        RunStream::beginning(async move {
            Ok(match self.begin(true).await? {
                AgentResult::Response(response) => RunStream::from(response),
                AgentResult::Stream(stream) => stream,
            })
        })
    }

    /// Runs the agent middleware around everything else (`MW-1`).
    async fn begin(self, is_streaming: bool) -> Result<AgentResult, RunError> {
        let Self { agent, messages, given } = self;
        let chains = agent.parts.chains(&[], &given.layers);
        chains.check().map_err(refused)?;
        let mut options = given.options.clone();
        let format = given.response_format.clone().or(options.response_format.take());
        options.response_format = format.or_else(|| agent.parts.response_format.clone());
        let mut context = AgentContext {
            messages,
            options,
            session: given.session.clone(),
            host: given.context.host.clone(),
            is_streaming,
            cancellation: given.context.cancellation.clone(),
            result: None,
        };
        let inside = RunBody { agent, given };
        let done = Next::new(&chains.agent, &inside).run(&mut context).await;
        let carried = match done {
            Ok(()) => None,
            Err(Signal::Terminate(carried)) => carried.map(AgentResult::Response),
            Err(Signal::Error(error)) => return Err(error),
        };
        // If middleware neither sets a result nor runs the rest, the response is empty (`MW-15`).
        Ok(carried.or(context.result).unwrap_or_else(|| AgentResult::Response(Response::default())))
    }
}

fn refused(error: MiddlewareRefused) -> RunError {
    RunError::Other(error.into())
}

/// Innermost part of the agent middleware: the run itself.
struct RunBody {
    agent: Agent,
    given: RunInput,
}

#[async_trait]
impl Innermost<AgentContext> for RunBody {
    async fn run(&self, context: &mut AgentContext) -> Result<(), Signal<Response>> {
        let mut given = self.given.clone();
        given.options = context.options.clone();
        given.session = context.session.clone();
        given.context.host = context.host.clone();
        let turn =
            turn::RunTurn { agent: self.agent.clone(), given, input: context.messages.clone() };
        context.result = Some(if context.is_streaming {
            AgentResult::Stream(RunStream::of(|updates| turn.take(Some(updates))))
        } else {
            AgentResult::Response(turn.take(None).await?)
        });
        Ok(())
    }
}

impl IntoFuture for Run {
    type Output = Result<Response, RunError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            match self.begin(false).await? {
                AgentResult::Response(response) => Ok(response),
                AgentResult::Stream(stream) => stream.finish().await,
            }
        })
    }
}
