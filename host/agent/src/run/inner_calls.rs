//! Calls that tools of the run make of other tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cofferdam_tool::invoke::{
    ApprovalNeed, InnerCall, InnerCalls, ResumedProgram, SuspendedProgram,
};
use cofferdam_tool::label::Label;
use cofferdam_tool::{CallContext, CallRecord, Completion, ToolCall, ToolFailure, ToolSource};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::context::Denial;
use crate::{Approvals, Session};

/// Maximum bytes of the ledgers of all programs that wait in a session.
const LEDGERS_BYTES_MAX: usize = 12 * 1024 * 1024;

/// Checks inner calls: first against the denials of context providers (`LOOP-60`), then by the
/// guard. Programs of the model also need the approvals that calls of the model need.
pub(super) struct RunInnerCalls {
    pub(super) denials: Arc<[Denial]>,
    pub(super) guard: Option<Arc<dyn InnerCalls>>,
    pub(super) approvals: Arc<Approvals>,
    pub(super) session: Option<Session>,
    /// Receiver of a program that cannot continue without a user, if the session can keep one.
    pub(super) suspension: Option<Arc<Suspension>>,
    /// Suspended program that the call continues.
    pub(super) resumed: Option<ResumedProgram>,
}

/// Room in the session for the ledgers of one batch of calls.
pub(super) struct LedgerRoom(AtomicUsize);

/// A suspended program of one call, if there is one.
pub(super) struct Suspension {
    room: Arc<LedgerRoom>,
    program: Mutex<Option<SuspendedProgram>>,
}

impl LedgerRoom {
    /// Returns the room of a session without suspended programs.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(LEDGERS_BYTES_MAX)))
    }

    fn take(&self, bytes: usize) -> bool {
        let rest = |left: usize| left.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).is_ok()
    }
}

impl Suspension {
    /// Returns the suspension of a call that has none.
    pub(super) fn new(room: &Arc<LedgerRoom>) -> Arc<Self> {
        Arc::new(Self { room: Arc::clone(room), program: Mutex::default() })
    }

    /// Removes and returns the suspended program.
    pub(super) fn take(&self) -> Option<SuspendedProgram> {
        self.program.lock().take()
    }
}

#[async_trait]
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

    async fn invoke(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        match &self.guard {
            Some(guard) => guard.invoke(call, source, context).await,
            None => source.invoke(call, context).await,
        }
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        if let Some(guard) = &self.guard {
            guard.ended(call, record);
        }
    }

    fn label(&self) -> Option<Label> {
        self.guard.as_ref().and_then(|guard| guard.label())
    }

    fn ledger_bytes_max(&self) -> usize {
        self.suspension.as_ref().map_or(0, |suspension| suspension.room.0.load(Ordering::Relaxed))
    }

    fn suspend(&self, program: SuspendedProgram) -> bool {
        let Some(suspension) = &self.suspension else { return false };
        let mut kept = suspension.program.lock();
        if kept.is_some() || !suspension.room.take(program.ledger.len()) {
            return false;
        }
        *kept = Some(program);
        true
    }

    fn resumed(&self) -> Option<ResumedProgram> {
        self.resumed.clone()
    }
}
