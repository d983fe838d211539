//! What was decided, for people (`LBL-15`).

use cofferdam_tool::label::Label;
use serde_json::{Map, Value, json};

use super::Violation;

/// Is told of every decision. Called from within the run: it must not block.
pub trait LabelAudit: Send + Sync {
    /// Takes one.
    fn decided(&self, decision: &LabelDecision<'_>);
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decided {
    /// A result has got a label.
    Labelled,
    /// It was hidden in a variable.
    Hidden,
    /// It was to be hidden and was too large for that; nobody gets it.
    Discarded,
    /// The call was not made.
    Blocked,
    /// A person is asked about the call instead.
    ApprovalRequested,
    /// The call was made because a person has said so, and only therefore.
    Approved,
}

/// One decision. It never holds a value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LabelDecision<'d> {
    /// What was decided.
    pub decided: Decided,
    /// The tool.
    pub tool: &'d str,
    /// The model's id of the call; of a call that another tool has made, the host's.
    pub call_id: &'d str,
    /// The session, if there is one.
    pub session: Option<&'d str>,
    /// The label of what it is about: of the result, or of what would have gone into the call.
    pub label: &'d Label,
    /// The label that the context has by now.
    pub context: &'d Label,
    /// The variable that the result is hidden in.
    pub variable: Option<&'d str>,
    /// What speaks against the call.
    pub violations: &'d [Violation],
}

impl Decided {
    /// The decision in one word.
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
    /// The decision as one line of a log. Keys without a value are left out.
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
