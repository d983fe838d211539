//! Checks of the calls that a tool makes to other tools, against everything that the tool has seen.
//!
//! A plugin that may call other tools could send data where the model may not, or do for an
//! injected text what the model is prevented from doing. Its calls are therefore checked against
//! the combined label of everything it has: the context in which it was called, the variables in
//! its arguments, its own label, and the results of its earlier calls. The user is never asked
//! about such a call.
//!
//! A called tool may call further tools. It has got its arguments from its caller and may have
//! chosen those of its own calls, so these are checked against everything that the outermost tool
//! has, and the labels of all tools between the two.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::invoke::{InnerCall, InnerCalls};
use cofferdam_tool::label::Label;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, ToolCall, ToolDefinition, ToolFailure, ToolSource,
};
use parking_lot::Mutex;

use super::AuditDecision;
use super::check::violations;
use super::flow::{Flow, is_own};

/// Checks the calls that a tool makes to other tools during one call.
pub(super) struct LabeledInnerCalls {
    flow: Arc<Flow>,
    state: Mutex<CallState>,
}

/// Labels of everything that a tool was given.
#[derive(Default)]
pub(super) struct GrantedVariables {
    /// Label of the context in which it was called.
    pub(super) context: Label,
    /// The tool's own label.
    pub(super) tool: Label,
    /// Combined label of the variables in its arguments.
    pub(super) data: Label,
}

#[derive(Default)]
struct CallState {
    /// Identifier of the call.
    call_id: String,
    given: GrantedVariables,
    /// Combined label of the results of its calls, and of the calls that these have made.
    results: Label,
    /// Running inner calls by their identifiers, each with the combined label of its tool and of
    /// the tools between this one and its own.
    running: HashMap<String, Label>,
}

/// An inner call while it runs.
struct RunningInnerCall<'c> {
    calls: &'c LabeledInnerCalls,
    call_id: &'c str,
}

impl LabeledInnerCalls {
    pub(super) fn new(flow: Arc<Flow>) -> Self {
        Self { flow, state: Mutex::default() }
    }

    /// Records the start of a call of the tool.
    pub(super) fn begin(&self, call_id: &str, given: GrantedVariables) {
        *self.state.lock() =
            CallState { call_id: call_id.to_owned(), given, ..CallState::default() };
    }

    /// Records the start of an inner call.
    fn begin_inner<'c>(
        &'c self,
        tool: &ToolDefinition,
        source: &dyn ToolSource,
        context: &'c CallContext,
    ) -> RunningInnerCall<'c> {
        let own = self.flow.labels_of(tool, source).result;
        let outer = context.outer.as_ref().map(|outer| outer.call_id.as_str());
        let mut state = self.state.lock();
        let label = Label::combine([&own, &state.tools_of(outer)]);
        // A call that is being stopped may still run under the same identifier.
        state.running.entry(context.call_id.clone()).or_default().add(&label);
        RunningInnerCall { calls: self, call_id: &context.call_id }
    }

    /// Returns the labels of what went into the tool's result besides the tool: variables, and
    /// results of other tools.
    pub(super) fn input_labels(&self) -> [Label; 2] {
        let state = self.state.lock();
        [state.given.data.clone(), state.results.clone()]
    }
}

impl CallState {
    /// Returns the combined label of everything that the tool has.
    fn combined(&self) -> Label {
        let Self { given: GrantedVariables { context, tool, data }, results, .. } = self;
        Label::combine([context, tool, data, results])
    }

    /// Returns the combined label of the tools of a running call and of those between it and this
    /// one.
    fn tools_of(&self, call_id: Option<&str>) -> Label {
        match call_id {
            Some(call_id) if call_id == self.call_id => Label::default(),
            // A call that is not known may have seen anything.
            Some(call_id) => self.running.get(call_id).cloned().unwrap_or_else(Label::unknown),
            None => Label::unknown(),
        }
    }
}

impl Drop for RunningInnerCall<'_> {
    fn drop(&mut self) {
        self.calls.state.lock().running.remove(self.call_id);
    }
}

#[async_trait]
impl InnerCalls for LabeledInnerCalls {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        let tool = call.tool.name.as_str();
        if is_own(call.source) {
            return Err(Box::new(ToolFailure::new("Variables are only for the model.")));
        }
        let data = {
            let state = self.state.lock();
            Label::combine([&state.combined(), &state.tools_of(call.outer_call_id)])
        };
        let found = violations(&self.flow.labels_of(call.tool, call.source), &data);
        let Some(first) = found.first() else { return Ok(()) };
        self.flow.tell(AuditDecision::Blocked, tool, call.call_id, &data, None, &found);
        Err(Box::new(ToolFailure::new(first.message())))
    }

    async fn invoke(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        let _running = self.begin_inner(call.tool, source, context);
        source.invoke(call, context).await
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        let mut label = self.flow.labels_of(call.tool, call.source).result;
        if let Some(said) = &record.label {
            label = label.stricter(said);
        }
        self.state.lock().results.add(&label);
        self.flow.tell(
            AuditDecision::Labelled,
            call.tool.name.as_str(),
            call.call_id,
            &label,
            None,
            &[],
        );
    }

    /// Returns the label of everything that the tool and the running calls have: the caller may be
    /// any of them.
    fn label(&self) -> Option<Label> {
        let state = self.state.lock();
        let mut label = state.combined();
        state.running.values().for_each(|running| label.add(running));
        Some(label)
    }
}
