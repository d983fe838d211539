//! Compares what a run did with the expectations of its case that rules can decide.

use cofferdam_tool::schema::equal;
use serde_json::Value;

use crate::calls::{self, ObservedCall};
use crate::case::{EvalCase, ExpectedAnswer, RunLimits};
use crate::text::{counted, shortened};

/// What a run did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observation {
    pub(crate) calls: Vec<ObservedCall>,
    pub(crate) answer: String,
    pub(crate) rounds: u32,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    /// Total as reported, which may be more than the sum of the others.
    pub(crate) total_tokens: u64,
    pub(crate) seconds: f64,
}

/// Returns a sentence for each expectation that a run does not meet.
pub(crate) fn reasons(case: &EvalCase, seen: &Observation) -> Vec<String> {
    let mut reasons = calls::problems(case, &seen.calls);
    reasons.extend(answer_problems(&case.answer, &seen.answer));
    reasons.extend(exceeded(&case.limits, seen));
    reasons
}

/// Returns the limits that a run has exceeded.
pub(crate) fn exceeded(limits: &RunLimits, seen: &Observation) -> Vec<String> {
    let mut reasons = Vec::new();
    if let Some(max) = limits.rounds.filter(|max| seen.rounds > *max) {
        reasons.push(format!(
            "expected at most {}, found {}",
            counted(max.into(), "model request"),
            seen.rounds
        ));
    }
    let tokens = seen.total_tokens;
    if let Some(max) = limits.tokens.filter(|max| tokens > *max) {
        reasons.push(format!("expected at most {}, found {tokens}", counted(max, "token")));
    }
    if let Some(max) = limits.seconds.filter(|max| seen.seconds > *max) {
        reasons.push(format!("expected at most {max} s, found {:.3} s", seen.seconds));
    }
    reasons
}

fn answer_problems(expected: &ExpectedAnswer, answer: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let found = || format!("found {:?}", shortened(answer));
    for part in expected.contains.iter().filter(|part| !answer.contains(part.as_str())) {
        reasons.push(format!("expected an answer that contains {part:?}, {}", found()));
    }
    for part in expected.not_contains.iter().filter(|part| answer.contains(part.as_str())) {
        reasons.push(format!("expected an answer without {part:?}, {}", found()));
    }
    if let Some(regex) = expected.regex.as_ref().filter(|regex| !regex.is_match(answer)) {
        reasons.push(format!("expected an answer that matches `{regex}`, {}", found()));
    }
    if let Some(value) = &expected.equals
        && !is_answer(value, answer)
    {
        let value = shortened(&value.to_string());
        reasons.push(format!("expected the answer {value}, {}", found()));
    }
    if let Some(schema) = &expected.schema {
        match serde_json::from_str(answer.trim()) {
            Err(_) => reasons.push(format!("expected an answer in JSON, {}", found())),
            Ok(value) => {
                let checked = schema.validate(&value);
                let problem = |error| format!("expected an answer valid by the schema: {error}");
                reasons.extend(checked.err().map(problem));
            }
        }
    }
    reasons
}

/// Returns whether the answer is a string or, for any other value, this value in JSON.
fn is_answer(expected: &Value, answer: &str) -> bool {
    let answer = answer.trim();
    match expected {
        Value::String(text) => text.trim() == answer,
        other => serde_json::from_str(answer).is_ok_and(|value: Value| equal(other, &value)),
    }
}
