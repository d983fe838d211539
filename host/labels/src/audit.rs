//! Audit of the policy's decisions (`LBL-15`).

use cofferdam_tool::label::Label;
use serde_json::{Map, Value, json};

use super::Violation;

/// Receives every decision of a policy. The run calls it synchronously, so it must not block.
pub trait LabelAudit: Send + Sync {
    /// Handles one decision.
    fn decided(&self, decision: &LabelDecision<'_>);
}

/// Kind of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditDecision {
    /// A result was labeled.
    Labelled,
    /// A result was hidden in a variable.
    Hidden,
    /// A result had to be hidden but was too large, so it was discarded.
    Discarded,
    /// A call was blocked.
    Blocked,
    /// The user is asked about the call instead.
    ApprovalRequested,
    /// A call was made only because the user approved it.
    Approved,
}

/// One decision of the policy. It never contains a value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LabelDecision<'d> {
    /// Kind of the decision.
    pub decided: AuditDecision,
    /// Name of the tool.
    pub tool: &'d str,
    /// Id of the call: the model's, or the host's for a call made by another tool.
    pub call_id: &'d str,
    /// Id of the session, if there is one.
    pub session: Option<&'d str>,
    /// Label of the result, or of the data that would have gone into the call.
    pub label: &'d Label,
    /// Current label of the context.
    pub context: &'d Label,
    /// Id of the variable that hides the result.
    pub variable: Option<&'d str>,
    /// Violations found in the call.
    pub violations: &'d [Violation],
}

impl AuditDecision {
    /// Returns the decision as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Labelled => "labelled",
            Self::Hidden => "hidden",
            Self::Discarded => "discarded",
            Self::Blocked => "blocked",
            Self::ApprovalRequested => "approval_requested",
            Self::Approved => "approved",
        }
    }
}

impl LabelDecision<'_> {
    /// Returns the decision as one JSON object for a log. Keys without a value are left out.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let reasons: Vec<_> = self.violations.iter().map(Violation::message).collect();
        let all = [
            ("decision", json!(self.decided.word())),
            ("tool", json!(self.tool)),
            ("call_id", json!(self.call_id)),
            ("session", json!(self.session)),
            ("label", json!(self.label)),
            ("context", json!(self.context)),
            ("variable_id", json!(self.variable)),
            ("reasons", if reasons.is_empty() { Value::Null } else { json!(reasons) }),
        ];
        let known = all.into_iter().filter(|(_, value)| !value.is_null());
        Value::Object(known.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>())
    }
}

impl<F: Fn(&LabelDecision<'_>) + Send + Sync> LabelAudit for F {
    fn decided(&self, decision: &LabelDecision<'_>) {
        self(decision);
    }
}
