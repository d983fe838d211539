//! Calls that tools of the run make of other tools.

use std::sync::Arc;

use cofferdam_tool::invoke::{ApprovalNeed, InnerCall, InnerCalls};
use cofferdam_tool::label::Label;
use cofferdam_tool::{CallRecord, ToolFailure};
use serde_json::{Map, Value};

use crate::context::Denial;
use crate::{Approvals, Session};

/// Checks inner calls: first against the denials of context providers (`LOOP-60`), then by the
/// guard. Programs of the model also need the approvals that calls of the model need.
pub(super) struct RunInnerCalls {
    pub(super) denials: Arc<[Denial]>,
    pub(super) guard: Option<Arc<dyn InnerCalls>>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) session: Option<Session>,
}

impl InnerCalls for RunInnerCalls {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        if let Some(denial) = self.denials.iter().find_map(|denial| denial(call.tool)) {
            return Err(Box::new(ToolFailure::bare(denial)));
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.admit(call))
    }

    fn approval(
        &self,
        call: &InnerCall<'_>,
        arguments: &Map<String, Value>,
    ) -> Option<ApprovalNeed> {
        Some(self.approvals.of_inner_call(call, arguments, self.session.as_ref()))
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        if let Some(guard) = &self.guard {
            guard.ended(call, record);
        }
    }

    fn label(&self) -> Option<Label> {
        self.guard.as_ref().and_then(|guard| guard.label())
    }
}
