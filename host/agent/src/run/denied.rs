//! Calls that tools make of other tools, which context providers may deny (`LOOP-60`).

use std::sync::Arc;

use cofferdam_tool::invoke::{InnerCall, InnerCalls};
use cofferdam_tool::{CallRecord, ToolFailure};

use crate::context::Denial;

/// Checks inner calls against the denials before the guard does.
pub(super) struct DeniedCalls {
    denials: Arc<[Denial]>,
    guard: Option<Arc<dyn InnerCalls>>,
}

impl DeniedCalls {
    /// Returns the checks of the denials and the guard, if there are any.
    pub(super) fn checking(
        denials: &Arc<[Denial]>,
        guard: Option<Arc<dyn InnerCalls>>,
    ) -> Option<Arc<dyn InnerCalls>> {
        if denials.is_empty() {
            return guard;
        }
        Some(Arc::new(Self { denials: Arc::clone(denials), guard }))
    }
}

impl InnerCalls for DeniedCalls {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        if let Some(denial) = self.denials.iter().find_map(|denial| denial(call.tool)) {
            return Err(Box::new(ToolFailure::bare(denial)));
        }
        self.guard.as_ref().map_or(Ok(()), |guard| guard.admit(call))
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        if let Some(guard) = &self.guard {
            guard.ended(call, record);
        }
    }
}
