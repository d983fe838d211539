//! Runs that pause, and resume with an answer or from a checkpoint (`WF-12`).

use std::sync::Arc;

use cofferdam_files::{MemoryStore, Quota};
use cofferdam_workflow::{
    Checkpoints, MessageType, Payload, RunOutcome, Snapshot, Step, UserRequest, Workflow,
    WorkflowBuilder, WorkflowError, executor_fn,
};
use serde_json::{Value, json};

use super::super::agent::block_on;
use super::graphs::chain;
use super::{Came, Row, expect, input, same};

/// Description in rows of a run that asks.
pub(super) const ASKS: &str = "an executor asks; the answer resumes it";

/// Subject of a key of `expect`, by the words in it.
enum About {
    /// Number of open requests when the run pauses, or the requests.
    Open,
    /// The same after the answer.
    OpenAfter,
    /// True if the run pauses.
    Pauses,
    /// True if the run has finished at the end.
    Ends,
    Asked,
    OutputsBefore,
    /// Any other key: the final result.
    End,
}

fn about(key: &str, value: &Value) -> About {
    let has = |words: &[&str]| words.iter().any(|word| key.contains(word));
    match key {
        _ if has(&["output", "yield", "result"]) && has(&["before", "first", "paus"]) => {
            About::OutputsBefore
        }
        _ if has(&["pending", "request"]) && has(&["after", "resum"]) => About::OpenAfter,
        "question" | "prompt" | "asked" => About::Asked,
        "request" if !value.is_number() && !value.is_boolean() => About::Asked,
        _ if has(&["paus", "state", "status", "idle"]) => About::Pauses,
        _ if has(&["pending", "request"]) => About::Open,
        "resumes" | "resumed" | "done" | "completed" | "answered" | "finished" => About::Ends,
        _ => About::End,
    }
}

/// Runs an executor that asks. The answer resumes it, in the run that asked and in a restored one.
pub(super) fn request(row: &Row) -> Result<(), String> {
    if row.get("what").is_some_and(|what| what != ASKS) {
        return Err("unknown description".to_owned());
    }
    let answer =
        row.get("answer").or_else(|| row.get("response")).cloned().unwrap_or_else(|| json!("yes"));
    let question = row.get("question").or_else(|| row.get("request")).or_else(|| row.get("prompt"));
    let question = question.cloned().unwrap_or_else(|| json!("what now?"));
    let workflow = asks(&question, wording(row, &answer))?;
    let run = async {
        let paused = workflow.run(input(row)).await.map_err(text)?;
        let [request] = paused.requests() else {
            return Err(format!("{} requests are open", paused.requests().len()));
        };
        let (id, request) = (request.id.clone(), request.clone());
        // Through its JSON form: another process may answer.
        let written = serde_json::to_string(&paused.snapshot).map_err(|error| error.to_string())?;
        let read: Snapshot = serde_json::from_str(&written).map_err(|error| error.to_string())?;
        let resumed = workflow.resume(read).map_err(text)?;
        let ended = resumed.answer(id, Payload::json(answer.clone())).await.map_err(text)?;
        Ok((paused, request, ended))
    };
    let (paused, request, ended) = block_on(run)?;
    expect_pause(row, &paused, &request, &ended, &question)
}

fn text(error: WorkflowError) -> String {
    error.to_string()
}

/// Returns the words around the answer in the yielded output, if the row shows any.
fn wording(row: &Row, answer: &Value) -> Option<(String, String)> {
    let answer = answer.as_str()?;
    let outputs = ["outputs", "output", "outputs_after", "result"]
        .iter()
        .find_map(|name| row.expect.get(*name))?;
    let last = outputs.as_array().map_or(Some(outputs), |list| list.last())?.as_str()?;
    let (before, after) = last.split_once(answer)?;
    Some((before.to_owned(), after.to_owned()))
}

fn asks(question: &Value, wording: Option<(String, String)>) -> Result<Workflow, String> {
    let question = Payload::json(question.clone());
    let asking = executor_fn("a", move |_: Value, step: Step| {
        let question = question.clone();
        async move {
            step.request(question, MessageType::Any)?;
            Ok(())
        }
    });
    let asking = asking.yielding::<Value>().answered(move |_, answer, step: Step| {
        let said = match (&wording, answer.value.as_str()) {
            (Some((before, after)), Some(text)) => json!(format!("{before}{text}{after}")),
            _ => answer.value,
        };
        async move { Ok(step.output(&said)?) }
    });
    Workflow::builder("asks").executor(asking).start("a").build().map_err(|error| error.to_string())
}

fn expect_pause(
    row: &Row,
    paused: &RunOutcome,
    request: &UserRequest,
    ended: &RunOutcome,
    question: &Value,
) -> Result<(), String> {
    let expected = row.expect.as_object().ok_or("`expect` is not an object")?;
    let mut in_the_end = row.clone();
    in_the_end.expect = json!({});
    for (name, value) in expected {
        let before: Vec<_> = paused.outputs().map(|output| &output.value.value).collect();
        let holds = match (about(name, value), value) {
            (About::End, _) => {
                let is_output = ["output", "result"].iter().any(|word| name.contains(word));
                let name = if is_output { "outputs" } else { name };
                in_the_end.expect[name] = value.clone();
                continue;
            }
            (About::Open, Value::Number(_)) => same(value, &json!(paused.requests().len())),
            (About::Open, Value::Array(list)) => list.len() == paused.requests().len(),
            (About::OpenAfter, Value::Number(_)) => same(value, &json!(ended.requests().len())),
            (About::OpenAfter, Value::Array(list)) => list.len() == ended.requests().len(),
            (About::Open | About::Pauses, Value::Bool(pauses)) => {
                *pauses != paused.snapshot.is_done()
            }
            (About::Pauses, Value::String(_)) => !paused.snapshot.is_done(),
            (About::Ends, Value::Bool(is_done)) => *is_done == ended.snapshot.is_done(),
            (About::OutputsBefore, list) => same(list, &json!(before)),
            (About::Asked, asked) => {
                same(asked, &request.prompt.value) && same(question, &request.prompt.value)
            }
            _ => return Err(format!("`{name}` is {value}, which is not understood")),
        };
        if !holds {
            return Err(format!("{name}: expected {value}, got {:?}", paused.snapshot));
        }
    }
    expect(&in_the_end, &Came::ended(ended))
}

/// Restores a checkpoint of a chain into the same workflow or another one.
pub(super) fn restore(row: &Row) -> Result<(), String> {
    let builders: Vec<WorkflowBuilder> = match row.text("structure")? {
        "same" | "unchanged" | "equal" => vec![chain()],
        "changed" | "different" => changed(),
        other => return Err(format!("unknown structure `{other}`")),
    };
    for builder in builders {
        let other = builder.build().map_err(|error| error.to_string())?;
        expect(row, &restored(&other, input(row))?)?;
    }
    Ok(())
}

/// Returns the result of a run that another workflow resumes after its first superstep.
fn restored(other: &Workflow, input: Payload) -> Result<Came, String> {
    let checkpoints = Checkpoints::new(Arc::new(MemoryStore::new(Quota::default())));
    let workflow = chain().build().map_err(|error| error.to_string())?;
    block_on(async {
        let _ended = workflow.run(input).checkpoints(&checkpoints).await.map_err(text)?;
        let ids = checkpoints.list("row").await.map_err(|error| error.to_string())?;
        if ids.len() != 3 {
            return Err(format!("{} checkpoints of 3 supersteps", ids.len()));
        }
        let snapshot = checkpoints.load("row", &ids[0]).await.map_err(|error| error.to_string())?;
        match other.resume(snapshot) {
            Ok(run) => Ok(Came::ended(&run.await.map_err(text)?)),
            Err(error) => {
                Ok(Came { error: Some(error.to_string()), refused: true, ..Came::default() })
            }
        }
    })
}

/// Returns chains that differ in one thing each.
fn changed() -> Vec<WorkflowBuilder> {
    let more = executor_fn("d", async |_: String, _: Step| Ok(()));
    let other_type = executor_fn("d", async |_: Value, _: Step| Ok(()));
    vec![
        chain().executor(more).edge("c", "d"),
        chain().executor(other_type).edge("c", "d"),
        chain().edge("a", "c"),
        chain().output_from(["c"]),
    ]
}
