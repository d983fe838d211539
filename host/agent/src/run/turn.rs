//! The run around the loop: context providers, the session, answered approvals (`SES-2` to `SES-5`,
//! `LOOP-36`).

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc;

use super::RunInput;
use super::cycle::{Cycle, Start};
use super::transcript::NewMessages;
use crate::approvals::{BatchOutcome, DecidableCall, settle};
use crate::context::ContextAdditions;
use crate::guard::{GuardedRun, RunGuard};
use crate::history::History;
use crate::live::{LiveTools, RunTools};
use crate::{
    AfterRun, Agent, BeforeRun, BoxError, ContextProvider, Message, MessageContent, Response, Role,
    RunError, Session, Update,
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
        self,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let cancellation = self.given.cancellation.clone();
        // Code of this crate stops by itself when the run is canceled. The second branch ends the
        // run for code of the caller that does not.
        tokio::select! {
            biased;
            response = self.taken(updates) => response,
            () = super::calls::long_cancelled(&cancellation) => Err(RunError::Cancelled),
        }
    }

    async fn taken(self, updates: Option<mpsc::Sender<Update>>) -> Result<Response, RunError> {
        let session = self.given.session.clone();
        let _turn = match &session {
            Some(session) => Some(session.take_turn().await),
            None => None,
        };
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
        };
        match resolution {
            BatchOutcome::Waiting(requests) => {
                let requests = requests.into_iter().map(MessageContent::ApprovalRequest).collect();
                let message = Arc::new(Message::new(Role::Assistant, requests));
                super::cycle::send(updates.as_ref(), &message).await;
                let response = Response { messages: vec![message], ..Response::default() };
                around.after(&response, &[], None).await?;
                Ok(response)
            }
            BatchOutcome::Nothing => self.cycled(around, Vec::new(), updates).await,
            BatchOutcome::Complete(calls) => self.cycled(around, calls, updates).await,
        }
    }

    async fn cycled(
        self,
        around: ProvidedContext,
        resumed: Vec<DecidableCall>,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Result<Response, RunError> {
        let added = around.before().await?;
        let guard = self.guard();
        let tools = self.tools(&added, &guard)?;
        let chains = self.agent.parts.chains(&added.middleware, &self.given.layers);
        chains.check().map_err(super::refused)?;
        let instructions = self.instructions(&tools, &added);
        let mut given = self.given;
        given.options.instructions = instructions;
        let mut messages = added.messages.clone();
        messages.extend(around.input.iter().cloned());
        let live = LiveTools::new(tools);
        let start = Start { messages, resumed, chains, live: live.clone(), guard };
        let mut cycle = Cycle::new(&self.agent.parts, given, start, updates);
        let ended = cycle.run().await;
        live.close();
        let response = cycle.into_response();
        if let (Some(session), Some(id)) = (&around.session, &response.conversation_id) {
            session.set_service_id(Some(id.clone()));
        }
        let error = ended.err();
        // The next turn must know about the work that tools have completed. If there is none,
        // nothing is stored, and the caller sends its messages again.
        if error.is_none() || !response.messages.is_empty() {
            around.after(&response, &added.messages, error.as_ref()).await?;
        }
        error.map_or(Ok(response), Err)
    }

    /// Returns the system prompt: the caller's own, the instructions of tool sources, and additions
    /// of context providers (`SES-3`).
    fn instructions(&self, tools: &RunTools, added: &ContextAdditions) -> Option<String> {
        let own =
            self.given.options.instructions.iter().chain(&self.agent.parts.instructions).cloned();
        // Names the source of the instructions, because a source may be untrusted.
        let of_sources = tools.toolset().sources().filter_map(|source| {
            Some(format!("About the tools of `{}`:\n{}", source.name(), source.instructions()?))
        });
        let all: Vec<_> = own.chain(of_sources).chain(added.instructions.iter().cloned()).collect();
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
        let budgets =
            [self.given.budget.clone(), parts.budget.clone()].into_iter().flatten().collect();
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
    ) -> Result<RunTools, RunError> {
        let mut toolset = self.agent.parts.toolset.clone();
        for source in added.sources.iter().cloned().chain(Arc::clone(guard).tools()) {
            toolset.add(source).map_err(|error| RunError::Other(error.into()))?;
        }
        Ok(RunTools::new(toolset, Arc::clone(&self.agent.parts.declared)))
    }
}

/// The run, as context providers see it.
struct ProvidedContext {
    providers: Vec<Arc<dyn ContextProvider>>,
    session: Option<Session>,
    input: Vec<Arc<Message>>,
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
        context: &[Arc<Message>],
        error: Option<&RunError>,
    ) -> Result<(), RunError> {
        for provider in self.providers.iter().rev() {
            let source = provider.source_id();
            let mut state = self.state(source);
            let mut run = AfterRun {
                state: &mut state,
                session: self.session.as_ref(),
                input: &self.input,
                context,
                response,
                error,
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
