//! Agents: a model, its tools, and the configuration of their runs.

use std::sync::Arc;

use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::{DuplicateTool, ToolDefinition, ToolSource, Toolset};

use crate::approvals::{Approvals, InvalidApprovalRule};
use crate::compaction::Compaction;
use crate::guard::{Guard, NoGuard};
use crate::middleware::{Chains, FailureConversion, Layer, MiddlewareRefused};
use crate::run::{IntoMessages, Run};
use crate::tool_search::{self, ToolSearch};
use crate::{
    AgentRequest, ChatClient, ChatOptions, ChoiceBehavior, Clock, ContextProvider, InvalidSetting,
    LoopSettings, ResponseFormat, RunObserver, SystemClock, TokenBudget,
};

/// Model, its tools, and the configuration of their runs. Cloning is cheap; clones share
/// everything, and an agent has no state.
#[derive(Clone)]
pub struct Agent {
    pub(crate) parts: Arc<AgentParts>,
}

/// Components of an agent.
#[derive(Clone)]
pub(crate) struct AgentParts {
    pub(crate) client: Arc<dyn ChatClient>,
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    pub(crate) toolset: Toolset,
    pub(crate) declared: Arc<[Arc<ToolDefinition>]>,
    pub(crate) settings: LoopSettings,
    pub(crate) options: ChatOptions,
    pub(crate) response_format: Option<ResponseFormat>,
    pub(crate) choice: Option<ChoiceBehavior>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) providers: Vec<Arc<dyn ContextProvider>>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) client_layers: Vec<Layer>,
    pub(crate) budget: Option<TokenBudget>,
    pub(crate) compaction: Option<Compaction>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) guard: Arc<dyn Guard>,
    /// Definitions of the tools that the guard adds to each run.
    pub(crate) guard_tools: Arc<[Arc<ToolDefinition>]>,
    pub(crate) tool_search: Option<ToolSearch>,
    pub(crate) observer: Option<Arc<dyn RunObserver>>,
    /// Definitions of the tools that search and load tools.
    pub(crate) search_tools: Arc<[Arc<ToolDefinition>]>,
}

/// Builder for [`Agent`].
#[must_use = "nothing is built yet"]
pub struct AgentBuilder {
    parts: AgentParts,
    converts_failures: bool,
}

/// Error returned by [`AgentBuilder::build`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidAgent {
    /// A setting is out of range.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// Middleware cannot work in the order in which it is registered.
    #[error(transparent)]
    Middleware(#[from] MiddlewareRefused),
    /// A rule about approvals cannot work.
    #[error(transparent)]
    ApprovalRule(#[from] InvalidApprovalRule),
    /// Two context providers share a source id, and with it a part of the session's state.
    #[error("two context providers have the source id `{source_id}`; give one of them another")]
    DuplicateProvider {
        /// The shared source id.
        source_id: String,
    },
    /// Two tools or declared functions have the same name.
    #[error("Duplicate tool name '{name}'. Tool names must be unique.")]
    DuplicateTool {
        /// The duplicate name.
        name: String,
    },
    /// A built-in tool violates the rules for declarations. Tests check that this does not happen.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
}

impl Agent {
    /// Creates a builder for an agent that uses this model.
    pub fn builder(client: impl ChatClient + 'static) -> AgentBuilder {
        let parts = AgentParts {
            client: Arc::new(client),
            name: "agent".to_owned(),
            instructions: None,
            toolset: Toolset::new(),
            declared: Arc::from([]),
            settings: LoopSettings::default(),
            options: ChatOptions::default(),
            response_format: None,
            choice: None,
            approvals: Arc::default(),
            providers: Vec::new(),
            layers: Vec::new(),
            client_layers: Vec::new(),
            budget: None,
            compaction: None,
            clock: Arc::new(SystemClock),
            guard: Arc::new(NoGuard),
            guard_tools: Arc::from([]),
            tool_search: Some(ToolSearch::default()),
            observer: None,
            search_tools: Arc::from([]),
        };
        AgentBuilder { parts, converts_failures: true }
    }

    /// Returns the agent's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Returns the definitions of the tools that runs can offer to the model: those of the toolset,
    /// declared functions, and the tools of the guard, of context providers and of tool search.
    #[must_use]
    pub fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        let AgentParts { toolset, declared, guard_tools, providers, .. } = &*self.parts;
        let of_search = self.parts.tool_search.iter().flat_map(|_| self.parts.search_tools.iter());
        let mut definitions: Vec<_> = toolset.definitions().cloned().collect();
        definitions.extend(declared.iter().chain(guard_tools.iter()).chain(of_search).cloned());
        for provider in providers {
            definitions.extend(provider.definitions().iter().cloned());
        }
        definitions
    }

    /// Returns a copy of the agent with the tools of another source added.
    ///
    /// # Errors
    /// [`DuplicateTool`] if the agent has a tool of the same name.
    pub fn with_source(&self, source: Arc<dyn ToolSource>) -> Result<Self, DuplicateTool> {
        let mut parts = AgentParts::clone(&self.parts);
        parts.toolset.add(source)?;
        Ok(Self { parts: Arc::new(parts) })
    }

    /// Creates the run that a caller requests by [`AgentRun`](crate::AgentRun).
    pub(crate) fn requested(&self, request: AgentRequest) -> Run {
        let AgentRequest { messages, session, context } = request;
        let run = self.run(messages).context(context);
        match session {
            Some(session) => run.session(&session),
            None => run,
        }
    }

    /// Implements [`AgentRun::carry_over`](crate::AgentRun::carry_over).
    pub(crate) fn carry_over_guard(&self, from: &crate::Session, to: &crate::Session) {
        self.parts.guard.carry_over(from, to);
    }

    /// Creates a run that leads from new messages to an answer. The run starts when it is awaited
    /// or its stream is read.
    pub fn run(&self, messages: impl IntoMessages) -> Run {
        Run::new(self.clone(), messages.into_messages())
    }
}

impl AgentBuilder {
    /// Sets the agent's name in records. Defaults to `agent`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts.name = name.into();
        self
    }

    /// Sets the instructions that the model sees first. The instructions of tool sources follow
    /// them.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.parts.instructions = Some(text.into());
        self
    }

    /// Sets the tools.
    pub fn tools(mut self, toolset: Toolset) -> Self {
        self.parts.toolset = toolset;
        self
    }

    /// Declares a function that the caller of a run executes itself: the model sees it, and a call
    /// of it ends the loop (`LOOP-26`).
    pub fn declare(mut self, definition: ToolDefinition) -> Self {
        let declared = self.parts.declared.iter().cloned().chain([Arc::new(definition)]);
        self.parts.declared = declared.collect();
        self
    }

    /// Sets the settings of the loop.
    pub fn settings(mut self, settings: LoopSettings) -> Self {
        self.parts.settings = settings;
        self
    }

    /// Sets the options of model requests.
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.parts.options = options;
        self
    }

    /// Sets the form of answers (`LOOP-65`). A run can set another one.
    pub fn response_format(mut self, format: ResponseFormat) -> Self {
        self.parts.response_format = Some(format);
        self
    }

    /// Sets which functions are advertised, and whether the model may or must call them.
    pub fn choice(mut self, behavior: ChoiceBehavior) -> Self {
        self.parts.choice = Some(behavior);
        self
    }

    /// Sets which calls the user has to approve and which are denied, replacing earlier rules.
    /// [`build`](Self::build) logs a warning for names that are probably
    /// [misspelled](Approvals::misspelled).
    pub fn approvals(mut self, approvals: Approvals) -> Self {
        self.parts.approvals = Arc::new(approvals);
        self
    }

    /// Adds a context provider after those already added.
    pub fn context_provider(mut self, provider: impl ContextProvider + 'static) -> Self {
        self.parts.providers.push(Arc::new(provider));
        self
    }

    /// Adds middleware inside of that already added.
    pub fn layer(mut self, layer: Layer) -> Self {
        self.parts.layers.push(layer);
        self
    }

    /// Adds middleware of the client level, which is outside of the agent's and the run's (`MW-3`).
    /// Agent middleware has no such level and counts as the agent's.
    pub fn client_layer(mut self, layer: Layer) -> Self {
        self.parts.client_layers.push(layer);
        self
    }

    /// Keeps failures of tools as errors instead of converting them to results for the model
    /// (`RES-21`). Every failure then becomes `Error: Function failed.` For tests.
    pub fn without_failure_conversion(mut self) -> Self {
        self.converts_failures = false;
        self
    }

    /// Sets the guard that decides about the calls of all runs, replacing an earlier one.
    pub fn guard(mut self, guard: impl Guard + 'static) -> Self {
        self.parts.guard = Arc::new(guard);
        self
    }

    /// Sets a budget to which all runs count.
    pub fn budget(mut self, budget: TokenBudget) -> Self {
        self.parts.budget = Some(budget);
        self
    }

    /// Sets how conversations that become too long are shortened.
    pub fn compaction(mut self, compaction: Compaction) -> Self {
        self.parts.compaction = Some(compaction);
        self
    }

    /// Sets the observer that receives each run when it has ended.
    pub fn observer(mut self, observer: impl Into<Option<Arc<dyn RunObserver>>>) -> Self {
        self.parts.observer = observer.into();
        self
    }

    /// Sets when the model searches for tools instead of seeing all of them (`LOOP-68`). `None`
    /// always advertises all; the default is [`ToolSearch::default`].
    pub fn tool_search(mut self, search: impl Into<Option<ToolSearch>>) -> Self {
        self.parts.tool_search = search.into();
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.parts.clock = Arc::new(clock);
        self
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// If the configuration cannot work; it is checked here and not at the first run.
    pub fn build(mut self) -> Result<Agent, InvalidAgent> {
        self.parts.settings.check()?;
        self.parts.approvals.check(&self.parts.toolset)?;
        for warning in self.parts.approvals.misspelled(&self.parts.toolset) {
            tracing::warn!(agent = self.parts.name, "{warning}");
        }
        let mut ids: Vec<_> =
            self.parts.providers.iter().map(|provider| provider.source_id()).collect();
        ids.sort_unstable();
        if let Some([id, _]) = ids.array_windows().find(|[first, second]| first == second) {
            return Err(InvalidAgent::DuplicateProvider { source_id: (*id).to_owned() });
        }
        let declared = self.parts.declared.iter().map(|definition| definition.name.as_str());
        if let Some(name) =
            declared.clone().find(|name| self.parts.toolset.definition(name).is_ok())
        {
            return Err(InvalidAgent::DuplicateTool { name: name.to_owned() });
        }
        self.parts.guard_tools = self.parts.guard.definitions()?;
        let mut of_guard = self.parts.guard_tools.iter().map(|definition| definition.name.as_str());
        let is_taken = |name: &&str| {
            self.parts.toolset.definition(name).is_ok()
                || self.parts.declared.iter().any(|definition| definition.name.as_str() == *name)
        };
        if let Some(name) = of_guard.find(is_taken) {
            return Err(InvalidAgent::DuplicateTool { name: name.to_owned() });
        }
        self.parts.search_tools = tool_search::definitions()?;
        if self.converts_failures {
            // Outermost, so that retries are inside of it wherever they are registered (`MW-19`).
            self.parts.client_layers.insert(0, Layer::function(FailureConversion));
        }
        self.parts.chains(&[], &[]).check()?;
        Ok(Agent { parts: Arc::new(self.parts) })
    }
}

impl AgentParts {
    /// Returns all middleware of a run, from the outside in (`MW-3`).
    pub(crate) fn chains(&self, of_providers: &[Layer], of_run: &[Layer]) -> Chains {
        let mut chains = Chains::default();
        for layers in [&self.client_layers[..], &self.layers, of_providers, of_run] {
            chains.extend(layers.iter().cloned());
        }
        chains
    }
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("name", &self.parts.name).finish_non_exhaustive()
    }
}
