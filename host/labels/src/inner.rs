//! Checks of the calls that a tool makes to other tools, against everything that the tool has seen.
//!
//! A plugin that may call other tools could send data where the model may not, or do for an
//! injected text what the model is prevented from doing. Its calls are therefore checked against
//! the combined label of everything it has: the context in which it was called, the variables in
//! its arguments, its own label, and the results of its earlier calls. The user is never asked
//! about such a call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofferdam_tool::invoke::{InnerCall, InnerCalls};
use cofferdam_tool::label::Label;
use cofferdam_tool::{CallRecord, ToolFailure};

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
    given: GrantedVariables,
    /// Combined label of the results of its calls.
    results: Label,
}

impl LabeledInnerCalls {
    pub(super) fn new(flow: Arc<Flow>) -> Self {
        Self { flow, state: Mutex::default() }
    }

    /// Records the start of a call of the tool.
    pub(super) fn begin(&self, given: GrantedVariables) {
        *self.state() = CallState { given, results: Label::default() };
    }

    /// Returns the labels of what went into the tool's result besides the tool: variables, and
    /// results of other tools.
    pub(super) fn input_labels(&self) -> [Label; 2] {
        let state = self.state();
        [state.given.data.clone(), state.results.clone()]
    }

    /// Returns the combined label of everything that the tool has.
    fn combined(&self) -> Label {
        let CallState { given: GrantedVariables { context, tool, data }, results } = &*self.state();
        Label::combine([context, tool, data, results])
    }

    fn state(&self) -> MutexGuard<'_, CallState> {
        // Labels are only replaced or added as a whole, so a poisoned lock still guards valid
        // state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InnerCalls for LabeledInnerCalls {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        let tool = call.tool.name.as_str();
        if is_own(call.source) {
            return Err(Box::new(ToolFailure::new("Variables are only for the model.")));
        }
        let data = self.combined();
        let found = violations(&self.flow.labels_of(call.tool, call.source), &data);
        let Some(first) = found.first() else { return Ok(()) };
        self.flow.tell(AuditDecision::Blocked, tool, call.call_id, &data, None, &found);
        Err(Box::new(ToolFailure::new(first.message())))
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        let mut label = self.flow.labels_of(call.tool, call.source).result;
        if let Some(said) = &record.label {
            label = label.stricter(said);
        }
        self.state().results.add(&label);
        self.flow.tell(
            AuditDecision::Labelled,
            call.tool.name.as_str(),
            call.call_id,
            &label,
            None,
            &[],
        );
    }
    fn label(&self) -> Option<Label> {
        Some(self.combined())
    }
}
