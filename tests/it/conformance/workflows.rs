//! Rows of `workflows.jsonl`: graphs, output selection, requests, checkpoints, orchestrations.
//!
//! Words name graphs (`graphs`) and situations. Where a row shows words of a fixture that no rule
//! fixes (the message of a failing executor, an id that a selection invents, a list written as one
//! string), the fixture uses the words of the row; what the product makes of them is compared as
//! usual.

mod agents;
mod graphs;
mod pauses;

use cofferdam_workflow::{
    InvalidWorkflow, Payload, ProducedOutput, RunOutcome, Workflow, WorkflowError, WorkflowEvent,
};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::agent::block_on;
use super::{Row, same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    match row.op.as_str() {
        "workflow" => match row.get("scenario") {
            None if row.get("what") == Some(&json!(pauses::ASKS)) => pauses::request(row),
            _ => expect(row, &came_of(graphs::of(row)?, input(row))?),
        },
        "selection" => expect(row, &came_of(graphs::selection(row)?, input(row))?),
        "default_max_iterations" => default_max_iterations(row),
        "request" => pauses::request(row),
        "restore" => pauses::restore(row),
        "orchestration" => agents::orchestration(row),
        "orchestration_build" => agents::build(row),
        "handoff" => agents::handoff(row),
        other => Err(format!("unknown operation `{other}`")),
    }
}

/// Result of a workflow as rows write it.
#[derive(Default)]
struct Came {
    outputs: Vec<Value>,
    intermediate: Vec<Value>,
    events: Vec<String>,
    /// The error's own message; for an executor's error, the message of the executor.
    error: Option<String>,
    /// True if nothing ran.
    refused: bool,
}

fn input(row: &Row) -> Payload {
    Payload::json(row.get("input").cloned().unwrap_or_else(|| json!("in")))
}

/// Builds and runs a workflow.
fn came_of(built: Result<Workflow, InvalidWorkflow>, input: Payload) -> Result<Came, String> {
    let workflow = match built {
        Ok(workflow) => workflow,
        Err(error) => {
            return Ok(Came { error: Some(error.to_string()), refused: true, ..Came::default() });
        }
    };
    block_on(async {
        let mut stream = workflow.run(input).stream();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            events.push(event);
        }
        let mut came = Came::of(&events);
        if let Err(error) = stream.finish().await {
            came.refused = matches!(error, WorkflowError::Input { .. }) && events.is_empty();
            came.error = Some(match error {
                WorkflowError::Executor { source, .. } => source.to_string(),
                other => other.to_string(),
            });
        }
        Ok(came)
    })
}

impl Came {
    fn of(events: &[WorkflowEvent]) -> Self {
        let produced = |wanted: fn(&WorkflowEvent) -> Option<&ProducedOutput>| {
            events.iter().filter_map(wanted).map(|produced| produced.value.value.clone()).collect()
        };
        Self {
            outputs: produced(|event| match event {
                WorkflowEvent::Output(produced) => Some(produced),
                _ => None,
            }),
            intermediate: produced(|event| match event {
                WorkflowEvent::Intermediate(produced) => Some(produced),
                _ => None,
            }),
            events: events.iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    fn ended(ended: &RunOutcome) -> Self {
        Self::of(&ended.events)
    }
}

/// Compares every key of `expect`. An error must be expected.
fn expect(row: &Row, came: &Came) -> Result<(), String> {
    let expected = row.expect.as_object().ok_or("`expect` is not an object")?;
    let is_failure = |name: &String| {
        ["error", "error_prefix", "error_contains", "refused", "raises", "raised"]
            .contains(&name.as_str())
    };
    if let Some(error) = came.error.as_ref().filter(|_| !expected.keys().any(is_failure)) {
        return Err(format!("failed with `{error}`"));
    }
    expected.iter().try_for_each(|(name, value)| expect_one(name, value, came))
}

fn expect_one(name: &str, expected: &Value, came: &Came) -> Result<(), String> {
    let error = came.error.as_deref();
    let text = expected.as_str();
    let holds = match name {
        "outputs" | "output" => same_outputs(expected, &came.outputs),
        "intermediate" | "intermediates" => same_outputs(expected, &came.intermediate),
        "events" => same(expected, &json!(came.events)),
        "supersteps" => {
            let completed =
                came.events.iter().filter(|event| event.starts_with("superstep_completed#"));
            same(expected, &json!(completed.count()))
        }
        "error" | "raises" if expected.is_boolean() => expected == &json!(error.is_some()),
        "error" | "raises" => error == text,
        "error_prefix" => {
            text.is_some_and(|text| error.is_some_and(|error| error.starts_with(text)))
        }
        "error_contains" => {
            text.is_some_and(|text| error.is_some_and(|error| error.contains(text)))
        }
        "raised" => expected == &json!(error.is_some()),
        "refused" => expected == &json!(came.refused),
        other => return Err(format!("unknown key `{other}` of `expect`")),
    };
    if holds {
        return Ok(());
    }
    Err(format!(
        "{name}: expected {expected}, got outputs {:?}, intermediate {:?}, events {:?}, error \
         {error:?}, refused {}",
        came.outputs, came.intermediate, came.events, came.refused
    ))
}

fn same_outputs(expected: &Value, got: &[Value]) -> bool {
    match expected.as_array() {
        Some(expected) if expected.len() == got.len() => {
            expected.iter().zip(got).all(|(expected, got)| same_output(expected, got))
        }
        Some(expected) => got.len() == 1 && same(&json!(expected), &got[0]),
        None => got.last().is_some_and(|got| same_output(expected, got)),
    }
}

/// Compares outputs. A list of a fan-in may be written as one string: its parts in order, with
/// anything but letters between them, and the executor's id around it.
fn same_output(expected: &Value, got: &Value) -> bool {
    if same(expected, got) {
        return true;
    }
    let (Some(text), Some(parts)) = (expected.as_str(), got.as_array()) else { return false };
    let parts: Vec<_> = parts.iter().filter_map(Value::as_str).collect();
    let text = text.strip_prefix("j:").unwrap_or(text);
    let mut left = text.strip_suffix(">j").unwrap_or(text);
    for (index, part) in parts.iter().enumerate() {
        let Some((before, after)) = left.split_once(part) else { return false };
        if before.chars().any(char::is_alphanumeric) || (index > 0 && before.is_empty()) {
            return false;
        }
        left = after;
    }
    !parts.is_empty() && !left.chars().any(char::is_alphanumeric)
}

/// Checks the default limit with an endless run.
fn default_max_iterations(row: &Row) -> Result<(), String> {
    let workflow = graphs::endless().build().map_err(|error| error.to_string())?;
    let max = workflow.limits().max_iterations;
    let came = came_of(Ok(workflow), Payload::text("in"))?;
    let error = came.error.unwrap_or_default();
    if error != format!("Runner did not converge after {max} iterations.") {
        return Err(format!("the default is {max}, and an endless run ends with `{error}`"));
    }
    super::expect_same("max_iterations", &row.expect, &json!(max))
}

/// Runs every scenario and description of the vocabulary, even if no row uses it.
#[test]
fn every_word_of_the_vocabulary_is_known() {
    const SCENARIOS: &str = "bad-input-type; boom; chain-default; chain-inter-all-other; chain-inter-only; chain-output-all; \
        chain-output-bad; chain-output-c; chain-output-c-inter-b; chain-output-c-inter-other; \
        chain-output-dup; \
        chain-output-empty; chain-overlap; cond-false; cond-true; dup-edge; dup-id; fan; \
        fan-in-partial; multi-select-b; \
        multi-select-b+c; multi-select-none; multi-select-unknown; no-convergence; self-loop; \
        shared-state; single; \
        switch-no-default; switch-q; switch-xy; switch-yx; type-mismatch; unreachable";
    let rows = SCENARIOS.split("; ").map(|word| ("scenario", word));
    let described = graphs::descriptions().chain([pauses::ASKS]).map(|words| ("what", words));
    let mut looked_at = 0;
    for (name, word) in rows.chain(described) {
        let line = json!({"id": "w", "op": "workflow", name: word, "input": "in", "expect": {}});
        let row = Row::parse(&line.to_string()).unwrap();
        // Without expectations a word may fail only with an error of the workflow.
        let ended = run(&row);
        let is_failure = ended.as_ref().is_err_and(|error| !error.starts_with("failed with"));
        assert!(!is_failure, "{word}: {ended:?}");
        looked_at += 1;
    }
    assert_eq!(looked_at, 33 + 30);
    let unknown = json!({"id": "w", "op": "workflow", "scenario": "chain-odd", "expect": {}});
    assert!(run(&Row::parse(&unknown.to_string()).unwrap()).is_err());
}
