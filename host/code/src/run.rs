//! One run of a program: the calls that it makes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use cofferdam_files::{Budget, Transaction};
use cofferdam_tool::ask::{Asker, QuestionKind};
use cofferdam_tool::invoke::{ApprovalNeed, InnerCall, InnerCalls, OuterCall, SuspendedProgram};
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Outcome, Output, ToolCall, ToolFailure, ToolName,
    ToolSource,
};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, RwLock};

use crate::approval::{ApprovalRequest, Decision, ask};
use crate::builtins;
use crate::ledger::record::UnkeepableLedger;
use crate::ledger::{CompletedCall, Ledger, LedgerKey, PendingCall, record};
use crate::memory::RunValues;
use crate::mode::ModeState;
use crate::question;
use crate::types::Type;

/// Maximum number of calls that an error lists.
const LISTED_CALLS_MAX: usize = 32;

/// A run of a program. The host sends every call of the program through it.
pub(crate) struct CodeRun {
    mode: Arc<ModeState>,
    /// Checks of the caller, such as those of a label policy.
    checks: Option<Arc<dyn InnerCalls>>,
    asker: Option<Arc<dyn Asker>>,
    key: LedgerKey,
    pub(crate) seed: u64,
    pub(crate) now: u64,
    files: Transaction,
    /// Budget of the file changes.
    budget: Budget,
    /// Exists until the run ends or is dropped.
    in_progress: Weak<()>,
    /// Held for reading by running calls, and for writing while a question is asked, so that no
    /// call is interrupted if the run ends with the question.
    running: RwLock<()>,
    /// True if a question ends the run, and the client makes the program run again.
    ends_with_questions: bool,
    /// True if a ledger stays in memory, because the client may run the program again.
    may_run_again: bool,
    /// True if the caller can keep the program until a user decides.
    may_be_suspended: bool,
    /// Call of the earlier run that a user has decided about since.
    decided: Option<(PendingCall, Decision)>,
    state: Mutex<RunState>,
    /// Notified when the run diverges from the earlier one, or is suspended.
    stopped: Notify,
}

/// Values of a run that continues no earlier one, and the sign that it goes on.
pub(crate) struct NewRun {
    pub(crate) seed: u64,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    /// Exists until the run ends or is dropped.
    pub(crate) in_progress: Weak<()>,
}

/// State that a run continues.
pub(crate) struct EarlierRun {
    pub(crate) ledger: Ledger,
    /// Call that a user has decided about, with the decision.
    pub(crate) decided: Option<(PendingCall, Decision)>,
}

#[derive(Default)]
struct RunState {
    values: RunValues,
    made: Vec<MadeCall>,
    /// Calls of the earlier run that this one continues.
    earlier: HashMap<u64, CompletedCall>,
    /// Numbers of the calls of the earlier run that this one has not repeated yet.
    unrepeated: BTreeSet<u64>,
    /// All completed calls, if the run may have to be continued.
    completed: HashMap<u64, CompletedCall>,
    /// Message about the reason why the run ends before the program does.
    stop: Option<String>,
}

/// A call of a program, for the model.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MadeCall {
    tool: ToolName,
    ok: bool,
}

/// End of a run, apart from the result of the program.
pub(crate) struct RunEnd {
    /// Values of the session with the changes of the run.
    pub(crate) values: RunValues,
    /// Calls in the order of their ends; at most 32.
    pub(crate) calls: Vec<MadeCall>,
    /// Number of all calls.
    pub(crate) count: usize,
}

impl CodeRun {
    /// Creates a run, which continues an earlier one of the same program if that was suspended.
    pub(crate) fn new(
        mode: Arc<ModeState>,
        context: &CallContext,
        key: LedgerKey,
        earlier: Option<EarlierRun>,
        fresh: NewRun,
    ) -> Self {
        let (earlier, decided) = match earlier {
            Some(EarlierRun { ledger, decided }) => (Some(ledger), decided),
            None => (None, None),
        };
        let has_outer = context.outer.is_some();
        let outer = context.outer.as_ref();
        let outer = outer.and_then(|outer| outer.files.downcast_ref::<Transaction>());
        let NewRun { seed, now, in_progress } = fresh;
        let ledger = earlier
            .unwrap_or_else(|| Ledger::new((seed, now), mode.past.memory.of(&key.owner), outer));
        let policy = &mode.policy;
        let may_ask = mode.has_approvals || policy.rules.is_some() || context.inner_calls.is_some();
        let ledger_bytes_max =
            context.inner_calls.as_ref().map_or(0, |checks| checks.ledger_bytes_max());
        let waiting = decided.iter().map(|(call, _)| call.number);
        let unrepeated = ledger.calls.keys().copied().chain(waiting).collect();
        let asker = context.asker.as_ref();
        Self {
            ends_with_questions: asker.is_some_and(|asker| asker.earlier_questions().is_some()),
            may_run_again: may_ask && policy.approver.is_none() && asker.is_some(),
            may_be_suspended: ledger_bytes_max > 0
                && policy.seal.is_some()
                && !has_outer
                && !context.file_effects.is_dry_run,
            decided,
            mode,
            checks: context.inner_calls.clone(),
            asker: context.asker.clone(),
            key,
            seed: ledger.seed,
            now: ledger.now,
            files: ledger.files,
            budget: ledger.budget,
            in_progress,
            running: RwLock::new(()),
            state: Mutex::new(RunState {
                values: RunValues::new(ledger.values),
                completed: ledger.calls.clone(),
                earlier: ledger.calls,
                unrepeated,
                ..RunState::default()
            }),
            stopped: Notify::new(),
        }
    }

    /// Waits until a call differs from that of the earlier run, or the program is suspended, and
    /// returns a message about it.
    pub(crate) async fn stopped(&self) -> String {
        loop {
            let notified = self.stopped.notified();
            if let Some(text) = self.state.lock().stop.clone() {
                return text;
            }
            notified.await;
        }
    }

    /// Returns a message if the result of the program does not count: the run was to stop, or it
    /// has not repeated a call of the earlier run.
    pub(crate) fn objection(&self) -> Option<String> {
        let state = self.state.lock();
        if let Some(message) = &state.stop {
            return Some(message.clone());
        }
        let number = state.unrepeated.first()?;
        Some(format!(
            "the program was run again after an approval and ended without its call {number}; no \
             change was kept"
        ))
    }

    /// Returns the file changes of the run.
    pub(crate) fn files(&self) -> &Transaction {
        &self.files
    }

    /// Ends the run. No other run continues it from then on, unless it was canceled while it waited
    /// for a client that answers in a new request: a gateway cancels such a run at its worker.
    pub(crate) fn end(&self, outcome: &Outcome) -> RunEnd {
        if !(self.ends_with_questions && matches!(outcome, Outcome::Cancelled)) {
            self.mode.past.suspended.forget(&self.in_progress);
        }
        let label = self.checks.as_ref().and_then(|checks| checks.label());
        let mut state = self.state.lock();
        let mut values = std::mem::take(&mut state.values);
        values.add_label(label);
        let count = state.made.len();
        let mut calls = std::mem::take(&mut state.made);
        calls.truncate(LISTED_CALLS_MAX);
        RunEnd { values, calls, count }
    }

    /// Returns whether the data of the program has a label.
    fn is_labeled(&self) -> bool {
        self.checks.as_ref().is_some_and(|checks| checks.label().is_some())
    }

    /// Returns the types of results that the program may see. The names in them come from results,
    /// whose labels a type does not have, so that a program with labels sees none.
    fn observed(&self) -> BTreeMap<String, Type> {
        if self.is_labeled() { BTreeMap::new() } else { self.mode.past.observed() }
    }

    /// Runs a call of the functions that every program has.
    fn builtin(&self, call: &ToolCall<'_>, context: &CallContext) -> Completion {
        let arguments = call.arguments.value();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let mut label = None;
        let answer = match call.tool.name.as_str() {
            builtins::SEARCH => Ok(self.mode.catalog.search(text("query"), &self.observed())),
            builtins::DESCRIBE => self.mode.catalog.describe(text("name"), &self.observed()),
            builtins::STORE => {
                let value = arguments.get("value").cloned().unwrap_or_default();
                self.state.lock().values.store(text("key"), value).map(|()| Value::Null)
            }
            _ => {
                let state = self.state.lock();
                label = state.values.label().cloned();
                Ok(state.values.load(text("key")))
            }
        };
        let outcome = match answer {
            Ok(value) => Outcome::Ok(Output::Value(value)),
            Err(message) => Outcome::Failure(ToolFailure::new(message)),
        };
        let mut completion = Completion::ended(outcome, context);
        completion.record.tool = Some(call.tool.name.clone());
        completion.record.label = label;
        completion
    }

    /// Returns the result that a call had in the earlier run, if it was made there. A call that
    /// differs from it ends the run.
    async fn replayed(
        &self,
        number: u64,
        tool: &ToolName,
        arguments: &Map<String, Value>,
    ) -> Option<Completion> {
        let earlier = self.state.lock().earlier.get(&number).cloned();
        let waiting = self.decided.as_ref().map(|(call, _)| call);
        let waiting = waiting.filter(|call| call.number == number);
        let (earlier_tool, earlier_arguments) = match (&earlier, waiting) {
            (Some(call), _) => (&call.tool, &call.arguments),
            (None, Some(call)) => (&call.tool, &call.arguments),
            (None, None) => return None,
        };
        if earlier_tool == tool && earlier_arguments == arguments {
            self.state.lock().unrepeated.remove(&number);
            return earlier.map(|call| call.completion);
        }
        self.stop(format!(
            "the program was run again after an approval, and its call {number} differs: '{tool}' \
             instead of '{earlier_tool}', or other arguments; nothing was called again and no \
             change was kept"
        ));
        // The run ends here; the program gets no answer.
        std::future::pending().await
    }

    /// Ends the run with a message. From then on, no call begins.
    fn stop(&self, message: String) {
        self.state.lock().stop = Some(message);
        self.stopped.notify_one();
    }

    /// Waits forever if the run was to stop. Calls that have waited for the lock check this,
    /// because they are dropped one after another.
    async fn unless_stopped(&self) {
        let is_stopped = self.state.lock().stop.is_some();
        if is_stopped {
            std::future::pending().await
        }
    }

    /// Returns whether a call needs approval: by the rules of the caller, or else of the host,
    /// which consider what the source says, or else by what the source says.
    fn approval(&self, call: &InnerCall<'_>, arguments: &Map<String, Value>) -> ApprovalNeed {
        let of_caller = self.checks.as_ref().and_then(|checks| checks.approval(call, arguments));
        let of_host = || Some(self.mode.policy.rules.as_ref()?.approval(call, arguments));
        of_caller.or_else(of_host).unwrap_or_else(|| {
            match call.source.needs_approval_for(&call.tool.name, arguments) {
                true => ApprovalNeed::Needed,
                false => ApprovalNeed::NotNeeded,
            }
        })
    }

    /// Asks for the approval of a call. No other call runs meanwhile, and the results of those that
    /// have ended are kept until there is an answer. If no user can be asked, the caller of the
    /// program may keep it, and the run ends.
    async fn approve(
        &self,
        number: u64,
        request: ApprovalRequest<'_>,
        source: &dyn ToolSource,
    ) -> Decision {
        let decided = self.decided.as_ref().filter(|(call, _)| call.number == number);
        if let Some((_, decision)) = decided {
            return decision.clone();
        }
        let _no_other_call = self.running.write().await;
        self.unless_stopped().await;
        let mut open = OpenQuestion(Some(self));
        let suspended = &self.mode.past.suspended;
        let can_ask = |asker: &Arc<dyn Asker>| asker.can_ask(QuestionKind::Elicitation);
        if self.may_run_again && self.asker.as_ref().is_some_and(can_ask) {
            let run = self.in_progress.clone();
            let kept = suspended.keep(self.key.clone(), run, self.ledger());
            // A user who answers while the run waits needs no ledger.
            if let (true, Err(error)) = (self.ends_with_questions, kept) {
                open.close();
                let tool = &request.tool.name;
                let reason = format!("the call to '{tool}' needs a user's approval");
                return cannot_wait(tool, &reason, &error);
            }
        }
        let name = question::approval_name(&self.key.code, number);
        let decision =
            ask(self.mode.policy.approver.as_ref(), self.asker.as_ref(), name, request).await;
        suspended.forget(&self.in_progress);
        let reason = match decision {
            Decision::Unavailable(reason) if self.may_be_suspended => reason,
            decision => {
                open.close();
                return decision;
            }
        };
        match self.suspend(number, request, source).await {
            Ok(()) => {
                let tool = &request.tool.name;
                self.stop(format!("the program waits for the approval of a call to '{tool}'"));
                // The run ends here, while no other call can begin.
                std::future::pending().await
            }
            Err(error) => {
                open.close();
                cannot_wait(&request.tool.name, &reason, &error)
            }
        }
    }

    /// Gives the ledger of the run to the caller of the program, which keeps it.
    async fn suspend(
        &self,
        number: u64,
        request: ApprovalRequest<'_>,
        source: &dyn ToolSource,
    ) -> Result<(), String> {
        let (Some(checks), Some(seal)) = (&self.checks, &self.mode.policy.seal) else {
            return Err("nothing keeps it".to_owned());
        };
        let (tool, arguments) = (request.tool.name.clone(), request.arguments.clone());
        let pending = PendingCall { number, tool, arguments };
        let (tools, stores) = (self.mode.digests(), self.mode.stores());
        let ledger = record::write(&self.key, &tools, &self.ledger(), &pending, &stores).await;
        let ledger = ledger.map_err(|error| error.to_string())?;
        let sealed = seal.seal(&ledger).map_err(|error| error.to_string())?;
        let bytes_max = checks.ledger_bytes_max();
        let PendingCall { tool, arguments, .. } = pending;
        let is_kept = sealed.len() <= bytes_max
            && checks.suspend(SuspendedProgram {
                call_id: request.call_id.to_owned(),
                origin: source.origin(&tool),
                tool,
                arguments,
                ledger: sealed,
            });
        is_kept.then_some(()).ok_or_else(|| UnkeepableLedger::NoSpace.to_string())
    }

    /// Adds a call that has ended; with its `arguments` if the run may have to be continued.
    fn complete(
        &self,
        number: u64,
        tool: ToolName,
        arguments: Option<Map<String, Value>>,
        completion: &Completion,
    ) {
        let ok = matches!(completion.outcome, Outcome::Ok(_));
        let mut state = self.state.lock();
        if let Some(arguments) = arguments {
            let completion = completion.clone();
            let call = CompletedCall { tool: tool.clone(), arguments, completion };
            state.completed.insert(number, call);
        }
        state.made.push(MadeCall { tool, ok });
    }

    /// Returns what another run needs to continue this one.
    fn ledger(&self) -> Ledger {
        let state = self.state.lock();
        Ledger {
            seed: self.seed,
            now: self.now,
            values: state.values.first().clone(),
            calls: state.completed.clone(),
            files: self.files.clone(),
            budget: self.budget.clone(),
        }
    }

    async fn run_call(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        // The calls of the called tool are its own. File changes belong to the run.
        let outer = context
            .outer
            .as_ref()
            .map(|outer| OuterCall { files: Arc::new(self.files.clone()), ..outer.clone() });
        let inner_calls = self.checks.clone();
        let context = CallContext {
            inner_calls,
            outer,
            idempotency_key: None,
            handover: None,
            ..context.clone()
        };
        match &self.checks {
            Some(checks) => checks.invoke(call, source, &context).await,
            None => source.invoke(call, &context).await,
        }
    }
}

/// Returns the decision about a call for whose approval the program cannot wait.
fn cannot_wait(tool: &ToolName, reason: &str, error: &impl std::fmt::Display) -> Decision {
    tracing::warn!(%tool, "a program cannot wait for an approval: {error}");
    Decision::Rejected(format!("{reason}; the program cannot wait for one, because {error}"))
}

/// A question without an answer. If it is dropped, the run has ended with it, and no other call may
/// begin.
struct OpenQuestion<'r>(Option<&'r CodeRun>);

impl OpenQuestion<'_> {
    fn close(&mut self) {
        self.0 = None;
    }
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if let Some(run) = self.0 {
            run.state.lock().stop.get_or_insert_with(|| "the program was stopped".to_owned());
        }
    }
}

#[async_trait]
impl InnerCalls for CodeRun {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        match &self.checks {
            Some(checks) if !self.mode.is_builtin(call.source) => checks.admit(call),
            _ => Ok(()),
        }
    }

    fn asks_for_approval(&self) -> bool {
        true
    }

    async fn invoke(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        if self.mode.is_builtin(source) {
            return self.builtin(&call, context);
        }
        let number = context.call_id.rsplit('.').next().and_then(|number| number.parse().ok());
        let number: u64 = number.unwrap_or_default();
        let tool = call.tool.name.clone();
        if let Some(completion) = self.replayed(number, &tool, call.arguments.value()).await {
            let ok = matches!(completion.outcome, Outcome::Ok(_));
            self.state.lock().made.push(MadeCall { tool, ok });
            return completion;
        }
        let outer_call_id = context.outer.as_ref().map(|outer| outer.call_id.as_str());
        let asked = InnerCall { call_id: &context.call_id, outer_call_id, tool: call.tool, source };
        let arguments = call.arguments.value();
        let decision = match self.approval(&asked, arguments) {
            ApprovalNeed::NotNeeded => Decision::Approved,
            ApprovalNeed::Needed => {
                let request =
                    ApprovalRequest { tool: call.tool, arguments, call_id: &context.call_id };
                self.approve(number, request, source).await
            }
            ApprovalNeed::Denied => {
                Decision::Rejected(format!("a rule of the user denies this call to '{tool}'"))
            }
        };
        let keeps_results = self.may_run_again || self.may_be_suspended;
        let arguments = keeps_results.then(|| arguments.clone());
        if let Decision::Rejected(message) | Decision::Unavailable(message) = decision {
            let mut completion =
                Completion::ended(Outcome::Failure(ToolFailure::new(message)), context);
            completion.record.tool = Some(tool.clone());
            completion.record.is_denied = true;
            self.complete(number, tool, arguments, &completion);
            return completion;
        }
        let _running = self.running.read().await;
        self.unless_stopped().await;
        let completion = self.run_call(call, source, context).await;
        if let (Outcome::Ok(Output::Value(value)), false) = (&completion.outcome, self.is_labeled())
        {
            self.mode.observe(&tool, value);
        }
        self.complete(number, tool, arguments, &completion);
        completion
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        if let Some(checks) = &self.checks {
            checks.ended(call, record);
        }
    }
}
