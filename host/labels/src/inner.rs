//! Calls that a tool makes of other tools: what goes into them is all that the tool has been given.
//!
//! A plugin that may call other tools could carry data to where the model may not, or do for an
//! injected text what the model is kept from. So its calls are checked with the label of everything
//! that it has: the context that it was called in, the variables in its arguments, its own label,
//! and the results of the calls that it has made before. Nobody is asked about such a call.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofferdam_tool::invoke::{InnerCall, InnerCalls};
use cofferdam_tool::label::Label;
use cofferdam_tool::{CallRecord, ToolFailure};

use super::Decided;
use super::check::violations;
use super::flow::{Flow, is_own};

/// What a tool may do with other tools during one call.
pub(super) struct Inner {
    flow: Arc<Flow>,
    state: Mutex<State>,
}

/// What a tool has been given.
#[derive(Default)]
pub(super) struct Given {
    /// The context that it was called in.
    pub(super) context: Label,
    /// Its own label.
    pub(super) tool: Label,
    /// The variables in its arguments.
    pub(super) data: Label,
}

#[derive(Default)]
struct State {
    given: Given,
    /// The results of the calls that it has made.
    results: Label,
}

impl Inner {
    pub(super) fn new(flow: Arc<Flow>) -> Self {
        Self { flow, state: Mutex::default() }
    }

    /// A call of the tool begins.
    pub(super) fn begin(&self, given: Given) {
        *self.state() = State { given, results: Label::default() };
    }

    /// The labels of what went into the tool's result beside the tool: variables, and results of
    /// other tools.
    pub(super) fn gone_in(&self) -> [Label; 2] {
        let state = self.state();
        [state.given.data.clone(), state.results.clone()]
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Whole labels are put into it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InnerCalls for Inner {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        let tool = call.tool.name.as_str();
        if is_own(call.source) {
            return Err(Box::new(ToolFailure::new("Variables are for the model alone.")));
        }
        let data = {
            let State { given: Given { context, tool, data }, results } = &*self.state();
            Label::combine([context, tool, data, results])
        };
        let found = violations(&self.flow.labels_of(call.tool, call.source), &data);
        let Some(first) = found.first() else { return Ok(()) };
        self.flow.tell(Decided::Blocked, tool, call.call_id, &data, None, &found);
        Err(Box::new(ToolFailure::new(first.message())))
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        let mut label = self.flow.labels_of(call.tool, call.source).result;
        if let Some(said) = &record.label {
            label = label.stricter(said);
        }
        self.state().results.add(&label);
        self.flow.tell(Decided::Labelled, call.tool.name.as_str(), call.call_id, &label, None, &[]);
    }
}
