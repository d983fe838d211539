//! The function calls of one reply (`LOOP-12` to `LOOP-15`, `LOOP-24` to `LOOP-28`).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::{
    CallContext, Completion, Content as ToolContent, Outcome, Output, Refused, ToolDefinition,
    Toolset,
};
use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::cycle::Cycle;
use super::plan::Plan;
use crate::approvals::{Decided, Decision};
use crate::choice;
use crate::guard::{BatchGuard, CallGuard};
use crate::live::RunTools;
use crate::middleware::{
    CallArguments, End, FunctionContext, FunctionError, FunctionSignal, FunctionValue, Middleware,
    Next,
};
use crate::{CallFailure, Content, Data, FunctionCall, FunctionResult, RunError};

/// How long tools have to end by themselves when a run is cancelled, so that what they were doing
/// is recorded.
const GRACE: Duration = Duration::from_secs(2);

/// A call that was not started in time (`LOOP-22`).
const DEFERRED: &str =
    "Error: Function invocation limit reached before the deferred tool could run.";

/// A call that was approved while another component or server stood behind the name.
const ANOTHER_ORIGIN: &str =
    "Error: The tool has changed since the call was approved. Call it again if it is still needed.";

/// What a batch gave.
#[derive(Default)]
pub(super) struct Batch {
    /// The results in call order.
    pub(super) results: Vec<Content>,
    /// The calls that failed, in call order (`LOOP-17`).
    pub(super) failures: Vec<CallFailure>,
    /// Whether the loop ends here (`LOOP-25`).
    pub(super) is_terminated: bool,
    /// Whether calls were left out because the time was over.
    pub(super) is_out_of_time: bool,
    /// How many calls were started.
    pub(super) started: u32,
    /// What ends the run. The results are those of the calls that were done by then.
    pub(super) error: Option<RunError>,
}

/// What one call gave.
struct Done {
    result: FunctionResult,
    failure: Option<CallFailure>,
    is_terminated: bool,
    is_deferred: bool,
}

impl Cycle<'_> {
    /// Runs the calls of one reply, except those that the caller makes.
    pub(super) async fn run_calls(
        &self,
        calls: Vec<Decided>,
        tools: &RunTools,
        plan: &Plan,
    ) -> Batch {
        let guard = &*Arc::clone(&self.guard).begin_batch();
        let ours = calls.into_iter().filter(|decided| !self.is_for_caller(&decided.call, tools));
        let mut done = Vec::new();
        if self.settings.allow_concurrent_invocation {
            done = join_all(ours.map(|decided| self.run_call(decided, tools, plan, guard))).await;
        } else {
            for decided in ours {
                let one = match self.is_out_of_time() {
                    true => Ok(Done::deferred(&decided.call)),
                    false => self.run_call(decided, tools, plan, guard).await,
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

    /// A tool, and the toolset that it is called in: an advertised tool is preferred (`LOOP-11`).
    pub(super) fn tool<'t>(
        &'t self,
        name: &str,
        tools: &'t RunTools,
    ) -> Option<(&'t Toolset, &'t Arc<ToolDefinition>)> {
        let toolsets = [tools.toolset(), &self.settings.additional_tools];
        toolsets.into_iter().find_map(|toolset| Some((toolset, toolset.definition(name).ok()?)))
    }

    /// Runs one call. The guard sees its result, whatever it comes from.
    async fn run_call(
        &self,
        decided: Decided,
        tools: &RunTools,
        plan: &Plan,
        guard: &dyn BatchGuard,
    ) -> Result<Done, RunError> {
        let waived = match &decided.decision {
            Some(Decision::ApprovedDespite(objections)) => objections.clone(),
            _ => Vec::new(),
        };
        let toolset = self.tool(&decided.call.name, tools).map(|(toolset, _)| toolset);
        let guard = guard.begin_call(toolset, waived);
        let mut done = self.run_decided(decided, tools, plan, &*guard).await?;
        guard.finish(&mut done.result);
        Ok(done)
    }

    async fn run_decided(
        &self,
        Decided { call, decision, origin }: Decided,
        tools: &RunTools,
        plan: &Plan,
        guard: &dyn CallGuard,
    ) -> Result<Done, RunError> {
        if let Some(Decision::Refused(reason)) = decision {
            return Ok(Done::refused(&call, reason.as_deref()));
        }
        let found = self.tool(&call.name, tools);
        let Some((toolset, definition)) = found else {
            return Ok(Done::failed(
                &call,
                CallFailure::Unknown { name: call.name.clone() },
                false,
            ));
        };
        // What a person has approved is a call of the tool that was there when they were asked.
        if origin.is_some() && origin != toolset.origin(&call.name) {
            let failure = CallFailure::Shown(ANOTHER_ORIGIN.to_owned());
            return Ok(Done::failed(&call, failure, false));
        }
        if !plan.allows(&call.name) {
            return Ok(Done::failed(&call, CallFailure::NotAdvertised, false));
        }
        let mut context = FunctionContext {
            tool: Arc::clone(definition),
            arguments: CallArguments::Text(call.arguments.clone()),
            call_id: call.call_id.clone(),
            session: self.given.session.clone(),
            host: self.given.host.clone(),
            tools: self.live.clone(),
            cancellation: self.given.cancellation.clone(),
            record: None,
            result: None,
        };
        let call_context =
            CallContext { inner_calls: guard.inner_calls(), ..self.call_context(&call) };
        let tool = Tool { toolset, context: call_context };
        let guarded = Guarded { guard, invoker: self.settings.invoker.as_slice(), tool };
        let ended = Next::new(&self.chains.function, &guarded).run(&mut context).await;
        let result = context.result.take();
        match ended {
            Ok(()) => Ok(Done::with(&call, result, false)),
            Err(FunctionSignal::Terminate(carried)) => {
                Ok(Done::with(&call, carried.or(result), true))
            }
            Err(FunctionSignal::FailClosed(error)) => Err(RunError::FailClosed(error)),
            Err(FunctionSignal::Cancelled) => Err(RunError::Cancelled),
            Err(FunctionSignal::Error(error)) => {
                let is_detailed =
                    self.settings.include_detailed_errors && !self.guard.hides_details();
                Ok(Done::failed(&call, error.into(), is_detailed))
            }
        }
    }

    fn call_context(&self, call: &FunctionCall) -> CallContext {
        let given = &self.given;
        CallContext {
            session: given.session.as_ref().map(|session| session.id().to_owned()),
            cancellation: given.cancellation.clone(),
            file_effects: given.file_effects,
            progress: given.progress.clone(),
            asker: given.asker.clone(),
            log: given.log.clone(),
            host: given.host.clone(),
            run: Some(Arc::new(self.live.clone())),
            ..CallContext::new(call.call_id.clone())
        }
    }
}

/// The inside of all middleware: the guard, and inside of it the invoker if there is one, in place
/// of the tool (`LOOP-27`).
struct Guarded<'c> {
    guard: &'c dyn CallGuard,
    invoker: &'c [Arc<dyn Middleware<FunctionContext>>],
    tool: Tool<'c>,
}

#[async_trait]
impl End<FunctionContext> for Guarded<'_> {
    async fn run(&self, context: &mut FunctionContext) -> Result<(), FunctionSignal> {
        self.guard.process(context, Next::new(self.invoker, &self.tool)).await
    }
}

/// One tool, ready to be called.
struct Tool<'c> {
    toolset: &'c Toolset,
    context: CallContext,
}

#[async_trait]
impl End<FunctionContext> for Tool<'_> {
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
            Refused::InvalidArguments(invalid) => FunctionError::InvalidArguments(invalid),
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
    fn add(&mut self, done: Done) {
        self.is_terminated |= done.is_terminated;
        self.is_out_of_time |= done.is_deferred;
        self.started = self.started.saturating_add(u32::from(!done.is_deferred));
        self.results.push(Content::FunctionResult(done.result));
        self.failures.extend(done.failure);
    }
}

/// Returns when a run was cancelled and what it was doing had its time to end.
pub(super) async fn long_cancelled(cancellation: &CancellationToken) {
    cancellation.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

impl Done {
    fn new(call: &FunctionCall, text: impl Into<String>) -> Self {
        let result = FunctionResult {
            call_id: call.call_id.clone(),
            result: text.into(),
            ..FunctionResult::default()
        };
        Self { result, failure: None, is_terminated: false, is_deferred: false }
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
                    // Of another call's result the value counts, and nothing else (`LOOP-28`).
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
            CallFailure::Failed(error) if is_detailed => {
                format!("Error: Function failed. Exception: {error}")
            }
            CallFailure::Failed(_) => "Error: Function failed.".to_owned(),
            CallFailure::Shown(text) => text.clone(),
            CallFailure::Unknown { .. } | CallFailure::NotAdvertised => format!("Error: {failure}"),
        };
        let mut done = Self::new(call, text);
        done.result.is_error = true;
        done.failure = Some(failure);
        done
    }

    /// A person said no, which is no error (`LOOP-17`, `LOOP-41`).
    fn refused(call: &FunctionCall, reason: Option<&str>) -> Self {
        let text = "Error: Tool call invocation was rejected by user.";
        match reason.filter(|reason| !reason.trim().is_empty()) {
            Some(reason) => Self::new(call, format!("{text} {reason}")),
            None => Self::new(call, text),
        }
    }

    fn deferred(call: &FunctionCall) -> Self {
        Self { is_deferred: true, ..Self::new(call, DEFERRED) }
    }
}

/// A part of an output that is no text.
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
