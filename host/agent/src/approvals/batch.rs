//! Batches of calls that wait for approval.

use cofferdam_tool::invoke::ResumedProgram;
use cofferdam_tool::origin::ToolOrigin;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::program::{OpenProgram, SuspendedCall};
use crate::guard::Objection;
use crate::message::{OBJECTIONS, PROGRAM};
use crate::{ApprovalAnswer, ApprovalRequest, FunctionCall, Session};

/// Part of a session's state that holds the batch.
const PART: &str = "open_approvals";

/// Calls of one reply, some of which wait for approval (`LOOP-36`). Exactly the recorded calls run
/// in the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OpenBatch {
    /// All calls of the reply, in order.
    pub(crate) calls: Vec<FunctionCall>,
    requests: Vec<OpenRequest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct OpenRequest {
    id: String,
    /// Index of the call in `calls`.
    call: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<CallDecision>,
    /// Origin of the tool that the user is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<ToolOrigin>,
    /// Objections of the guard to the call; approving the call approves them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    objections: Vec<Objection>,
    /// Program that waits in the call, if the request is about a call of that program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<OpenProgram>,
}

/// A call that needs approval.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct GatedCall {
    /// Index among the calls.
    pub(crate) index: usize,
    /// Origin of the tool.
    pub(crate) origin: Option<ToolOrigin>,
    /// Objections of the guard to the call.
    pub(crate) objections: Vec<Objection>,
}

/// Decision of the user about one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallDecision {
    /// The call may run.
    Approved,
    /// The call may run despite these objections of the guard.
    ApprovedDespite(Vec<Objection>),
    /// The call may not run, for this reason if one was given.
    Refused(Option<String>),
}

/// A call with the user's decision about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DecidableCall {
    /// The call.
    pub(crate) call: FunctionCall,
    /// Decision of the user, if the user was asked.
    pub(crate) decision: Option<CallDecision>,
    /// Origin of the tool that the user was asked about.
    pub(crate) origin: Option<ToolOrigin>,
    /// Program that the call continues, with the user's decision about one of its calls.
    pub(crate) resumed: Option<ResumedProgram>,
}

impl DecidableCall {
    /// Creates a call that needs no decision.
    pub(crate) fn unasked(call: FunctionCall) -> Self {
        Self { call, decision: None, origin: None, resumed: None }
    }
}

/// Result of applying the user's answers.
#[derive(Debug, PartialEq)]
pub(crate) enum BatchOutcome {
    /// No batch waits, or the batch was abandoned (`LOOP-44`).
    Nothing,
    /// These requests are still to be answered (`LOOP-43`).
    Waiting(Vec<ApprovalRequest>),
    /// Every request is answered: all calls, with the decision about each (`LOOP-40`).
    Complete(Vec<DecidableCall>),
}

impl OpenBatch {
    /// Creates a batch in which the calls in `gated` wait. Fails if there is no randomness for ids.
    pub(crate) fn new(
        calls: Vec<FunctionCall>,
        gated: &[GatedCall],
    ) -> Result<Self, getrandom::Error> {
        let open = |gated: &GatedCall| {
            let GatedCall { index, origin, objections } = gated.clone();
            let (id, decision, program) = (fresh_id()?, None, None);
            Ok(OpenRequest { id, call: index, decision, origin, objections, program })
        };
        Ok(Self { requests: gated.iter().map(open).collect::<Result<_, _>>()?, calls })
    }

    /// Adds suspended calls to the batch of a session, and begins one if there is none. Returns the
    /// requests about them. Fails if there is no randomness for ids.
    pub(crate) fn suspend(
        session: &Session,
        suspended: Vec<SuspendedCall>,
    ) -> Result<Vec<ApprovalRequest>, getrandom::Error> {
        let mut batch: Self = serde_json::from_value(session.part(PART)).unwrap_or_default();
        let first = batch.waiting().len();
        for SuspendedCall { call, decision, program } in suspended {
            batch.requests.push(OpenRequest {
                id: fresh_id()?,
                call: batch.calls.len(),
                decision: None,
                origin: Some(program.origin.clone()),
                objections: Vec::new(),
                program: Some(OpenProgram::new(program, decision)),
            });
            batch.calls.push(call);
        }
        batch.record(session);
        Ok(batch.waiting().split_off(first))
    }

    /// Returns the requests that have not been answered.
    pub(crate) fn waiting(&self) -> Vec<ApprovalRequest> {
        let waiting = self.requests.iter().filter(|request| request.decision.is_none());
        let request = |open: &OpenRequest| {
            let call = self.calls.get(open.call)?;
            let (id, origin) = (open.id.clone(), open.origin.clone());
            let function_call = open.asked(call).clone();
            let mut request =
                ApprovalRequest { id, function_call, origin, ..ApprovalRequest::default() };
            if open.program.is_some() {
                request.extra.insert(PROGRAM.to_owned(), call.call_id.as_str().into());
            }
            if !open.objections.is_empty() {
                let messages: Vec<_> =
                    open.objections.iter().map(|objection| objection.message.as_str()).collect();
                request.extra.insert(OBJECTIONS.to_owned(), messages.into());
            }
            Some(request)
        };
        waiting.filter_map(request).collect()
    }

    /// Writes the batch to the session, replacing an earlier one.
    pub(crate) fn record(&self, session: &Session) {
        // Strings and numbers always serialize. If they did not, nothing could be approved.
        session.set_part(PART, serde_json::to_value(self).unwrap_or(Value::Null));
    }

    /// Applies an answer if it is valid (`LOOP-37` to `LOOP-39`). Returns whether it was.
    fn take(&mut self, answer: &ApprovalAnswer) -> bool {
        let Some(open) = self.requests.iter_mut().find(|open| open.id == answer.id) else {
            return false;
        };
        let Some(call) = self.calls.get(open.call) else { return false };
        let call = open.asked(call);
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
            Value::Bool(true) if open.objections.is_empty() => CallDecision::Approved,
            Value::Bool(true) => CallDecision::ApprovedDespite(open.objections.clone()),
            _ => CallDecision::Refused(answer.reason.clone()),
        });
        true
    }

    fn into_decided(self) -> Vec<DecidableCall> {
        let mut decided: Vec<_> = self.calls.into_iter().map(DecidableCall::unasked).collect();
        for open in self.requests {
            let Some(call) = decided.get_mut(open.call) else { continue };
            match open.program {
                None => (call.decision, call.origin) = (open.decision, open.origin),
                Some(program) => {
                    let (decision, resumed) = program.decided(open.decision);
                    (call.decision, call.resumed) = (Some(decision), Some(resumed));
                }
            }
        }
        decided
    }
}

impl OpenRequest {
    /// Returns the call that the user is asked about, if `call` is the one of the batch.
    fn asked<'c>(&'c self, call: &'c FunctionCall) -> &'c FunctionCall {
        self.program.as_ref().map_or(call, |program| &program.call)
    }
}

/// Returns the requests of a session that wait for an answer. The next run abandons them unless it
/// gets one (`LOOP-44`).
#[must_use]
pub fn open_requests(session: &Session) -> Vec<ApprovalRequest> {
    let batch = serde_json::from_value::<OpenBatch>(session.part(PART));
    batch.map(|batch| batch.waiting()).unwrap_or_default()
}

/// Applies answers to the batch that waits in the session. Abandons the batch if no answer is
/// valid. A complete batch stays in the session until [`forget`] removes it.
pub(crate) fn settle(session: &Session, answers: &[ApprovalAnswer]) -> BatchOutcome {
    let Ok(mut batch) = serde_json::from_value::<OpenBatch>(session.part(PART)) else {
        return BatchOutcome::Nothing;
    };
    let counted = answers.iter().filter(|answer| batch.take(answer)).count();
    if counted == 0 {
        forget(session);
        return BatchOutcome::Nothing;
    }
    let waiting = batch.waiting();
    if !waiting.is_empty() {
        batch.record(session);
        return BatchOutcome::Waiting(waiting);
    }
    BatchOutcome::Complete(batch.into_decided())
}

/// Removes the batch that waits in the session. To be called before the calls of a complete batch
/// start: they run once, and a run that ends earlier can be repeated with the same answers.
pub(crate) fn forget(session: &Session) {
    session.set_part(PART, Value::Null);
}

/// Returns whether two strings of arguments mean the same. Strings that are not JSON have to be
/// equal.
pub(super) fn same_arguments(left: &str, right: &str) -> bool {
    let value = |text: &str| cofferdam_tool::output::parse_json(text).ok();
    left == right
        || value(left)
            .is_some_and(|left| value(right).is_some_and(|right| same_value(&left, &right)))
}

/// Returns whether two JSON values are equal, ignoring the order of members and treating `1` and
/// `1.0` as equal.
pub(super) fn same_value(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            // Compared as floats only if one of them is written as a float, because large integers
            // would lose digits.
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

/// Returns 128 random bits as hexadecimal digits.
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
            (0..calls.len()).map(|index| GatedCall { index, ..GatedCall::default() }).collect();
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
        let BatchOutcome::Complete(calls) = settle(&session, &answers) else {
            panic!("all is answered")
        };
        assert_eq!(calls[0].decision, Some(CallDecision::Refused(None)));
        forget(&session);
        assert_eq!(settle(&session, &[answer(id, true.into())]), BatchOutcome::Nothing);
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
            assert_eq!(settle(&session, &[wrong]), BatchOutcome::Nothing);
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
