//! Compares the calls of a run with the expected ones.

mod assignment;
mod sequence;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use cofferdam_agent::LOAD_TOOL;
use cofferdam_tool::schema::equal;
use cofferdam_tool::search::SEARCH_TOOL;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::assignment::Assignment;
use crate::case::{ArgumentMatch, CallOrder, EvalCase, ExpectedCall};
use crate::text::{counted, shortened};

/// Maximum number of calls of a run that are compared. A run that makes more fails.
pub const COMPARED_CALLS_MAX: usize = 1000;

/// A call that a model made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ObservedCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments: an object, or the string that the model wrote if it is not JSON.
    pub arguments: Value,
    /// True if the result of the call was an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// Returns a sentence for each difference between the calls of a run and the expectations of its
/// case. A failed call counts like any other: the model made it.
pub(crate) fn problems(case: &EvalCase, calls: &[ObservedCall]) -> Vec<String> {
    let calls: Vec<_> = calls.iter().filter(|call| is_compared(case, call)).collect();
    if calls.len() > COMPARED_CALLS_MAX {
        return vec![format!("expected at most {COMPARED_CALLS_MAX} calls, found {}", calls.len())];
    }
    let mut problems = not_allowed(case, &calls);
    let assignment = Assignment::of(&case.calls, &calls);
    let unassigned = assignment.unassigned(&calls);
    problems.extend(miscounted(case, &calls, &assignment, &unassigned));
    let extra = match case.order {
        CallOrder::Any => Some(unassigned.len()),
        // A call that is missing is missing in every order.
        _ if assignment.has_missing(&case.calls) => return problems,
        CallOrder::InOrder | CallOrder::Exact => sequence::extra(&case.calls, &calls),
    };
    let extra_max = match case.order {
        CallOrder::Exact => 0,
        CallOrder::Any | CallOrder::InOrder => case.extra.map_or(usize::MAX, to_usize),
    };
    match extra {
        Some(extra) if extra <= extra_max => {}
        Some(_) if unassigned.len() > extra_max => {
            let bound = match extra_max {
                0 => "no extra calls".to_owned(),
                max => format!("at most {}", counted(max as u64, "extra call")),
            };
            let found = unassigned.len();
            problems.push(format!("expected {bound}, found {found}: {}", tally(&unassigned)));
        }
        _ => problems.push(misordered(case, &calls)),
    }
    problems
}

/// Returns whether a call counts. Calls that search for tools and load them are a part of the
/// agent's work, unless the case names these tools.
fn is_compared(case: &EvalCase, call: &ObservedCall) -> bool {
    let is_of_search = [SEARCH_TOOL, LOAD_TOOL].contains(&call.tool.as_str());
    !is_of_search
        || case.forbidden.contains(&call.tool)
        || case.calls.iter().any(|expected| expected.tool == call.tool)
}

/// Returns the calls that the case forbids.
fn not_allowed(case: &EvalCase, calls: &[&ObservedCall]) -> Vec<String> {
    let mut problems = Vec::new();
    if case.none && !calls.is_empty() {
        problems.push(format!("expected no calls, found {}: {}", calls.len(), tally(calls)));
    }
    for tool in &case.forbidden {
        let found: Vec<_> = calls.iter().copied().filter(|call| call.tool == *tool).collect();
        if let Some(first) = found.first() {
            problems.push(format!(
                "expected no call of `{tool}`, which is forbidden, found {}, the first with {}",
                found.len(),
                shortened(&first.arguments.to_string())
            ));
        }
    }
    problems
}

/// Returns the expected calls of which there are too few or too many.
fn miscounted(
    case: &EvalCase,
    calls: &[&ObservedCall],
    assignment: &Assignment,
    unassigned: &[&ObservedCall],
) -> Vec<String> {
    let mut problems = Vec::new();
    for (expected, count) in case.calls.iter().zip(assignment.counts()) {
        let (min, found) = (to_usize(expected.min()), number(count));
        if count < min {
            let bound = match min {
                1 => "a call".to_owned(),
                min => format!("at least {min} calls"),
            };
            let other = other_arguments(expected, calls, unassigned);
            problems.push(format!("expected {bound} of {}, found {found}{other}", named(expected)));
        }
        let surplus = unassigned.iter().filter(|call| is_match(expected, call)).count();
        if let Some(max) = expected.max.filter(|_| surplus > 0) {
            let bound = match max {
                0 => "no call".to_owned(),
                max => format!("at most {}", counted(max.into(), "call")),
            };
            let found = count + surplus;
            problems.push(format!("expected {bound} of {}, found {found}", named(expected)));
        }
    }
    problems
}

fn number(count: usize) -> String {
    match count {
        0 => "none".to_owned(),
        count => count.to_string(),
    }
}

/// Describes a call of the tool that has other arguments, which is often a mistake of the model.
fn other_arguments(
    expected: &ExpectedCall,
    calls: &[&ObservedCall],
    unassigned: &[&ObservedCall],
) -> String {
    let same_tool = |call: &&&ObservedCall| call.tool == expected.tool;
    if let Some(call) = unassigned.iter().find(same_tool) {
        let arguments = shortened(&call.arguments.to_string());
        return format!(", but a call of `{}` with {arguments}", expected.tool);
    }
    match calls.is_empty() {
        true => " (the model called no tool)".to_owned(),
        false => format!(" (the model called {})", tally(calls)),
    }
}

fn misordered(case: &EvalCase, calls: &[&ObservedCall]) -> String {
    let expected: Vec<_> = case.calls.iter().map(named).collect();
    let found: Vec<_> = calls.iter().map(|call| described(call)).collect();
    let exactly = match case.order {
        CallOrder::Exact => "exactly the calls",
        CallOrder::Any | CallOrder::InOrder => "the calls in this order:",
    };
    format!("expected {exactly} {}; found {}", expected.join(", "), shortened(&found.join(", ")))
}

/// Returns the name of a tool and the arguments that a call of it should have.
fn named(expected: &ExpectedCall) -> String {
    let ExpectedCall { tool, arguments, matching, .. } = expected;
    let json = || shortened(&Value::Object(arguments.clone()).to_string());
    match matching {
        ArgumentMatch::Partial if !arguments.is_empty() => format!("`{tool}` with {}", json()),
        ArgumentMatch::Exact => format!("`{tool}` with exactly {}", json()),
        ArgumentMatch::Partial | ArgumentMatch::Ignore => format!("`{tool}`"),
    }
}

fn described(call: &ObservedCall) -> String {
    format!("`{}` with {}", call.tool, call.arguments)
}

/// Returns the names of the called tools with the number of calls of each.
fn tally(calls: &[&ObservedCall]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for call in calls {
        *counts.entry(&call.tool).or_default() += 1;
    }
    let names = counts.into_iter().map(|(tool, count)| match count {
        1 => format!("`{tool}`"),
        count => format!("`{tool}` ({count} times)"),
    });
    shortened(&names.collect::<Vec<_>>().join(", "))
}

/// Returns whether a call is one that is expected.
fn is_match(expected: &ExpectedCall, call: &ObservedCall) -> bool {
    if expected.tool != call.tool {
        return false;
    }
    let Some(arguments) = call.arguments.as_object() else {
        return expected.matching == ArgumentMatch::Ignore;
    };
    match expected.matching {
        ArgumentMatch::Ignore => true,
        ArgumentMatch::Partial => {
            let mut members = expected.arguments.iter();
            members.all(|(name, value)| arguments.get(name).is_some_and(|got| has(got, value)))
        }
        ArgumentMatch::Exact => {
            expected.arguments.len() == arguments.len()
                && expected
                    .arguments
                    .iter()
                    .all(|(name, value)| arguments.get(name).is_some_and(|got| equal(got, value)))
        }
    }
}

/// Returns whether a value has everything that is expected of it.
fn has(got: &Value, expected: &Value) -> bool {
    match (got, expected) {
        (Value::Object(got), Value::Object(expected)) => expected
            .iter()
            .all(|(name, expected)| got.get(name).is_some_and(|got| has(got, expected))),
        (Value::Array(got), Value::Array(expected)) => {
            got.len() == expected.len()
                && got.iter().zip(expected).all(|(got, expected)| has(got, expected))
        }
        _ => equal(got, expected),
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
