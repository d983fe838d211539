//! The run around the loop: context providers, the session, answered approvals (`SES-2` to `SES-5`,
//! `LOOP-36`).

use std::sync::Arc;

use cofferdam_tool::trace::TraceContext;
use serde_json::Value;
use tokio::sync::mpsc;

use super::RunInput;
use super::cycle::{Cycle, Start};
use super::transcript::NewMessages;
use crate::approvals::{BatchOutcome, DecidableCall, forget, settle};
use crate::compaction::CompactionSnapshot;
use crate::context::ContextAdditions;
use crate::guard::{self, GuardedRun, RunGuard};
use crate::history::History;
use crate::live::{LiveTools, NestedRuns, RunTools};
use crate::observer::ObservedRun;
use crate::tool_search::SearchableTools;
use crate::{
    AfterRun, Agent, BeforeRun, BoxError, ContextProvider, Message, MessageContent, Response,
    ResponseFormat, Role, RunError, Session, ToolMode, Update, UsageMeter,
};

/// One run inside the agent middleware.
pub(super) struct RunTurn {
    pub(super) agent: Agent,
    pub(super) given: RunInput,
    pub(super) input: Vec<Arc<Message>>,
}

impl RunTurn {
    /// Runs to the end. Sends updates to `updates` while it runs, if there is one.
    pub(super) async fn take(
        mut self,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let cancellation = self.given.context.cancellation.clone();
        let caller = self.given.context.trace;
        let trace = caller.map_or_else(TraceContext::root, |caller| caller.child());
        self.given.context.trace = Some(trace);
        let observed = ObservedRun::start(&self.agent, self.given.session.as_ref(), trace);
        // Code of this crate stops by itself when the run is canceled. The second branch ends the
        // run for code of the caller that does not.
        let result = tokio::select! {
            biased;
            response = self.taken(updates) => response,
            () = super::calls::long_cancelled(&cancellation) => Err(RunError::Cancelled),
        };
        observed.end(&result);
        result
    }

    async fn taken(self, updates: Option<mpsc::Sender<Update>>) -> Result<Response, RunError> {
        let session = self.given.session.clone();
        let _turn = match &session {
            Some(session) => Some(session.take_turn().await),
            None => None,
        };
        if let Some(session) = &session {
            guard::remember(&*self.agent.parts.guard, session)?;
        }
        let input = NewMessages::new(self.input.clone());
        let resolution = match &session {
            Some(session) => settle(session, &input.answers),
            // Without a session no requests are recorded, so there is nothing to answer
            // (`LOOP-45`).
            None => BatchOutcome::Nothing,
        };
        let around = ProvidedContext {
            providers: self.providers(),
            session: session.clone(),
            input: input.messages,
            caller: self.given.context.caller.clone(),
            hides_untrusted: self.agent.parts.guard.hides_untrusted(),
        };
        match resolution {
            BatchOutcome::Waiting(requests) => {
                let requests = requests.into_iter().map(MessageContent::ApprovalRequest).collect();
                let message = Arc::new(Message::new(Role::Assistant, requests));
                super::cycle::send(updates.as_ref(), &message).await;
                let response = Response { messages: vec![message], ..Response::default() };
                around.after(&response, &ContextAdditions::default(), None, None).await?;
                Ok(response)
            }
            BatchOutcome::Nothing => self.cycled(around, Vec::new(), updates).await,
            BatchOutcome::Complete(calls) => self.cycled(around, calls, updates).await,
        }
    }

    async fn cycled(
        self,
        mut around: ProvidedContext,
        resumed: Vec<DecidableCall>,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let has_resumed = !resumed.is_empty();
        let added = around.before().await?;
        let guard = self.guard();
        let (tools, search) = self.tools(&added, &guard)?;
        let chains = self.agent.parts.chains(&added.middleware, &self.given.layers);
        chains.check().map_err(super::refused)?;
        let instructions = self.instructions(&tools, &added);
        let mut given = self.given;
        given.options.instructions = instructions;
        // From here on, announcements are part of the input, and stored like it.
        around.input.splice(0..0, added.announced.iter().cloned());
        let mut messages = added.messages.clone();
        messages.extend(around.input.iter().cloned());
        let outer = &given.context;
        let nested = NestedRuns {
            depth: outer.depth.saturating_add(1),
            budgets: given.budgets(&self.agent.parts),
            usage: UsageMeter::default(),
            caller: outer.caller.clone(),
        };
        let usage = outer.usage.clone();
        let live = LiveTools::new(tools, nested);
        let replaced = added.replaced.clone();
        let denials = added.denials.clone();
        let live_tools = live.clone();
        let start =
            Start { messages, replaced, resumed, chains, live: live_tools, guard, denials, search };
        if let Some(session) = around.session.as_ref().filter(|_| has_resumed) {
            forget(session);
        }
        let mut cycle = Cycle::new(&self.agent.parts, given, start, updates);
        let ended = cycle.run().await;
        live.close();
        let (response, compaction) = cycle.into_parts();
        if let Some(used) = response.usage {
            usage.add(used);
        }
        if let (Some(session), Some(id)) = (&around.session, &response.conversation_id) {
            session.set_service_id(Some(id.clone()));
        }
        let error = ended.err();
        // The next turn must know about the work that tools have completed. If there is none,
        // nothing is stored, and the caller sends its messages again.
        if error.is_none() || !response.messages.is_empty() {
            around.after(&response, &added, compaction.as_ref(), error.as_ref()).await?;
        }
        error.map_or(Ok(response), Err)
    }

    /// Returns the system prompt: the caller's own, the instructions of tool sources, additions of
    /// context providers (`SES-3`), and the response format if requests cannot carry it.
    fn instructions(&self, tools: &RunTools, added: &ContextAdditions) -> Option<String> {
        let own =
            self.given.options.instructions.iter().chain(&self.agent.parts.instructions).cloned();
        // Names the source of the instructions, because a source may be untrusted.
        let of_sources = tools.toolset().sources().filter_map(|source| {
            Some(format!("About the tools of `{}`:\n{}", source.name(), source.instructions()?))
        });
        let all = own.chain(of_sources).chain(added.instructions.iter().cloned());
        let is_described = !self.agent.parts.client.supports_response_format();
        let format = self.given.options.response_format.as_ref().filter(|_| is_described);
        let all: Vec<_> = all.chain(format.map(ResponseFormat::instructions)).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Returns the agent's providers, plus a history if the conversation is not stored otherwise
    /// (`SES-4`).
    fn providers(&self) -> Vec<Arc<dyn ContextProvider>> {
        let parts = &self.agent.parts;
        let mut providers = parts.providers.clone();
        let Some(session) = &self.given.session else { return providers };
        let is_remembered = providers.iter().any(|provider| provider.loads_history())
            || session.service_id().is_some()
            || parts.client.keeps_conversation();
        if !is_remembered {
            let added = History::beside(&providers);
            providers.push(Arc::new(added));
        }
        providers
    }

    /// Starts the guard's part of the run.
    fn guard(&self) -> Arc<dyn RunGuard> {
        let parts = &self.agent.parts;
        let budgets = self.given.budgets(parts);
        let (session, definitions) = (self.given.session.as_ref(), &parts.guard_tools);
        parts.guard.begin(GuardedRun {
            session,
            budgets,
            ..GuardedRun::new(&parts.client, definitions)
        })
    }

    fn tools(
        &self,
        added: &ContextAdditions,
        guard: &Arc<dyn RunGuard>,
    ) -> Result<(RunTools, Option<Arc<SearchableTools>>), RunError> {
        let parts = &self.agent.parts;
        let mut toolset = parts.toolset.clone();
        for source in added.sources.iter().cloned().chain(Arc::clone(guard).tools()) {
            toolset.add(source).map_err(|error| RunError::Other(error.into()))?;
        }
        let mut search = self.search(toolset.definitions().len()).map(Arc::new);
        if let Some(source) = &search
            && let Err(error) = toolset.add(Arc::<SearchableTools>::clone(source))
        {
            tracing::warn!(%error, "all tools are advertised, because they cannot be searched");
            search = None;
        }
        Ok((RunTools::new(toolset, Arc::clone(&parts.declared)), search))
    }

    /// Returns the search for tools if the run has too many, `count` of them in its toolset. Tools
    /// of providers and of the guard are always advertised, because their instructions name them.
    fn search(&self, count: usize) -> Option<SearchableTools> {
        let (parts, given) = (&self.agent.parts, &self.given);
        let settings = given.settings.as_ref().unwrap_or(&parts.settings);
        let has_choice = given.choice.is_some() || parts.choice.is_some();
        let search = parts.tool_search.as_ref().filter(|_| settings.enabled && !has_choice)?;
        let own = parts.toolset.definitions().chain(parts.declared.iter());
        let required = match &given.options.tool_choice {
            Some(ToolMode::Required(name)) => name.as_deref(),
            _ => None,
        };
        let (count, session) = (count + parts.declared.len(), given.session.as_ref());
        SearchableTools::new(search, &parts.search_tools, own, count, required, session)
    }
}

/// The run, as context providers see it.
struct ProvidedContext {
    providers: Vec<Arc<dyn ContextProvider>>,
    session: Option<Session>,
    input: Vec<Arc<Message>>,
    caller: Option<Arc<str>>,
    hides_untrusted: bool,
}

impl ProvidedContext {
    async fn before(&self) -> Result<ContextAdditions, RunError> {
        let mut added = ContextAdditions::default();
        for provider in &self.providers {
            let source = provider.source_id();
            let mut state = self.state(source);
            let mut run = BeforeRun {
                state: &mut state,
                session: self.session.as_ref(),
                input: &self.input,
                caller: self.caller.as_deref(),
                hides_untrusted: self.hides_untrusted,
                source,
                added: &mut added,
            };
            let done = provider.before_run(&mut run).await;
            self.save_state(source, state);
            done.map_err(RunError::Other)?;
        }
        Ok(added)
    }

    async fn after(
        &self,
        response: &Response,
        added: &ContextAdditions,
        compaction: Option<&CompactionSnapshot>,
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        for provider in self.providers.iter().rev() {
            let source = provider.source_id();
            let mut state = self.state(source);
            let mut run = AfterRun {
                state: &mut state,
                session: self.session.as_ref(),
                input: &self.input,
                caller: self.caller.as_deref(),
                hides_untrusted: self.hides_untrusted,
                context: &added.messages,
                response,
                error,
                loaded: &added.loaded,
                compaction,
            };
            let done: Result<(), BoxError> = provider.after_run(&mut run).await;
            self.save_state(source, state);
            done.map_err(RunError::Other)?;
        }
        Ok(())
    }

    fn state(&self, source: &str) -> Value {
        self.session.as_ref().map(|session| session.part(source)).unwrap_or_default()
    }

    fn save_state(&self, source: &str, state: Value) {
        if let Some(session) = &self.session {
            session.set_part(source, state);
        }
    }
}
