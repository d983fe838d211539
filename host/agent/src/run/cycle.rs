//! The loop: ask the model, run its calls, and again (`LOOP-1`).

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use super::Given;
use super::calls::Batch;
use super::model::Answer;
use super::plan::Plan;
use super::transcript::arranged;
use crate::agent::Parts;
use crate::approvals::{Decided, Gated, OpenBatch};
use crate::guard::RunGuard;
use crate::live::{LiveTools, RunTools};
use crate::middleware::Chains;
use crate::{
    CallFailure, Content, FunctionCall, IterationContext, LoopSettings, Message, OnErrorLimit,
    Pairing, Reply, Response, Role, RunError, Session, ToolMode, Update,
};

/// What is shown for a reply of which nothing is left (`LOOP-23`).
const NO_ANSWER: &str =
    "Function invocation limit reached before a final answer could be produced.";

/// What a loop begins with.
pub(super) struct Start {
    /// What the model is to see, context first.
    pub(super) messages: Vec<Arc<Message>>,
    /// A batch that a person has decided about.
    pub(super) resumed: Vec<Decided>,
    pub(super) chains: Chains,
    pub(super) live: LiveTools,
    pub(super) guard: Arc<dyn RunGuard>,
}

/// One loop from its first request to its last.
pub(super) struct Cycle<'r> {
    pub(super) parts: &'r Parts,
    pub(super) given: Given,
    pub(super) settings: LoopSettings,
    pub(super) chains: Chains,
    pub(super) live: LiveTools,
    pub(super) guard: Arc<dyn RunGuard>,
    pub(super) updates: Option<mpsc::Sender<Update>>,
    /// What the model is to see.
    pub(super) messages: Vec<Arc<Message>>,
    /// How many of `messages` the service has, if it keeps the conversation (`LOOP-4`).
    pub(super) kept: usize,
    pub(super) response: Response,
    pub(super) tool_choice: Option<ToolMode>,
    /// The next reply is the last, and may not call (`LOOP-19`).
    pub(super) is_withdrawn: bool,
    /// Requests so far.
    pub(super) requests: usize,
    started: Instant,
    resumed: Vec<Decided>,
    iteration: u32,
    calls: u32,
    errors: u32,
}

/// Whether there is another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    End,
}

impl<'r> Cycle<'r> {
    pub(super) fn new(
        parts: &'r Parts,
        mut given: Given,
        start: Start,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Self {
        let service_id = given.session.as_ref().and_then(Session::service_id);
        let mut settings = given.settings.clone().unwrap_or_else(|| parts.settings.clone());
        if let Some(choice) = given.choice.as_ref().or(parts.choice.as_ref()) {
            choice.apply(&mut settings, &mut given.options);
        }
        Self {
            settings,
            tool_choice: given.options.tool_choice.clone(),
            parts,
            given,
            chains: start.chains,
            live: start.live,
            guard: start.guard,
            updates,
            messages: start.messages,
            kept: 0,
            response: Response { conversation_id: service_id, ..Response::default() },
            is_withdrawn: false,
            requests: 0,
            started: parts.clock.now(),
            resumed: start.resumed,
            iteration: 0,
            calls: 0,
            errors: 0,
        }
    }

    /// What the run has produced so far.
    pub(super) fn into_response(self) -> Response {
        self.response
    }

    /// Runs the loop.
    pub(super) async fn run(&mut self) -> Result<(), RunError> {
        self.settings.check().map_err(|error| RunError::Other(error.into()))?;
        self.guard.begins_with(&self.messages);
        let resumed = std::mem::take(&mut self.resumed);
        let mut then = match resumed.is_empty() {
            true => Then::GoOn,
            false => self.resume(resumed).await?,
        };
        self.messages = arranged(&self.messages, self.response.conversation_id.is_some());
        while then == Then::GoOn {
            then = self.iterate().await?;
        }
        Ok(())
    }

    /// Runs a batch that a person has decided about (`LOOP-40`).
    async fn resume(&mut self, batch: Vec<Decided>) -> Result<Then, RunError> {
        let calls: Vec<_> =
            batch.iter().map(|decided| Content::FunctionCall(decided.call.clone())).collect();
        let asked = Message::new(Role::Assistant, calls);
        let is_known = Pairing::of(&self.messages)
            .holds_open(&self.messages, batch.iter().map(|decided| &decided.call));
        if !is_known && self.response.conversation_id.is_none() {
            // Nobody has kept the message that the results belong to.
            self.messages.push(Arc::new(asked.clone()));
        }
        let tools = self.live.snapshot();
        let reply = Reply { messages: vec![asked], ..Reply::default() };
        self.run_batch(batch, &tools, &Plan::of_resumed(), &reply).await
    }

    /// One request and what follows from it.
    async fn iterate(&mut self) -> Result<Then, RunError> {
        let tools = self.live.snapshot();
        let plan = self.plan(&tools)?;
        let Answer { mut reply, is_terminated, budget } = self.ask(&plan).await?;
        self.requests += 1;
        if let Some(usage) = reply.usage {
            *self.response.usage.get_or_insert_default() += usage;
        }
        self.response.finish = reply.finish.clone().or(self.response.finish.take());
        let has_conversation = reply.conversation_id.is_some();
        self.response.conversation_id =
            reply.conversation_id.clone().or(self.response.conversation_id.take());
        self.guard.replied(&reply);
        if let Err(exceeded) = budget {
            // It is paid for, and may have been read while it came.
            self.append_reply(&reply);
            return Err(exceeded);
        }
        if self.is_withdrawn {
            self.drop_calls(&mut reply).await;
        }
        let calls = unanswered(&reply);
        let is_over = self.is_withdrawn || is_terminated || calls.is_empty() || !plan.runs_calls;
        if is_over || self.settings.terminate_on_unknown && self.has_unknown(&calls, &tools) {
            self.append_reply(&reply);
            return Ok(Then::End);
        }
        let gated = self.gated(&calls, &tools, &plan);
        if !gated.is_empty() {
            self.request_approval(&mut reply, calls, &gated).await?;
            return Ok(Then::End);
        }
        self.mark_caller_requests(&mut reply, &tools);
        self.append_reply(&reply);
        if has_conversation {
            self.kept = self.messages.len();
        }
        let batch = calls.into_iter().map(Decided::unasked).collect();
        self.run_batch(batch, &tools, &plan, &reply).await
    }

    fn has_unknown(&self, calls: &[FunctionCall], tools: &RunTools) -> bool {
        calls
            .iter()
            .any(|call| !self.is_for_caller(call, tools) && self.tool(&call.name, tools).is_none())
    }

    /// Whether the caller of the run makes a call (`LOOP-26`).
    pub(super) fn is_for_caller(&self, call: &FunctionCall, tools: &RunTools) -> bool {
        self.settings.caller_tools.contains(&call.name) || tools.is_declared(&call.name)
    }

    /// The places of the calls that a person has to approve.
    fn gated(&self, calls: &[FunctionCall], tools: &RunTools, plan: &Plan) -> Vec<Gated> {
        let session = self.given.session.as_ref();
        let gated = |(place, call): (usize, &FunctionCall)| {
            // Nobody is asked about what does not run in any case (`CHOICE-14`).
            let found = self.tool(&call.name, tools).filter(|_| plan.allows(&call.name));
            let (toolset, tool) = found.filter(|_| !self.is_for_caller(call, tools))?;
            let objections = self.guard.objections(call, tool, toolset);
            let is_gated = !objections.is_empty()
                || self.parts.approvals.are_needed(call, tool, toolset, session);
            is_gated.then(|| Gated { place, origin: toolset.origin(&call.name), objections })
        };
        calls.iter().enumerate().filter_map(gated).collect()
    }

    /// Asks for approval of some calls of a batch; nothing of it runs (`LOOP-35`).
    async fn request_approval(
        &mut self,
        reply: &mut Reply,
        calls: Vec<FunctionCall>,
        gated: &[Gated],
    ) -> Result<(), RunError> {
        let batch = OpenBatch::new(calls, gated).map_err(|error| RunError::Other(error.into()))?;
        if let Some(session) = &self.given.session {
            batch.record(session);
        }
        let requests: Vec<_> = batch.waiting().into_iter().map(Content::ApprovalRequest).collect();
        send(self.updates.as_ref(), &Message::new(Role::Assistant, requests.clone())).await;
        if let Some(last) =
            reply.messages.iter_mut().rfind(|message| message.role == Role::Assistant)
        {
            last.contents.extend(requests);
        }
        self.append_reply(reply);
        Ok(())
    }

    fn mark_caller_requests(&self, reply: &mut Reply, tools: &RunTools) {
        for content in reply.messages.iter_mut().flat_map(|message| &mut message.contents) {
            if let Content::FunctionCall(call) = content
                && self.is_for_caller(call, tools)
            {
                call.is_for_caller = true;
            }
        }
    }

    /// Takes calls out of a reply that may not hold any (`LOOP-23`).
    async fn drop_calls(&mut self, reply: &mut Reply) {
        for message in &mut reply.messages {
            message.contents.retain(|content| content.as_call().is_none());
        }
        reply.messages.retain(|message| !message.contents.is_empty());
        let is_visible = |content: &Content| match content {
            Content::Text(text) => !text.text.is_empty(),
            Content::Reasoning(_) => false,
            _ => true,
        };
        if !reply.messages.iter().flat_map(|message| &message.contents).any(is_visible) {
            let message = Message::assistant(NO_ANSWER);
            send(self.updates.as_ref(), &message).await;
            reply.messages.push(message);
        }
    }

    fn append_reply(&mut self, reply: &Reply) {
        let shown = reply.messages.iter().filter(|message| !message.contents.is_empty());
        shown.for_each(|message| self.append(Arc::new(message.clone())));
    }

    fn append(&mut self, message: Arc<Message>) {
        self.messages.push(Arc::clone(&message));
        self.response.messages.push(message);
    }

    /// Runs a batch and does what comes at the end of an iteration, in the order of `LOOP-34`.
    async fn run_batch(
        &mut self,
        decided: Vec<Decided>,
        tools: &RunTools,
        plan: &Plan,
        reply: &Reply,
    ) -> Result<Then, RunError> {
        let has_caller_requests =
            decided.iter().any(|decided| self.is_for_caller(&decided.call, tools));
        let batch = self.run_calls(decided, tools, plan).await;
        let Batch { results, failures, is_terminated, is_out_of_time, started, error } = batch;
        if let Some(used) = self.guard.take_usage() {
            *self.response.usage.get_or_insert_default() += used;
        }
        let has_results = !results.is_empty();
        if has_results {
            let message = Arc::new(Message::new(Role::Tool, results));
            send(self.updates.as_ref(), &message).await;
            self.append(message);
        }
        if let Some(error) = error {
            return Err(error);
        }
        if !has_results {
            return Ok(Then::End);
        }
        let is_stopped = self.completed(reply).await?;
        self.iteration = self.iteration.saturating_add(1);
        self.calls = self.calls.saturating_add(started);
        if is_stopped || is_terminated || has_caller_requests {
            return Ok(Then::End);
        }
        self.apply_error_policy(failures)?;
        if is_out_of_time || self.is_at_limit() {
            self.is_withdrawn = true;
        }
        if matches!(self.tool_choice, Some(ToolMode::Required(_))) {
            self.tool_choice = None;
        }
        Ok(Then::GoOn)
    }

    /// Calls the hook. Says whether it ends the run (`LOOP-32`).
    async fn completed(&mut self, reply: &Reply) -> Result<bool, RunError> {
        let Some(hook) = self.settings.iteration_completed.clone() else { return Ok(false) };
        let mut context = IterationContext {
            iteration: self.iteration,
            total_usage: self.response.usage,
            messages: &mut self.messages,
            response: reply,
            is_streaming: self.updates.is_some(),
            terminate: false,
        };
        hook.completed(&mut context).await.map_err(RunError::Other)?;
        let is_stopped = context.terminate;
        self.kept = self.kept.min(self.messages.len());
        Ok(is_stopped)
    }

    /// Counts rounds with errors, and does what is set when there were too many in a row
    /// (`LOOP-17`, `LOOP-18`).
    fn apply_error_policy(&mut self, failures: Vec<CallFailure>) -> Result<(), RunError> {
        if failures.is_empty() {
            self.errors = 0;
            return Ok(());
        }
        self.errors = self.errors.saturating_add(1);
        if self.errors < self.settings.max_consecutive_errors.max(1) {
            return Ok(());
        }
        match self.settings.on_error_limit {
            OnErrorLimit::Answer => self.is_withdrawn = true,
            OnErrorLimit::Raise => return Err(RunError::Calls(failures)),
        }
        Ok(())
    }

    /// Whether a limit of `LOOP-20` to `LOOP-22` is reached.
    fn is_at_limit(&self) -> bool {
        let settings = &self.settings;
        self.iteration >= settings.max_iterations
            || settings.max_function_calls.is_some_and(|max| self.calls >= max)
            || self.is_out_of_time()
    }

    /// Whether `max_duration` has passed.
    pub(super) fn is_out_of_time(&self) -> bool {
        let passed = self.parts.clock.now().saturating_duration_since(self.started);
        self.settings.max_duration.is_some_and(|max| passed >= max)
    }
}

/// The calls of a reply that the service has not made itself (`LOOP-6`).
fn unanswered(reply: &Reply) -> Vec<FunctionCall> {
    let answered: Vec<_> =
        reply.messages.iter().flat_map(Message::results).map(|result| &result.call_id).collect();
    let calls = reply.messages.iter().flat_map(Message::calls);
    calls.filter(|call| !answered.contains(&&call.call_id)).cloned().collect()
}

/// Sends a message that did not come from the model, as one update (`LOOP-29`).
pub(super) async fn send(updates: Option<&mpsc::Sender<Update>>, message: &Message) {
    let Some(updates) = updates else { return };
    let reply = Reply { messages: vec![message.clone()], ..Reply::default() };
    for update in reply.into_updates().into_iter().filter(|update| !update.deltas.is_empty()) {
        // Nobody reads any more: the run is about to be dropped.
        let _ = updates.send(update).await;
    }
}
