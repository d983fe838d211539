//! Function calls of one reply (`LOOP-12` to `LOOP-15`, `LOOP-24` to `LOOP-28`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::ask::Asker;
use cofferdam_tool::invoke::InnerCalls;
use cofferdam_tool::{
    CallContext, Completion, Content as ToolContent, Outcome, Output, RefusedCall, ToolDefinition,
    ToolError, Toolset,
};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::cycle::Cycle;
use super::plan::FunctionPlan;
use crate::approvals::{CallDecision, DecidableCall, SuspendedCall};
use crate::choice;
use crate::guard::{BatchGuard, CallGuard};
use crate::live::RunTools;
use crate::middleware::{
    CallArguments, FunctionContext, FunctionError, FunctionSignal, FunctionValue, Innermost,
    Middleware, Next,
};
use crate::run::inner_calls::{LedgerRoom, RunInnerCalls, Suspension};
use crate::{CallFailure, Data, FunctionCall, FunctionResult, MessageContent, RunError};

/// Time for tools to end by themselves when a run is canceled, so that what they did is recorded.
const GRACE: Duration = Duration::from_secs(2);

/// Result of a call that was not started in time (`LOOP-22`).
const DEFERRED: &str =
    "Error: Function invocation limit reached before the deferred tool could run.";

/// Result of a call that was approved when the tool of this name had another origin.
const ANOTHER_ORIGIN: &str =
    "Error: The tool has changed since the call was approved. Call it again if it is still needed.";

/// Result of a call that a rule denies (`LOOP-52`).
const DENIED: &str = "Error: A rule does not allow this call.";

/// Result of a call that needs approval although the user was not asked about it (`LOOP-60`).
const UNASKED: &str = "Error: The call needs approval. Call it again to ask for it.";

/// Result of a batch.
#[derive(Default)]
pub(super) struct Batch {
    /// Results in call order.
    pub(super) results: Vec<MessageContent>,
    /// Failures in call order (`LOOP-17`).
    pub(super) failures: Vec<CallFailure>,
    /// True if the loop ends here (`LOOP-25`).
    pub(super) is_terminated: bool,
    /// True if calls were skipped because the time was up.
    pub(super) is_out_of_time: bool,
    /// Number of calls that were started.
    pub(super) started: u32,
    /// Calls whose programs wait for an approval, in call order. They have no results.
    pub(super) suspended: Vec<SuspendedCall>,
    /// Error that ends the run. The results are then those of the calls that had completed.
    pub(super) error: Option<RunError>,
}

/// Result of one call.
struct CallOutcome {
    result: FunctionResult,
    failure: Option<CallFailure>,
    is_terminated: bool,
    is_deferred: bool,
    /// The call without a result, if its program waits for an approval.
    suspended: Option<SuspendedCall>,
}

impl Cycle<'_> {
    /// Runs the calls of one reply, except those that the caller executes.
    pub(super) async fn run_calls(
        &self,
        calls: Vec<DecidableCall>,
        tools: &RunTools,
        plan: &FunctionPlan,
    ) -> Batch {
        let guard = &*Arc::clone(&self.guard).begin_batch();
        let room = self.ledger_room(&calls, tools);
        let room = room.as_ref();
        let ours = calls.into_iter().filter(|decided| !self.is_for_caller(&decided.call, tools));
        let mut done = Vec::new();
        if self.settings.allow_concurrent_invocation {
            done = join_all(ours.map(|decided| self.run_call(decided, tools, plan, guard, room)))
                .await;
        } else {
            for decided in ours {
                let one = match self.is_out_of_time() {
                    true => Ok(CallOutcome::deferred(&decided.call)),
                    false => self.run_call(decided, tools, plan, guard, room).await,
                };
                let is_over = one.is_err();
                done.push(one);
                if is_over {
                    break;
                }
            }
        }
        let mut batch = Batch { is_terminated: self.live.take_termination(), ..Batch::default() };
        for one in done {
            match one {
                Ok(done) => batch.add(done),
                Err(error) => batch.error = batch.error.or(Some(error)),
            }
        }
        batch
    }

    /// Returns the room for programs of a batch that wait for approvals, if the session can keep
    /// them. A service expects all results at once, and so does the caller who executes a call.
    fn ledger_room(&self, calls: &[DecidableCall], tools: &RunTools) -> Option<Arc<LedgerRoom>> {
        let is_possible = self.parts.approvals.suspends_programs()
            && self.given.session.is_some()
            && self.response.conversation_id.is_none()
            && !calls.iter().any(|decided| self.is_for_caller(&decided.call, tools));
        is_possible.then(LedgerRoom::new)
    }

    /// Finds a tool and its toolset. Advertised tools take precedence (`LOOP-11`).
    pub(super) fn tool<'t>(
        &'t self,
        name: &str,
        tools: &'t RunTools,
    ) -> Option<(&'t Toolset, &'t Arc<ToolDefinition>)> {
        let toolsets = [tools.toolset(), &self.settings.additional_tools];
        toolsets.into_iter().find_map(|toolset| Some((toolset, toolset.definition(name).ok()?)))
    }

    /// Returns the message for the model about a call that may not run (`LOOP-52`, `LOOP-60`).
    pub(super) fn denial(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
    ) -> Option<String> {
        if self.parts.approvals.deny(call, tool, toolset) {
            return Some(DENIED.to_owned());
        }
        self.denials.iter().find_map(|denial| denial(tool))
    }

    /// Runs one call. The guard receives its result, whatever produced it.
    async fn run_call(
        &self,
        decided: DecidableCall,
        tools: &RunTools,
        plan: &FunctionPlan,
        guard: &dyn BatchGuard,
        room: Option<&Arc<LedgerRoom>>,
    ) -> Result<CallOutcome, RunError> {
        let waived = match &decided.decision {
            Some(CallDecision::ApprovedDespite(objections)) => objections.clone(),
            _ => Vec::new(),
        };
        let toolset = self.tool(&decided.call.name, tools).map(|(toolset, _)| toolset);
        let guard = guard.begin_call(toolset, waived);
        let mut done = self.run_decided(decided, tools, plan, &*guard, room).await?;
        if done.suspended.is_none() {
            guard.finish(&mut done.result);
        }
        Ok(done)
    }

    async fn run_decided(
        &self,
        DecidableCall { call, decision, origin, resumed }: DecidableCall,
        tools: &RunTools,
        plan: &FunctionPlan,
        guard: &dyn CallGuard,
        room: Option<&Arc<LedgerRoom>>,
    ) -> Result<CallOutcome, RunError> {
        if let Some(CallDecision::Refused(reason)) = decision {
            return Ok(CallOutcome::refused(&call, reason.as_deref()));
        }
        let found = self.tool(&call.name, tools);
        let Some((toolset, definition)) = found else {
            return Ok(CallOutcome::failed(
                &call,
                CallFailure::Unknown { name: call.name.clone() },
                false,
            ));
        };
        // The user approved a call of the tool that had this name at that time.
        if origin.is_some() && origin != toolset.origin(&call.name) {
            let failure = CallFailure::Shown(ANOTHER_ORIGIN.to_owned());
            return Ok(CallOutcome::failed(&call, failure, false));
        }
        if !plan.allows(&call.name) {
            return Ok(CallOutcome::failed(&call, CallFailure::NotAdvertised, false));
        }
        if let Some(denial) = self.denial(&call, definition, toolset) {
            return Ok(CallOutcome::new(&call, denial));
        }
        let session = self.given.session.as_ref();
        let needs_approval =
            || self.parts.approvals.are_needed(&call, definition, toolset, session);
        if decision.is_none() && needs_approval() {
            // The call was denied or not advertised when the user would have been asked.
            return Ok(CallOutcome::new(&call, UNASKED));
        }
        let mut context = FunctionContext {
            tool: Arc::clone(definition),
            arguments: CallArguments::Text(call.arguments.clone()),
            call_id: call.call_id.clone(),
            session: self.given.session.clone(),
            host: self.given.context.host.clone(),
            tools: self.live.clone(),
            cancellation: self.given.context.cancellation.clone(),
            record: None,
            result: None,
        };
        let suspension = room.map(Suspension::new);
        let inner_calls: Arc<dyn InnerCalls> = Arc::new(RunInnerCalls {
            denials: Arc::clone(&self.denials),
            guard: guard.inner_calls(),
            approvals: Arc::clone(&self.parts.approvals),
            session: self.given.session.clone(),
            suspension: suspension.clone(),
            resumed,
        });
        let call_context =
            CallContext { inner_calls: Some(inner_calls), ..self.call_context(&call) };
        let tool = CallableTool { toolset, context: call_context };
        let guarded = GuardedInvoker { guard, invoker: self.settings.invoker.as_slice(), tool };
        let ended = Next::new(&self.chains.function, &guarded).run(&mut context).await;
        let is_over =
            matches!(ended, Err(FunctionSignal::FailClosed(_) | FunctionSignal::Cancelled));
        let suspended = suspension.and_then(|suspension| suspension.take()).filter(|_| !is_over);
        if let Some(program) = suspended {
            return Ok(CallOutcome::suspended(SuspendedCall { call, decision, program }));
        }
        let result = context.result.take();
        match ended {
            Ok(()) => Ok(CallOutcome::with(&call, result, false)),
            Err(FunctionSignal::Terminate(carried)) => {
                Ok(CallOutcome::with(&call, carried.or(result), true))
            }
            Err(FunctionSignal::FailClosed(error)) => Err(RunError::FailClosed(error)),
            Err(FunctionSignal::Cancelled) => Err(RunError::Cancelled),
            Err(FunctionSignal::Error(error)) => {
                let is_detailed =
                    self.settings.include_detailed_errors && !self.guard.hides_details();
                Ok(CallOutcome::failed(&call, error.into(), is_detailed))
            }
        }
    }

    fn call_context(&self, call: &FunctionCall) -> CallContext {
        let given = &self.given.context;
        let of_call = |asker: &Arc<dyn Asker>| {
            asker.for_call(&call.name, &call.arguments).unwrap_or_else(|| Arc::clone(asker))
        };
        CallContext {
            session: self.given.session.as_ref().map(|session| session.id().to_owned()),
            cancellation: given.cancellation.clone(),
            file_effects: given.file_effects,
            progress: given.progress.clone(),
            asker: given.asker.as_ref().map(of_call),
            log: given.log.clone(),
            host: given.host.clone(),
            trace: given.trace,
            run: Some(Arc::new(self.live.clone())),
            ..CallContext::new(call.call_id.clone())
        }
    }
}

/// Innermost part of the function middleware: the guard, and inside of it the tool, or the invoker
/// instead if there is one (`LOOP-27`).
struct GuardedInvoker<'c> {
    guard: &'c dyn CallGuard,
    invoker: &'c [Arc<dyn Middleware<FunctionContext>>],
    tool: CallableTool<'c>,
}

#[async_trait]
impl Innermost<FunctionContext> for GuardedInvoker<'_> {
    async fn run(&self, context: &mut FunctionContext) -> Result<(), FunctionSignal> {
        self.guard.process(context, Next::new(self.invoker, &self.tool)).await
    }
}

/// A tool that is ready to be called.
struct CallableTool<'c> {
    toolset: &'c Toolset,
    context: CallContext,
}

#[async_trait]
impl Innermost<FunctionContext> for CallableTool<'_> {
    async fn run(&self, context: &mut FunctionContext) -> Result<(), FunctionSignal> {
        let arguments = context.arguments.to_text();
        let arguments = Some(arguments.as_bytes()).filter(|arguments| !arguments.is_empty());
        let name = context.tool.name.as_str();
        let called = tokio::select! {
            biased;
            called = choice::nested(self.toolset.call(name, arguments, &self.context)) => called,
            () = long_cancelled(&self.context.cancellation) => return Err(FunctionSignal::Cancelled),
        };
        let Completion { outcome, record } = called.map_err(|refused| match refused {
            RefusedCall::InvalidArguments(invalid) => FunctionError::InvalidArguments(invalid),
            other => FunctionError::UsedUp(other),
        })?;
        context.record = Some(record);
        context.result = Some(match outcome {
            Outcome::Ok(output) => FunctionValue::Output(output),
            Outcome::Failure(failure) => return Err(FunctionError::Failure(failure).into()),
            Outcome::Error(error) => return Err(FunctionError::Tool(error).into()),
            _ => return Err(FunctionSignal::Cancelled),
        });
        Ok(())
    }
}

impl Batch {
    fn add(&mut self, done: CallOutcome) {
        self.is_terminated |= done.is_terminated;
        self.is_out_of_time |= done.is_deferred;
        self.started = self.started.saturating_add(u32::from(!done.is_deferred));
        if let Some(suspended) = done.suspended {
            self.suspended.push(suspended);
            return;
        }
        self.results.push(MessageContent::FunctionResult(done.result));
        self.failures.extend(done.failure);
    }
}

/// Waits until the run is canceled and its work has had time to end.
pub(super) async fn long_cancelled(cancellation: &CancellationToken) {
    cancellation.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

impl CallOutcome {
    fn new(call: &FunctionCall, text: impl Into<String>) -> Self {
        let result = FunctionResult {
            call_id: call.call_id.clone(),
            result: text.into(),
            ..FunctionResult::default()
        };
        Self { result, failure: None, is_terminated: false, is_deferred: false, suspended: None }
    }

    fn with(call: &FunctionCall, value: Option<FunctionValue>, is_terminated: bool) -> Self {
        let mut done = Self { is_terminated, ..Self::new(call, "") };
        match value {
            None => {}
            Some(FunctionValue::Finished(result)) => {
                done.failure = result.is_error.then(|| CallFailure::Shown(result.result.clone()));
                done.result = if result.call_id == call.call_id {
                    result
                } else {
                    // Only the value of another call's result counts (`LOOP-28`).
                    let FunctionResult { result, items, is_error, .. } = result;
                    FunctionResult { result, items, is_error, ..done.result }
                };
            }
            Some(FunctionValue::Output(output)) => done.show(&output),
            Some(FunctionValue::Error(output)) => {
                done.show(&output);
                done.result.is_error = true;
                done.failure = Some(CallFailure::Shown(done.result.result.clone()));
            }
        }
        done
    }

    fn show(&mut self, output: &Output) {
        self.result.result = output.text();
        if let Output::Contents(contents) = output {
            self.result.items = contents.iter().filter_map(blob).collect();
        }
    }

    fn failed(call: &FunctionCall, failure: CallFailure, is_detailed: bool) -> Self {
        let text = match &failure {
            CallFailure::Failed(FunctionError::InvalidArguments(invalid)) => {
                format!("Error: Argument parsing failed. {invalid}")
            }
            CallFailure::Failed(FunctionError::UsedUp(refused)) => refused.to_string(),
            CallFailure::Failed(error) => {
                ToolError::in_loop(is_detailed.then(|| error.to_string()).as_deref())
            }
            CallFailure::Shown(text) => text.clone(),
            CallFailure::Unknown { .. } | CallFailure::NotAdvertised => format!("Error: {failure}"),
        };
        let mut done = Self::new(call, text);
        done.result.is_error = true;
        done.failure = Some(failure);
        done
    }

    /// Creates the result of a call that the user refused, which is not an error (`LOOP-17`,
    /// `LOOP-41`).
    fn refused(call: &FunctionCall, reason: Option<&str>) -> Self {
        let text = "Error: Tool call invocation was rejected by user.";
        match reason.filter(|reason| !reason.trim().is_empty()) {
            Some(reason) => Self::new(call, format!("{text} {reason}")),
            None => Self::new(call, text),
        }
    }

    /// Creates the outcome of a call whose program waits for an approval.
    fn suspended(suspended: SuspendedCall) -> Self {
        Self { suspended: Some(suspended), ..Self::new(&FunctionCall::default(), "") }
    }

    fn deferred(call: &FunctionCall) -> Self {
        Self { is_deferred: true, ..Self::new(call, DEFERRED) }
    }
}

/// Returns an item of an output that is not text.
fn blob(content: &ToolContent) -> Option<Data> {
    match content {
        ToolContent::Blob { media_type, data } => Some(Data {
            media_type: media_type.clone(),
            data: STANDARD.encode(data),
            ..Data::default()
        }),
        _ => None,
    }
}
