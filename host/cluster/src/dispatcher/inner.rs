//! Decisions about the calls that a running call makes of other tools at its worker.
//!
//! Each of them runs through the [`InnerCalls`] of the caller, as if the gateway had made it, so
//! that a label policy sees it begin and end.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::invoke::{InnerCall, InnerCalls, OuterCall};
use cofferdam_tool::label::{Label, StatedBy, StatedLabels};
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::{
    Arguments, CallContext, CallRecord, Completion, Outcome, Output, ToolCall, ToolDefinition,
    ToolName, ToolSource, Toolset,
};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::inner::{InnerCheck, InnerDecision, carried};
use crate::message::CallHeader;

/// Part of a caller that decides about the calls which its call makes of other tools.
#[derive(Clone, Copy)]
pub(super) struct InnerCallPolicy<'c> {
    pub(super) inner_calls: &'c Arc<dyn InnerCalls>,
    /// Tools of the caller.
    pub(super) toolset: Option<&'c Toolset>,
    /// Called tool.
    pub(super) tool: &'c ToolDefinition,
    /// Source that it belongs to.
    pub(super) source: &'c dyn ToolSource,
    /// Context of the call.
    pub(super) context: &'c CallContext,
    /// Header of the call, which has its identifier as the worker knows it.
    pub(super) header: &'c CallHeader,
}

/// Calls of other tools that one start of a call makes.
pub(super) struct CheckedInnerCalls<'c> {
    policy: Option<InnerCallPolicy<'c>>,
    running: HashMap<String, RunningInnerCall>,
}

/// An inner call that runs at the worker.
struct RunningInnerCall {
    /// Receives the label of the result.
    ended: oneshot::Sender<Option<Label>>,
    run: BoxFuture<'static, ()>,
}

impl<'c> CheckedInnerCalls<'c> {
    pub(super) fn new(policy: Option<InnerCallPolicy<'c>>) -> Self {
        Self { policy, running: HashMap::new() }
    }

    /// Decides about an inner call, or that it has ended.
    pub(super) fn decide(&mut self, check: InnerCheck) -> BoxFuture<'static, InnerDecision> {
        let Some(policy) = self.policy else {
            return ready(InnerDecision::refused(
                "no agent at the gateway decides about calls of this call",
            ));
        };
        match check {
            InnerCheck::Begin { call, outer, source, tool } => {
                let decided = self.begin(policy, call, outer, (&source, &tool));
                ready(decided.unwrap_or_else(|refused| refused))
            }
            InnerCheck::End { call, label } => {
                let Some(RunningInnerCall { ended, run }) = self.running.remove(&call) else {
                    return ready(InnerDecision::refused("the gateway does not know this call"));
                };
                let _ = ended.send(label);
                let inner_calls = Arc::clone(policy.inner_calls);
                Box::pin(async move {
                    run.await;
                    accepted(&*inner_calls)
                })
            }
            InnerCheck::Received { source, tool, own, label } => {
                policy.receive((&source, &tool), own, label);
                ready(accepted(&**policy.inner_calls))
            }
        }
    }

    /// Decides about an inner call that is about to begin.
    ///
    /// # Errors
    /// The refusal.
    fn begin(
        &mut self,
        policy: InnerCallPolicy<'_>,
        call: String,
        outer: Option<String>,
        (source, tool): (&str, &ToolName),
    ) -> Result<InnerDecision, InnerDecision> {
        // One with the same identifier belongs to an earlier attempt.
        self.running.remove(&call);
        let (definition, source) = policy.tool(source, tool).ok_or_else(|| {
            InnerDecision::refused(&format!(
                "the gateway does not offer '{tool}' of '{source}', so its agent cannot check this \
                 call"
            ))
        })?;
        let inner_calls = Arc::clone(policy.inner_calls);
        let outer = outer.map(|outer| match outer == policy.header.id {
            true => policy.context.call_id.clone(),
            false => outer,
        });
        let asked = InnerCall {
            call_id: &call,
            outer_call_id: outer.as_deref(),
            tool: &definition,
            source: &*source,
        };
        inner_calls.admit(&asked).map_err(|failure| InnerDecision::from(*failure))?;
        let (ended, label) = oneshot::channel();
        let (id, run_by) = (call.clone(), Arc::clone(&inner_calls));
        let mut run: BoxFuture<'static, ()> = Box::pin(async move {
            let outer = outer.map(|call_id| OuterCall { call_id, depth: 1, files: Arc::new(()) });
            let context = CallContext {
                outer,
                inner_calls: Some(Arc::clone(&run_by)),
                ..CallContext::new(call)
            };
            let source = SourceAtWorker { source, label: Mutex::new(Some(label)) };
            let call =
                ToolCall { tool: &definition, arguments: Arguments::default(), toolset: None };
            let completion = run_by.invoke(call, &source, &context).await;
            let asked = InnerCall {
                call_id: &context.call_id,
                outer_call_id: context.outer.as_ref().map(|outer| outer.call_id.as_str()),
                tool: &definition,
                source: &*source.source,
            };
            run_by.ended(&asked, &completion.record);
        });
        // Begins the call; it ends when the worker reports that.
        if (&mut run).now_or_never().is_some() {
            return Err(InnerDecision::refused(
                "the agent at the gateway does not allow this call",
            ));
        }
        self.running.insert(id, RunningInnerCall { ended, run });
        Ok(accepted(&*inner_calls))
    }
}

impl InnerCallPolicy<'_> {
    /// Adds a result that the called tool has. It counts as one of the called tool itself if the
    /// caller does not have the tool that has returned it.
    fn receive(&self, (source, tool): (&str, &ToolName), own: Label, said: Option<Label>) {
        let found = self.tool(source, tool);
        let (tool, source, label) = match &found {
            Some((tool, source)) => (&**tool, &**source, said),
            None => {
                let label = said.map_or_else(|| own.clone(), |said| own.clone().stricter(&said));
                (self.tool, self.source, Some(label))
            }
        };
        let call_id = &self.context.call_id;
        let asked = InnerCall { call_id, outer_call_id: None, tool, source };
        let mut record = CallRecord::default();
        record.label = label;
        self.inner_calls.ended(&asked, &record);
    }

    /// Returns a tool of the caller, if it is of this source.
    fn tool(
        &self,
        source: &str,
        tool: &ToolName,
    ) -> Option<(Arc<ToolDefinition>, Arc<dyn ToolSource>)> {
        let toolset = self.toolset?;
        let found = toolset.source(tool.as_str()).filter(|found| found.name() == source)?;
        Some((Arc::clone(toolset.definition(tool.as_str()).ok()?), Arc::clone(found)))
    }
}

fn accepted(inner_calls: &dyn InnerCalls) -> InnerDecision {
    InnerDecision::Accepted { label: inner_calls.label().map(carried) }
}

fn ready(decision: InnerDecision) -> BoxFuture<'static, InnerDecision> {
    Box::pin(std::future::ready(decision))
}

/// A source whose call runs at the worker: `invoke` waits until the worker reports its end.
struct SourceAtWorker {
    source: Arc<dyn ToolSource>,
    label: Mutex<Option<oneshot::Receiver<Option<Label>>>>,
}

#[async_trait]
impl ToolSource for SourceAtWorker {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        self.source.definitions()
    }

    fn origin(&self, tool: &ToolName) -> ToolOrigin {
        self.source.origin(tool)
    }

    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        self.source.plugin_identity()
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.source.labels(tool)
    }

    fn states_for(&self) -> StatedBy {
        self.source.states_for()
    }

    async fn invoke(&self, _: ToolCall<'_>, context: &CallContext) -> Completion {
        let label = self.label.lock().take();
        let label = match label {
            Some(label) => label.await,
            None => return Completion::ended(Outcome::Cancelled, context),
        };
        let mut completion = Completion::ended(Outcome::Ok(Output::Value(Value::Null)), context);
        completion.record.label = label.unwrap_or_else(|_| Some(Label::unknown()));
        completion
    }
}
