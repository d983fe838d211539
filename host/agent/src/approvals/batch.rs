//! A batch of calls that waits for a person.

use cofferdam_tool::origin::ToolOrigin;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::guard::Objection;
use crate::message::OBJECTIONS;
use crate::{ApprovalAnswer, ApprovalRequest, FunctionCall, Session};

/// The part of a session's state that holds the batch.
const PART: &str = "open_approvals";

/// Calls of one reply of which some wait for a person (`LOOP-36`). What runs in the end is what
/// stands here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenBatch {
    /// All calls, in their order.
    pub(crate) calls: Vec<FunctionCall>,
    requests: Vec<Open>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Open {
    id: String,
    /// The place of the call in `calls`.
    call: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    /// Origin of the tool that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<ToolOrigin>,
    /// Objections of the guard to the call; approving it is approving these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objections: Vec<Objection>,
}

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Gated {
    /// Its place among the calls.
    pub(crate) place: usize,
    /// Origin of its tool.
    pub(crate) origin: Option<ToolOrigin>,
    /// Objections of the guard to it.
    pub(crate) objections: Vec<Objection>,
}

/// What a person said about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    /// It may be made.
    Approved,
    /// It may be made despite these objections of the guard.
    ApprovedDespite(Vec<Objection>),
    /// It may not, and why.
    Refused(Option<String>),
}

/// A call that may be decided about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decided {
    /// The call.
    pub(crate) call: FunctionCall,
    /// The user's decision, if the user was asked.
    pub(crate) decision: Option<Decision>,
    /// Origin of the tool that the user was asked about.
    pub(crate) origin: Option<ToolOrigin>,
}

impl Decided {
    /// A call that nobody was asked about.
    pub(crate) fn unasked(call: FunctionCall) -> Self {
        Self { call, decision: None, origin: None }
    }
}

/// What answers have come to.
#[derive(Debug, PartialEq)]
pub(crate) enum Answered {
    /// Nothing waits, or what waited does not any more (`LOOP-44`).
    Nothing,
    /// These are still to be answered (`LOOP-43`).
    Waiting(Vec<ApprovalRequest>),
    /// Every request is answered: the calls, with what was decided about each (`LOOP-40`).
    Complete(Vec<Decided>),
}

impl OpenBatch {
    /// A batch in which the calls at `gated` wait. `None` if there is no randomness for ids.
    pub(crate) fn new(calls: Vec<FunctionCall>, gated: &[Gated]) -> Result<Self, getrandom::Error> {
        let open = |gated: &Gated| {
            let Gated { place, origin, objections } = gated.clone();
            Ok(Open { id: fresh_id()?, call: place, decision: None, origin, objections })
        };
        Ok(Self { requests: gated.iter().map(open).collect::<Result<_, _>>()?, calls })
    }

    /// The requests that are not answered.
    pub(crate) fn waiting(&self) -> Vec<ApprovalRequest> {
        let waiting = self.requests.iter().filter(|request| request.decision.is_none());
        let request = |open: &Open| {
            let function_call = self.calls.get(open.call)?.clone();
            let (id, origin) = (open.id.clone(), open.origin.clone());
            let mut request =
                ApprovalRequest { id, function_call, origin, ..ApprovalRequest::default() };
            if !open.objections.is_empty() {
                let messages: Vec<_> =
                    open.objections.iter().map(|objection| objection.message.as_str()).collect();
                request.extra.insert(OBJECTIONS.to_owned(), messages.into());
            }
            Some(request)
        };
        waiting.filter_map(request).collect()
    }

    /// Writes the batch into the session, in the place of one that was there.
    pub(crate) fn record(&self, session: &Session) {
        // Texts and numbers alone: this cannot fail, and if it did nothing could be approved.
        session.set_part(PART, serde_json::to_value(self).unwrap_or(Value::Null));
    }

    /// Takes an answer, if it counts (`LOOP-37` to `LOOP-39`). Says whether it does.
    fn take(&mut self, answer: &ApprovalAnswer) -> bool {
        let Some(open) = self.requests.iter_mut().find(|open| open.id == answer.id) else {
            return false;
        };
        let Some(call) = self.calls.get(open.call) else { return false };
        let differs = |given: &Option<String>, recorded: &str| {
            given.as_ref().is_some_and(|given| given != recorded)
        };
        let has_other_arguments =
            answer.arguments.as_ref().is_some_and(|given| !same_arguments(given, &call.arguments));
        if open.decision.is_some()
            || differs(&answer.call_id, &call.call_id)
            || differs(&answer.name, &call.name)
            || has_other_arguments
        {
            return false;
        }
        open.decision = Some(match answer.approved {
            Value::Bool(true) if open.objections.is_empty() => Decision::Approved,
            Value::Bool(true) => Decision::ApprovedDespite(open.objections.clone()),
            _ => Decision::Refused(answer.reason.clone()),
        });
        true
    }

    fn into_decided(self) -> Vec<Decided> {
        let mut decided: Vec<_> = self.calls.into_iter().map(Decided::unasked).collect();
        for open in self.requests {
            if let Some(call) = decided.get_mut(open.call) {
                (call.decision, call.origin) = (open.decision, open.origin);
            }
        }
        decided
    }
}

/// Gives answers to the batch that waits in the session. Unless they resolve it or leave it
/// waiting, it is abandoned.
pub(crate) fn settle(session: &Session, answers: &[ApprovalAnswer]) -> Answered {
    let Ok(mut batch) = serde_json::from_value::<OpenBatch>(session.part(PART)) else {
        return Answered::Nothing;
    };
    let counted = answers.iter().filter(|answer| batch.take(answer)).count();
    if counted == 0 {
        session.set_part(PART, Value::Null);
        return Answered::Nothing;
    }
    let waiting = batch.waiting();
    if !waiting.is_empty() {
        batch.record(session);
        return Answered::Waiting(waiting);
    }
    session.set_part(PART, Value::Null);
    Answered::Complete(batch.into_decided())
}

/// Whether two texts of arguments mean the same. Texts that are not JSON have to be equal.
pub(super) fn same_arguments(left: &str, right: &str) -> bool {
    let value = |text: &str| cofferdam_tool::output::parse_json(text).ok();
    left == right
        || value(left)
            .is_some_and(|left| value(right).is_some_and(|right| same_value(&left, &right)))
}

/// Whether two JSON values are the same: members in any order, `1` and `1.0` alike.
fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            // As floats only where one of them is written as one: large integers keep all their
            // digits.
            left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same_value(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let has_same = |(name, left): (&String, &Value)| {
                right.get(name).is_some_and(|right| same_value(left, right))
            };
            left.len() == right.len() && left.iter().all(has_same)
        }
        _ => left == right,
    }
}

/// 128 random bits in hexadecimal digits.
fn fresh_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(HEXLOWER.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session_with(arguments: &[&str]) -> (Session, Vec<ApprovalRequest>) {
        let session = Session::with_id("s");
        let call = |(index, arguments): (usize, &&str)| FunctionCall {
            call_id: index.to_string(),
            name: "f".to_owned(),
            arguments: (*arguments).to_owned(),
            ..FunctionCall::default()
        };
        let calls: Vec<_> = arguments.iter().enumerate().map(call).collect();
        let gated: Vec<_> =
            (0..calls.len()).map(|place| Gated { place, ..Gated::default() }).collect();
        let batch = OpenBatch::new(calls, &gated).unwrap();
        batch.record(&session);
        (session, batch.waiting())
    }

    fn answer(id: &str, approved: Value) -> ApprovalAnswer {
        ApprovalAnswer { id: id.to_owned(), approved, ..ApprovalAnswer::default() }
    }

    #[test]
    fn the_first_of_two_answers_to_one_request_counts() {
        let (session, requests) = session_with(&["{}"]);
        let id = &requests[0].id;
        let answers = [answer(id, false.into()), answer(id, true.into())];
        let Answered::Complete(calls) = settle(&session, &answers) else {
            panic!("all is answered")
        };
        assert_eq!(calls[0].decision, Some(Decision::Refused(None)));
        assert_eq!(settle(&session, &[answer(id, true.into())]), Answered::Nothing);
    }

    #[test]
    fn an_answer_about_another_call_does_not_count() {
        for wrong in [
            ApprovalAnswer { call_id: Some("1".to_owned()), ..ApprovalAnswer::default() },
            ApprovalAnswer { name: Some("g".to_owned()), ..ApprovalAnswer::default() },
            ApprovalAnswer {
                arguments: Some(r#"{"a":2}"#.to_owned()),
                ..ApprovalAnswer::default()
            },
        ] {
            let (session, requests) = session_with(&[r#"{"a":1}"#]);
            let wrong =
                ApprovalAnswer { id: requests[0].id.clone(), approved: true.into(), ..wrong };
            assert_eq!(settle(&session, &[wrong]), Answered::Nothing);
        }
    }

    #[test]
    fn ids_are_fresh() {
        let (_, first) = session_with(&["{}", "{}"]);
        let (_, second) = session_with(&["{}"]);
        assert_eq!(first[0].id.len(), 32);
        assert!(first[0].id != first[1].id && first[0].id != second[0].id);
    }

    #[test]
    fn large_integers_are_not_compared_as_floats() {
        assert!(!same_arguments(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#));
        assert!(same_arguments(r#"{"a":1,"b":[2]}"#, r#"{ "b": [2.0], "a": 1 }"#));
    }
}
