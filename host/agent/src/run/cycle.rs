//! The loop: call the model, run its calls, repeat (`LOOP-1`).

use std::sync::Arc;
use std::time::Instant;

use cofferdam_tool::ToolDefinition;
use tokio::sync::mpsc;

use super::RunInput;
use super::calls::Batch;
use super::compact::KnownSize;
use super::model::ModelOutcome;
use super::plan::FunctionPlan;
use super::transcript::arranged;
use crate::agent::AgentParts;
use crate::approvals::{DecidableCall, GatedCall, OpenBatch, SuspendedCall};
use crate::choice::ChoiceOptions;
use crate::compaction::CompactionSnapshot;
use crate::context::Denial;
use crate::guard::RunGuard;
use crate::live::{LiveTools, RunTools};
use crate::middleware::Chains;
use crate::tool_search::{AdvertisedTools, SearchableTools};
use crate::{
    CallFailure, ErrorLimitAction, FunctionCall, IterationContext, LoopSettings, Message,
    MessageContent, Pairing, ReachedLimit, Reply, Response, Role, RunError, Session, ToolMode,
    Update,
};

/// Text of a reply that is empty after its calls were removed (`LOOP-23`).
const NO_ANSWER: &str =
    "Function invocation limit reached before a final answer could be produced.";

/// Initial state of a loop.
pub(super) struct Start {
    /// Messages for the model, context first.
    pub(super) messages: Vec<Arc<Message>>,
    /// Messages of the history that an earlier compaction has replaced.
    pub(super) replaced: Vec<Arc<Message>>,
    /// A batch that the user has decided about.
    pub(super) resumed: Vec<DecidableCall>,
    pub(super) chains: Chains,
    pub(super) live: LiveTools,
    pub(super) guard: Arc<dyn RunGuard>,
    /// Decisions of context providers about tools.
    pub(super) denials: Vec<Denial>,
    pub(super) search: Option<Arc<SearchableTools>>,
}

/// One loop, from its first request to its last.
pub(super) struct Cycle<'r> {
    pub(super) parts: &'r AgentParts,
    pub(super) given: RunInput,
    pub(super) settings: LoopSettings,
    pub(super) chains: Chains,
    pub(super) live: LiveTools,
    pub(super) guard: Arc<dyn RunGuard>,
    pub(super) denials: Arc<[Denial]>,
    pub(super) search: Option<Arc<SearchableTools>>,
    pub(super) latest_tools: AdvertisedTools,
    pub(super) updates: Option<mpsc::Sender<Update>>,
    /// Messages for the model.
    pub(super) messages: Vec<Arc<Message>>,
    /// Number of `messages` that the service has, if it keeps the conversation (`LOOP-4`).
    pub(super) stored: usize,
    pub(super) response: Response,
    pub(super) tool_choice: Option<ToolMode>,
    /// Options that the run has without a choice behavior.
    pub(super) unchosen_options: ChoiceOptions,
    /// True if the next reply is the last and may not contain calls (`LOOP-19`).
    pub(super) is_withdrawn: bool,
    /// Functions of the latest request that advertised any.
    pub(super) listed: Arc<[Arc<ToolDefinition>]>,
    /// True if the model was asked to repair its answer (`LOOP-66`).
    pub(super) is_repaired: bool,
    /// Number of requests so far.
    pub(super) requests: usize,
    /// Tokens of the beginning of `messages`, as known from an earlier request.
    pub(super) known_size: Option<KnownSize>,
    /// Last compaction.
    pub(super) compaction: Option<CompactionSnapshot>,
    replaced: Vec<Arc<Message>>,
    started: Instant,
    resumed: Vec<DecidableCall>,
    iteration: u32,
    calls: u32,
    errors: u32,
}

/// Next step of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextStep {
    GoOn,
    End,
}

impl<'r> Cycle<'r> {
    pub(super) fn new(
        parts: &'r AgentParts,
        mut given: RunInput,
        start: Start,
        updates: Option<mpsc::Sender<Update>>,
    ) -> Self {
        let service_id = given.session.as_ref().and_then(Session::service_id);
        let mut settings = given.settings.clone().unwrap_or_else(|| parts.settings.clone());
        let unchosen_options = ChoiceOptions::of(&settings, &given.options);
        if let Some(choice) = given.choice.as_ref().or(parts.choice.as_ref()) {
            choice.apply(&mut settings, &mut given.options);
        }
        Self {
            settings,
            tool_choice: given.options.tool_choice.clone(),
            unchosen_options,
            parts,
            given,
            chains: start.chains,
            live: start.live,
            guard: start.guard,
            denials: start.denials.into(),
            search: start.search,
            latest_tools: AdvertisedTools::default(),
            updates,
            messages: start.messages,
            stored: 0,
            response: Response { conversation_id: service_id, ..Response::default() },
            is_withdrawn: false,
            listed: Arc::default(),
            is_repaired: false,
            requests: 0,
            known_size: None,
            compaction: None,
            replaced: start.replaced,
            started: parts.clock.now(),
            resumed: start.resumed,
            iteration: 0,
            calls: 0,
            errors: 0,
        }
    }

    /// Returns the response so far, and the last compaction.
    pub(super) fn into_parts(self) -> (Response, Option<CompactionSnapshot>) {
        (self.response, self.compaction)
    }

    /// Runs the loop.
    pub(super) async fn run(&mut self) -> Result<(), RunError> {
        self.settings.check().map_err(|error| RunError::Other(error.into()))?;
        let replaced = std::mem::take(&mut self.replaced);
        if !replaced.is_empty() {
            // What the model once knew still counts, although it sees only a summary.
            self.guard.begins_with(&replaced);
        }
        self.guard.begins_with(&self.messages);
        let resumed = std::mem::take(&mut self.resumed);
        let mut then = match resumed.is_empty() {
            true => NextStep::GoOn,
            false => self.resume(resumed).await?,
        };
        self.messages = arranged(&self.messages, self.response.conversation_id.is_some());
        while then == NextStep::GoOn {
            then = self.iterate().await?;
        }
        Ok(())
    }

    /// Runs a batch that the user has decided about (`LOOP-40`).
    async fn resume(&mut self, batch: Vec<DecidableCall>) -> Result<NextStep, RunError> {
        let calls: Vec<_> = batch
            .iter()
            .map(|decided| MessageContent::FunctionCall(decided.call.clone()))
            .collect();
        let asked = Message::new(Role::Assistant, calls);
        let is_known = Pairing::of(&self.messages)
            .holds_open(&self.messages, batch.iter().map(|decided| &decided.call));
        if !is_known && self.response.conversation_id.is_none() {
            // No history contains the message that the results belong to.
            self.messages.push(Arc::new(asked.clone()));
        }
        let tools = self.live.snapshot();
        let reply = Reply { messages: vec![asked], ..Reply::default() };
        self.run_batch(batch, &tools, &FunctionPlan::of_resumed(), &reply).await
    }

    /// Makes one request and processes the reply.
    async fn iterate(&mut self) -> Result<NextStep, RunError> {
        let tools = self.live.snapshot();
        let plan = self.plan(&tools)?;
        self.compact(&plan).await?;
        let ModelOutcome { mut reply, is_terminated, budget } = self.ask(&plan).await?;
        self.requests += 1;
        if let Some(usage) = reply.usage {
            *self.response.usage.get_or_insert_default() += usage;
        }
        self.response.finish = reply.finish.clone().or(self.response.finish.take());
        self.response.conversation_id =
            reply.conversation_id.clone().or(self.response.conversation_id.take());
        self.guard.replied(&reply);
        if let Err(exceeded) = budget {
            // The reply is paid for, and the caller may have read it while it was streamed.
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
            self.note_reply(&reply);
            return match calls.is_empty() && !is_terminated {
                true => self.answered(&reply).await,
                false => Ok(NextStep::End),
            };
        }
        let gated = self.gated(&calls, &tools, &plan);
        if !gated.is_empty() {
            let (calls, gated, others) = self.separated(calls, gated, &tools);
            self.request_approval(&mut reply, calls, &gated).await?;
            if !others.is_empty() {
                self.run_batch(others, &tools, &plan, &reply).await?;
            }
            return Ok(NextStep::End);
        }
        self.mark_caller_requests(&mut reply, &tools);
        self.append_reply(&reply);
        self.note_reply(&reply);
        let batch = calls.into_iter().map(DecidableCall::unasked).collect();
        self.run_batch(batch, &tools, &plan, &reply).await
    }

    fn has_unknown(&self, calls: &[FunctionCall], tools: &RunTools) -> bool {
        calls
            .iter()
            .any(|call| !self.is_for_caller(call, tools) && self.tool(&call.name, tools).is_none())
    }

    /// Returns whether the caller of the run executes a call (`LOOP-26`).
    pub(super) fn is_for_caller(&self, call: &FunctionCall, tools: &RunTools) -> bool {
        self.settings.caller_tools.contains(&call.name) || tools.is_declared(&call.name)
    }

    /// Returns the calls that the user has to approve.
    fn gated(
        &self,
        calls: &[FunctionCall],
        tools: &RunTools,
        plan: &FunctionPlan,
    ) -> Vec<GatedCall> {
        let session = self.given.session.as_ref();
        let gated = |(index, call): (usize, &FunctionCall)| {
            // The user is not asked about a call that will not run anyway (`CHOICE-14`).
            let found = self.tool(&call.name, tools).filter(|_| plan.allows(&call.name));
            let (toolset, tool) = found.filter(|_| !self.is_for_caller(call, tools))?;
            if self.denial(call, tool, toolset).is_some() {
                return None;
            }
            let objections = self.guard.objections(call, tool, toolset);
            let is_gated = !objections.is_empty()
                || self.parts.approvals.are_needed(call, tool, toolset, session);
            is_gated.then(|| GatedCall { index, origin: toolset.origin(&call.name), objections })
        };
        calls.iter().enumerate().filter_map(gated).collect()
    }

    /// Separates the calls that run at once from the batch that waits for approval. Usually there
    /// are none (`LOOP-55`).
    fn separated(
        &self,
        calls: Vec<FunctionCall>,
        gated: Vec<GatedCall>,
        tools: &RunTools,
    ) -> (Vec<FunctionCall>, Vec<GatedCall>, Vec<DecidableCall>) {
        // A service expects all results at once, and so does the caller who executes a call.
        let waits = !self.parts.approvals.runs_others()
            || self.response.conversation_id.is_some()
            || calls.iter().any(|call| self.is_for_caller(call, tools));
        if waits {
            return (calls, gated, Vec::new());
        }
        let (mut asked, mut others) = (Vec::new(), Vec::new());
        for (index, call) in calls.into_iter().enumerate() {
            match gated.iter().any(|gated| gated.index == index) {
                true => asked.push(call),
                false => others.push(DecidableCall::unasked(call)),
            }
        }
        let gated = gated.into_iter().enumerate();
        let gated = gated.map(|(index, gated)| GatedCall { index, ..gated }).collect();
        (asked, gated, others)
    }

    /// Requests approval of some calls of a batch; none of its calls run (`LOOP-35`).
    async fn request_approval(
        &mut self,
        reply: &mut Reply,
        calls: Vec<FunctionCall>,
        gated: &[GatedCall],
    ) -> Result<(), RunError> {
        let batch = OpenBatch::new(calls, gated).map_err(|error| RunError::Other(error.into()))?;
        if let Some(session) = &self.given.session {
            batch.record(session);
        }
        let requests: Vec<_> =
            batch.waiting().into_iter().map(MessageContent::ApprovalRequest).collect();
        send(self.updates.as_ref(), &Message::new(Role::Assistant, requests.clone())).await;
        if let Some(last) =
            reply.messages.iter_mut().rfind(|message| message.role == Role::Assistant)
        {
            last.contents.extend(requests);
        }
        self.append_reply(reply);
        Ok(())
    }

    /// Requests approval of the calls for which programs wait (`LOOP-71`).
    async fn request_program_approvals(
        &mut self,
        suspended: Vec<SuspendedCall>,
    ) -> Result<(), RunError> {
        let Some(session) = self.given.session.as_ref().filter(|_| !suspended.is_empty()) else {
            return Ok(());
        };
        let requests = OpenBatch::suspend(session, suspended);
        let requests = requests.map_err(|error| RunError::Other(error.into()))?;
        let requests = requests.into_iter().map(MessageContent::ApprovalRequest).collect();
        let message = Arc::new(Message::new(Role::Assistant, requests));
        send(self.updates.as_ref(), &message).await;
        self.append(message);
        Ok(())
    }

    fn mark_caller_requests(&self, reply: &mut Reply, tools: &RunTools) {
        for content in reply.messages.iter_mut().flat_map(|message| &mut message.contents) {
            if let MessageContent::FunctionCall(call) = content
                && self.is_for_caller(call, tools)
            {
                call.is_for_caller = true;
            }
        }
    }

    /// Removes the calls from a reply that may not contain any (`LOOP-23`).
    async fn drop_calls(&mut self, reply: &mut Reply) {
        for message in &mut reply.messages {
            message.contents.retain(|content| content.as_call().is_none());
        }
        reply.messages.retain(|message| !message.contents.is_empty());
        let is_visible = |content: &MessageContent| match content {
            MessageContent::Text(text) => !text.text.is_empty(),
            MessageContent::Reasoning(_) => false,
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

    /// Remembers the tokens of a reply that was appended, and that the service has the messages up
    /// to it if it keeps the conversation.
    fn note_reply(&mut self, reply: &Reply) {
        self.note_size(reply);
        if reply.conversation_id.is_some() {
            self.stored = self.messages.len();
        }
    }

    pub(super) fn append(&mut self, message: Arc<Message>) {
        self.messages.push(Arc::clone(&message));
        self.response.messages.push(message);
    }

    /// Runs a batch and ends the iteration, in the order of `LOOP-34`.
    async fn run_batch(
        &mut self,
        decided: Vec<DecidableCall>,
        tools: &RunTools,
        plan: &FunctionPlan,
        reply: &Reply,
    ) -> Result<NextStep, RunError> {
        let has_caller_requests =
            decided.iter().any(|decided| self.is_for_caller(&decided.call, tools));
        let batch = self.run_calls(decided, tools, plan).await;
        let Batch { results, failures, is_terminated, is_out_of_time, started, suspended, error } =
            batch;
        for used in [self.guard.take_usage(), self.live.take_usage()].into_iter().flatten() {
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
        let is_suspended = !suspended.is_empty();
        self.request_program_approvals(suspended).await?;
        if !has_results {
            return Ok(NextStep::End);
        }
        let is_stopped = self.completed(reply).await?;
        self.calls = self.calls.saturating_add(started);
        if is_stopped || is_terminated || has_caller_requests || is_suspended {
            return Ok(NextStep::End);
        }
        self.apply_error_policy(failures)?;
        let reached = is_out_of_time.then_some(ReachedLimit::Duration);
        Ok(self.next_iteration(reached))
    }

    /// Applies the limits before another request.
    pub(super) fn next_iteration(&mut self, reached: Option<ReachedLimit>) -> NextStep {
        if let Some(reached) = reached.or_else(|| self.reached_limit()) {
            self.withdraw_tools(reached);
        }
        if matches!(self.tool_choice, Some(ToolMode::Required(_))) {
            self.tool_choice = None;
        }
        NextStep::GoOn
    }

    /// Counts an iteration and calls the hook. Returns whether it ends the run (`LOOP-32`).
    pub(super) async fn completed(&mut self, reply: &Reply) -> Result<bool, RunError> {
        let iteration = self.iteration;
        self.iteration = iteration.saturating_add(1);
        let Some(hook) = self.settings.iteration_completed.clone() else { return Ok(false) };
        let before = self.messages.len();
        let mut context = IterationContext {
            iteration,
            total_usage: self.response.usage,
            messages: &mut self.messages,
            response: reply,
            cancellation: self.given.context.cancellation.clone(),
            is_streaming: self.updates.is_some(),
            terminate: false,
        };
        hook.completed(&mut context).await.map_err(RunError::Other)?;
        let is_stopped = context.terminate;
        if is_stopped {
            let agent = &self.parts.name;
            tracing::info!(agent, iteration, "the iteration hook ended the run");
        }
        self.stored = self.stored.min(self.messages.len());
        if self.messages.len() != before {
            self.known_size = None;
        }
        Ok(is_stopped)
    }

    /// Counts iterations with errors, and applies the policy if too many were consecutive
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
            ErrorLimitAction::Answer => self.withdraw_tools(ReachedLimit::ConsecutiveErrors),
            ErrorLimitAction::Raise => return Err(RunError::Calls(failures)),
        }
        Ok(())
    }

    /// Lets the model answer without tools from now on.
    fn withdraw_tools(&mut self, reached: ReachedLimit) {
        if !std::mem::replace(&mut self.is_withdrawn, true)
            && let Some(observer) = &self.settings.limit_observer
        {
            observer(reached);
        }
    }

    /// Returns the limit of `LOOP-20` to `LOOP-22` that is reached.
    fn reached_limit(&self) -> Option<ReachedLimit> {
        let settings = &self.settings;
        if self.iteration >= settings.max_iterations {
            Some(ReachedLimit::Iterations)
        } else if settings.max_function_calls.is_some_and(|max| self.calls >= max) {
            Some(ReachedLimit::FunctionCalls)
        } else {
            self.is_out_of_time().then_some(ReachedLimit::Duration)
        }
    }

    /// Returns whether `max_duration` has passed.
    pub(super) fn is_out_of_time(&self) -> bool {
        let passed = self.parts.clock.now().saturating_duration_since(self.started);
        self.settings.max_duration.is_some_and(|max| passed >= max)
    }
}

/// Returns the calls of a reply that the service has not made itself (`LOOP-6`).
fn unanswered(reply: &Reply) -> Vec<FunctionCall> {
    let answered: Vec<_> =
        reply.messages.iter().flat_map(Message::results).map(|result| &result.call_id).collect();
    let calls = reply.messages.iter().flat_map(Message::calls);
    calls.filter(|call| !answered.contains(&&call.call_id)).cloned().collect()
}

/// Sends a message that does not come from the model to the reader of the run (`LOOP-29`).
pub(super) async fn send(updates: Option<&mpsc::Sender<Update>>, message: &Message) {
    let Some(updates) = updates else { return };
    let reply = Reply { messages: vec![message.clone()], ..Reply::default() };
    for update in reply.into_updates().into_iter().filter(|update| !update.deltas.is_empty()) {
        // If the reader is gone, the run is about to be dropped.
        let _ = updates.send(update).await;
    }
}
