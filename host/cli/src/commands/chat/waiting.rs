//! Calls that wait in a session for the user's approval: those of programs, and those of the same
//! reply.

use std::collections::BTreeMap;

use cofferdam_agent::{ApprovalRequest, MessageContent};

use crate::exit::UsageError;
use crate::print;

/// Answers of the command line to requests that wait in a session, by their ids.
#[derive(Debug, Default)]
pub(super) struct TypedDecisions(BTreeMap<String, TypedDecision>);

/// Answer to one request.
#[derive(Debug, PartialEq, Eq)]
struct TypedDecision {
    is_approved: bool,
    /// Reason for a refusal.
    reason: Option<String>,
}

impl TypedDecisions {
    /// Parses the values of `--answer`.
    pub(super) fn parse(typed: &[String]) -> Result<Self, UsageError> {
        let mut decisions = BTreeMap::new();
        for answer in typed {
            let (id, decision) = parse(answer).ok_or_else(|| {
                UsageError(format!(
                    "--answer: expected ID=yes, ID=no or ID=no:REASON, found `{answer}`"
                ))
            })?;
            if decisions.insert(id.to_owned(), decision).is_some() {
                return Err(UsageError(format!("--answer: `{id}` is answered twice")));
            }
        }
        Ok(Self(decisions))
    }

    /// Returns an error if an answer is to none of these requests.
    pub(super) fn check(&self, requests: &[ApprovalRequest]) -> Result<(), UsageError> {
        let is_unknown = |id: &&String| !requests.iter().any(|request| request.id == **id);
        match self.0.keys().find(is_unknown) {
            Some(id) => {
                Err(UsageError(format!("--answer: no request `{id}` waits in the session")))
            }
            None => Ok(()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether there is an answer to a request.
    pub(super) fn has(&self, request: &ApprovalRequest) -> bool {
        self.0.contains_key(&request.id)
    }

    /// Removes and returns the answer to a request.
    pub(super) fn take(&mut self, request: &ApprovalRequest) -> Option<MessageContent> {
        let TypedDecision { is_approved, reason } = self.0.remove(&request.id)?;
        Some(if is_approved { request.approve() } else { request.refuse(reason) })
    }
}

fn parse(answer: &str) -> Option<(&str, TypedDecision)> {
    let (id, word) = answer.split_once('=').filter(|(id, _)| !id.is_empty())?;
    let refused = |reason: Option<&str>| TypedDecision {
        is_approved: false,
        reason: reason.map(str::to_owned),
    };
    let decision = match (word, word.split_once(':')) {
        ("yes", _) => TypedDecision { is_approved: true, reason: None },
        ("no", _) => refused(None),
        (_, Some(("no", reason))) => refused(Some(reason.trim())),
        _ => return None,
    };
    Some((id, decision))
}

/// Says which calls wait in the session, and how to answer.
pub(super) fn note(requests: &[ApprovalRequest], session: &str) {
    for request in requests {
        let call = &request.function_call;
        let caller = if request.is_of_program() { "a program" } else { "the model" };
        let what = format!(
            "request {}: {caller} waits for your approval to call `{}` with",
            request.id, call.name
        );
        print::note(&print::with_prefix(&what, &print::arguments(&call.arguments)));
        request.violations().for_each(|reason| print::note(&format!("  against it: {reason}")));
    }
    let answers: Vec<_> =
        requests.iter().map(|request| format!("--answer {}=yes", request.id)).collect();
    print::note(&format!(
        "to continue, repeat the command with --session {session} {} (or ID=no) instead of a prompt",
        answers.join(" "),
    ));
}

/// Says that answers were not used because others are missing.
pub(super) fn note_missing() {
    print::note("nothing was continued: the requests of a reply have to be answered together");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_yes_or_no_with_a_reason() {
        let parsed = |answer| {
            parse(answer).map(|(id, decision)| (id, decision.is_approved, decision.reason))
        };
        assert_eq!(parsed("a=yes"), Some(("a", true, None)));
        assert_eq!(parsed("a=no"), Some(("a", false, None)));
        assert_eq!(parsed("a=no: not now"), Some(("a", false, Some("not now".to_owned()))));
        for wrong in ["a", "=yes", "a=", "a=maybe", "a=yes:ok", "a=YES"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
        let twice = ["a=yes".to_owned(), "a=no".to_owned()];
        assert!(TypedDecisions::parse(&twice).is_err());
    }
}
