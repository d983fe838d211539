//! Requests about calls that programs of the model make (`LOOP-71`).

use cofferdam_tool::invoke::{ResumedProgram, SuspendedProgram};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::CallDecision;
use crate::FunctionCall;

/// A program that waits in a batch for a decision about one of its calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenProgram {
    /// Call of the program.
    pub(super) call: FunctionCall,
    /// State from which the program continues.
    ledger: String,
    /// Decision of the user about the program itself, if the user was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<CallDecision>,
}

/// A call of the model that has ended because its program waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SuspendedCall {
    /// Call that runs the program.
    pub(crate) call: FunctionCall,
    /// Decision of the user about it, if the user was asked.
    pub(crate) decision: Option<CallDecision>,
    /// The program.
    pub(crate) program: SuspendedProgram,
}

impl OpenProgram {
    pub(super) fn new(program: SuspendedProgram, decision: Option<CallDecision>) -> Self {
        let call = FunctionCall {
            call_id: program.call_id,
            name: program.tool.to_string(),
            arguments: Value::Object(program.arguments).to_string(),
            ..FunctionCall::default()
        };
        Self { call, ledger: program.ledger, decision }
    }

    /// Returns the decision about the program, which has been running and therefore needs no
    /// further one, and the program with the decision about its call.
    pub(super) fn decided(self, decision: Option<CallDecision>) -> (CallDecision, ResumedProgram) {
        let (is_approved, reason) = match decision {
            Some(CallDecision::Approved | CallDecision::ApprovedDespite(_)) => (true, None),
            Some(CallDecision::Refused(reason)) => (false, reason),
            None => (false, None),
        };
        let resumed = ResumedProgram { ledger: self.ledger, is_approved, reason };
        (self.decision.unwrap_or(CallDecision::Approved), resumed)
    }
}
