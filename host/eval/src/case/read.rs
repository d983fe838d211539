//! Converts the JSON object of a case.

use cofferdam_tool::OutputSchema;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::fields::{Field, Fields};
use super::{
    ArgumentMatch, CALL_COUNT_MAX, CallOrder, EXPECTED_CALLS_MAX, EvalCase, ExpectedAnswer,
    ExpectedCall, InvalidCase, PassCriterion, RUNS_MAX, RunLimits,
};
use crate::text::shortened;

/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Maximum duration of a run in seconds: a day.
const SECONDS_MAX: f64 = 86_400.0;

const CASE: &[&str] = &[
    "name",
    "prompt",
    "turns",
    "runs",
    "pass",
    "calls",
    "order",
    "extra",
    "forbidden",
    "none",
    "answer",
    "rubric",
    "limits",
];
const CALL: &[&str] = &["tool", "arguments", "match", "min", "max"];
const ANSWER: &[&str] = &["contains", "not-contains", "regex", "equals", "schema"];
const LIMITS: &[&str] = &["rounds", "tokens", "seconds"];

pub(super) fn case(written: &Value) -> Result<EvalCase, InvalidCase> {
    let fields = Field { path: String::new(), value: written }.object(CASE)?;
    let runs = fields.read("runs", |field| field.small_number(1, RUNS_MAX))?.unwrap_or(1);
    let case = EvalCase {
        name: fields.required("name")?.string()?,
        turns: turns(&fields)?,
        runs,
        pass: fields.read("pass", |field| pass(field, runs))?.unwrap_or_default(),
        calls: fields.read("calls", calls)?.unwrap_or_default(),
        order: fields.read("order", order)?.unwrap_or_default(),
        extra: fields.read("extra", |field| field.small_number(0, u32::MAX))?,
        forbidden: fields.read("forbidden", Field::strings)?.unwrap_or_default(),
        none: fields.read("none", Field::bool)?.unwrap_or_default(),
        answer: fields.read("answer", answer)?.unwrap_or_default(),
        rubric: fields.read("rubric", Field::string)?,
        limits: fields.read("limits", limits)?.unwrap_or_default(),
        written: written.clone(),
    };
    check(&case, &fields)?;
    Ok(case)
}

/// Checks that the fields do not contradict each other.
fn check(case: &EvalCase, fields: &Fields<'_>) -> Result<(), InvalidCase> {
    let conflict = |name: &str, expected: &str| match fields.get(name) {
        Some(field) => Err(field.invalid(expected)),
        None => Ok(()),
    };
    if case.none && case.calls.iter().any(|call| call.min() > 0) {
        return conflict("none", "false, because the case expects calls");
    }
    if case.order == CallOrder::Exact && case.extra.is_some_and(|extra| extra > 0) {
        return conflict("extra", "0, because the order is exact");
    }
    if case.order != CallOrder::Any && case.calls.is_empty() {
        return conflict("order", "a case with calls, whose order it is");
    }
    let is_expected =
        |tool: &&String| case.calls.iter().any(|call| call.tool == **tool && call.min() > 0);
    match case.forbidden.iter().find(is_expected) {
        Some(tool) => conflict("forbidden", &format!("no tool of `calls`, such as {tool:?}")),
        None => Ok(()),
    }
}

fn turns(fields: &Fields<'_>) -> Result<Vec<String>, InvalidCase> {
    match (fields.get("prompt"), fields.get("turns")) {
        (Some(prompt), None) => Ok(vec![prompt.string()?]),
        (None, Some(turns)) if turns.value.as_array().is_some_and(Vec::is_empty) => {
            Err(turns.invalid("at least one string"))
        }
        (None, Some(turns)) => turns.strings(),
        (prompt, _) => Err(InvalidCase {
            field: "prompt".to_owned(),
            expected: "either `prompt` or `turns`".to_owned(),
            found: if prompt.is_some() { "both" } else { "neither" }.to_owned(),
        }),
    }
}

fn pass(field: Field<'_>, runs: u32) -> Result<PassCriterion, InvalidCase> {
    if field.value.as_str() == Some("all") {
        return Ok(PassCriterion::All);
    }
    let form = "\"all\", {\"rate\": …} or {\"k\": …}";
    let wrong = field.invalid(form);
    if field.value.as_object().is_none_or(|object| object.len() != 1) {
        return Err(wrong);
    }
    let fields = field.object(&["rate", "k"])?;
    if let Some(rate) = fields.read("rate", |rate| rate.fraction(1.0))? {
        return Ok(PassCriterion::Rate(rate));
    }
    let k = fields.required("k")?;
    let expected = format!("a whole number from 1 to {runs}, the number of runs");
    let wrong = k.invalid(expected);
    k.small_number(1, runs).map(PassCriterion::K).map_err(|_| wrong)
}

fn calls(field: Field<'_>) -> Result<Vec<ExpectedCall>, InvalidCase> {
    let count = field.value.as_array().map_or(0, Vec::len);
    if count > EXPECTED_CALLS_MAX {
        return Err(InvalidCase {
            field: field.path,
            expected: format!("at most {EXPECTED_CALLS_MAX} calls"),
            found: count.to_string(),
        });
    }
    field.items()?.into_iter().map(call).collect()
}

fn call(field: Field<'_>) -> Result<ExpectedCall, InvalidCase> {
    let fields = field.object(CALL)?;
    let names = [
        ("partial", ArgumentMatch::Partial),
        ("exact", ArgumentMatch::Exact),
        ("ignore", ArgumentMatch::Ignore),
    ];
    let count = |field: Field<'_>| field.small_number(0, CALL_COUNT_MAX);
    let call = ExpectedCall {
        tool: fields.required("tool")?.string()?,
        arguments: fields.read("arguments", Field::map)?.unwrap_or_default(),
        matching: fields.read("match", |field| field.one_of(&names))?.unwrap_or_default(),
        min: fields.read("min", count)?,
        max: fields.read("max", count)?,
    };
    if let (ArgumentMatch::Ignore, Some(arguments)) = (call.matching, fields.get("arguments")) {
        return Err(arguments.invalid("no arguments, because `match` is \"ignore\""));
    }
    match (fields.get("min"), call.max) {
        (Some(min), Some(max)) if call.min() > max => {
            Err(min.invalid(format!("at most {max}, which is `max`")))
        }
        _ => Ok(call),
    }
}

fn order(field: Field<'_>) -> Result<CallOrder, InvalidCase> {
    field.one_of(&[
        ("any", CallOrder::Any),
        ("in-order", CallOrder::InOrder),
        ("exact", CallOrder::Exact),
    ])
}

fn answer(field: Field<'_>) -> Result<ExpectedAnswer, InvalidCase> {
    let empty = field.invalid(format!("at least one of {}", ANSWER.join(", ")));
    let fields = field.object(ANSWER)?;
    let answer = ExpectedAnswer {
        contains: fields.read("contains", Field::string_or_strings)?.unwrap_or_default(),
        not_contains: fields.read("not-contains", Field::string_or_strings)?.unwrap_or_default(),
        regex: fields.read("regex", pattern)?,
        equals: fields.get("equals").map(|field| field.value.clone()),
        schema: fields.read("schema", schema)?,
    };
    let ExpectedAnswer { contains, not_contains, regex, equals, schema } = &answer;
    let has_text = !contains.is_empty() || !not_contains.is_empty();
    match has_text || regex.is_some() || equals.is_some() || schema.is_some() {
        true => Ok(answer),
        false => Err(empty),
    }
}

fn pattern(field: Field<'_>) -> Result<Regex, InvalidCase> {
    let expected = field.invalid("a regular expression");
    let pattern = field.string()?;
    RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build().map_err(|error| {
        // The message of the library spans several lines, of which the last one has the cause.
        let cause = error.to_string();
        let cause = cause.lines().last().unwrap_or_default();
        let cause = cause.strip_prefix("error: ").unwrap_or(cause).to_owned();
        InvalidCase { found: format!("{}: {}", expected.found, shortened(&cause)), ..expected }
    })
}

fn schema(field: Field<'_>) -> Result<OutputSchema, InvalidCase> {
    let wrong = field.invalid("a JSON Schema");
    OutputSchema::compile("answer", &field.value.to_string())
        .map_err(|error| InvalidCase { found: error.to_string(), ..wrong })
}

fn limits(field: Field<'_>) -> Result<RunLimits, InvalidCase> {
    let fields = field.object(LIMITS)?;
    Ok(RunLimits {
        rounds: fields.read("rounds", |field| field.small_number(1, u32::MAX))?,
        // Below the maximum, so that one more than the limit is a number as well.
        tokens: fields.read("tokens", |field| field.number(1, u64::MAX - 1))?,
        seconds: fields.read("seconds", |field| field.fraction(SECONDS_MAX))?,
    })
}
