//! Rows of `results.jsonl`: outcomes of calls, the model's view of them, and the record.
//!
//! Every guest is a component that runs in the engine. Traps that no compiler emits come from
//! modules in the text format.

pub(super) mod fixtures;
mod words;

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cofferdam_tool::usage::{Usage, UsageLimits};
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Content, ErrorType, Outcome, Output, RefusedCall,
    ToolError, ToolFailure,
};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use self::fixtures::{Fixture, HostTool, World};
use super::{Row, expect_same};
use crate::module::{Answer, Item, Module};

pub(super) fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(World::new)
}

pub(crate) fn run(row: &Row) -> Result<(), String> {
    let world = world();
    world.run(async {
        match row.op.as_str() {
            "guest" => guest(world, row).await,
            "returns" => returns(world, row).await,
            "output_schema" => output_schema(world, row).await,
            "host_tool_raises" => host_tool_raises(row).await,
            "cancel" => cancel(world, row).await,
            "retry" => retry(world, row).await,
            "after" => after(world, row).await,
            "record" => record(world, row).await,
            "limits" => limits(world, row).await,
            "mcp" => mcp(world, row).await,
            "text" => text(row),
            other => Err(format!("unknown operation `{other}`")),
        }
    })
}

async fn guest(world: &World, row: &Row) -> Result<(), String> {
    let fixture = fixtures::does(world, row.text("does")?).await?;
    let completion = fixture.call(&CallContext::new("row")).await;
    compare(&row.expect, &completion, fixture.value.as_ref(), true)
}

async fn returns(world: &World, row: &Row) -> Result<(), String> {
    let fixture = match row.get("does") {
        Some(_) => fixtures::does(world, row.text("does")?).await?,
        None => returning(world, row, None).await?,
    };
    let mut converts = true;
    for (name, value) in row.get("setting").and_then(Value::as_object).into_iter().flatten() {
        match (name.as_str(), value) {
            ("convert_failures", Value::Bool(value)) => converts = *value,
            _ => return Err(format!("unknown setting `{name}`")),
        }
    }
    compare(&row.expect, &fixture.call(&CallContext::new("row")).await, None, converts)
}

async fn output_schema(world: &World, row: &Row) -> Result<(), String> {
    let schema = row.required("schema")?.to_string();
    let fixture = returning(world, row, Some(&schema)).await?;
    compare(&row.expect, &fixture.call(&CallContext::new("row")).await, None, true)
}

/// Returns a guest that returns the value of the row: `plain`, `ok` or `value`; `failure` or
/// `failure_value`.
pub(super) async fn returning(
    world: &World,
    row: &Row,
    output_schema: Option<&str>,
) -> Result<Fixture, String> {
    if let Some(failure) = row.get("failure").filter(|failure| failure.get("message").is_some()) {
        let text = |name: &str| failure.get(name).and_then(Value::as_str);
        let value = failure.get("value").map(Value::to_string);
        let transient = failure.get("transient").and_then(Value::as_bool);
        let (message, suggestion) = (text("message").unwrap_or_default(), text("suggestion"));
        let answer = Answer::Failure { message, suggestion, transient, value: value.as_deref() };
        return Ok(world.module(Module { output_schema, answer, ..Module::default() }).await);
    }
    // An error value may be null.
    if let Some(value) = row.value.get("failure_value").or(row.value.get("failure")) {
        let value = value.to_string();
        let answer =
            Answer::Failure { message: "", suggestion: None, transient: None, value: Some(&value) };
        return Ok(world.module(Module { output_schema, answer, ..Module::default() }).await);
    }
    let value = ["plain", "ok", "value"].into_iter().find_map(|name| row.value.get(name));
    let value = value.ok_or("the row does not say what is returned")?.to_string();
    let answer = Answer::Contents(vec![Item::Json(&value)]);
    Ok(world.module(Module { output_schema, answer, ..Module::default() }).await)
}

async fn host_tool_raises(row: &Row) -> Result<(), String> {
    let error = ToolError::host(row.text("type")?);
    let error = row
        .get("message")
        .and_then(Value::as_str)
        .map_or(error.clone(), |text| error.with_detail(text));
    let error = match row.get("formatter").or(row.get("formatted")).or(row.get("error_value")) {
        Some(value) => error.with_error_value(|_| value.clone()),
        None => error,
    };
    let converts = row.get("convert_failures") != Some(&Value::Bool(false));
    let fixture = Fixture::new(Arc::new(HostTool(Outcome::Error(error))), "t", json!({}));
    compare(&row.expect, &fixture.call(&CallContext::new("row")).await, None, converts)
}

async fn cancel(world: &World, row: &Row) -> Result<(), String> {
    let fixture = fixtures::ends_as(world, "cancelled").await?;
    let mut context = CallContext::new("row");
    match row.text("does")? {
        "caller cancels before" => context.cancellation.cancel(),
        "caller cancels during" => cancel_soon(&context),
        "caller deadline passes" => {
            context.deadline = Some(Instant::now() + Duration::from_millis(50))
        }
        other => return Err(format!("unknown situation `{other}`")),
    }
    compare(&row.expect, &fixture.call(&context).await, None, true)
}

fn cancel_soon(context: &CallContext) {
    let token = context.cancellation.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(50)).await;
        token.cancel();
    });
}

async fn retry(world: &World, row: &Row) -> Result<(), String> {
    let (fixture, context) = fixtures::retried(world, row.text("does")?).await?;
    compare(&row.expect, &fixture.call(&context).await, None, true)
}

/// Makes calls that end as `outcome`, and then calls the same plugin again.
async fn after(world: &World, row: &Row) -> Result<(), String> {
    let fixture = fixtures::ends_as(world, row.text("outcome")?).await?;
    let first = end(&fixture, row.text("outcome")?).await;
    let next = fixture
        .toolset
        .call("ok", None, &CallContext::new("next"))
        .await
        .map_err(|e| e.to_string())?;
    let works = next.outcome.shown().is_some_and(|shown| shown.text() == "ok");
    for (key, expected) in object(&row.expect)? {
        let got = match key.as_str() {
            "instance_discarded" => {
                json!(!matches!(first.outcome, Outcome::Ok(_) | Outcome::Failure(_)))
            }
            "next_call_works" => json!(works),
            "outcome" => json!(first.outcome.word()),
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        expect_same(key, expected, &got)?;
    }
    Ok(())
}

async fn end(fixture: &Fixture, outcome: &str) -> Completion {
    let context = CallContext::new("row");
    if outcome.starts_with("cancel") {
        cancel_soon(&context);
    }
    fixture.call(&context).await
}

/// Checks the record of an error by its type, or of a guest's call.
async fn record(world: &World, row: &Row) -> Result<(), String> {
    let completion = match row.get("type").and_then(Value::as_str) {
        Some(name) => {
            let error_type =
                ErrorType::named(name).ok_or_else(|| format!("unknown type `{name}`"))?;
            let outcome = Outcome::Error(ToolError::new(error_type));
            Fixture::new(Arc::new(HostTool(outcome)), "t", json!({}))
                .call(&CallContext::new("row"))
                .await
        }
        None => end(&fixtures::ends_as(world, row.text("after")?).await?, row.text("after")?).await,
    };
    compare(&row.expect, &completion, None, true)
}

async fn limits(world: &World, row: &Row) -> Result<(), String> {
    let limit =
        |name: &str| row.get(name).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let at_least_one =
        |name: &str| limit(name).map(|n| NonZeroU32::new(n).ok_or("a limit of 0")).transpose();
    let read = at_least_one("max_invocations").and_then(|max_invocations| {
        Ok(UsageLimits {
            max_invocations,
            max_invocation_failures: at_least_one("max_invocation_failures")?,
        })
    });
    let mut answers = Vec::new();
    if let Ok(limits) = read {
        let mut fixture =
            each(world, row.get("each").and_then(Value::as_str).unwrap_or("ok")).await?;
        fixture.toolset.count_usage("t", Arc::new(Usage::new(limits)));
        for _ in 0..row.get("calls").and_then(Value::as_u64).unwrap_or(0) {
            answers.push(answered(fixture.toolset.call("t", None, &CallContext::new("row")).await));
        }
    }
    for (key, expected) in object(&row.expect)? {
        let ordinals = ["first", "second", "third", "fourth", "fifth"];
        let got = match ordinals.iter().position(|ordinal| ordinal == key) {
            Some(index) => answers.get(index).cloned().unwrap_or(Value::Null),
            None if key == "last" => answers.last().cloned().unwrap_or(Value::Null),
            None if key == "refused" => json!(read.is_err()),
            None => return Err(format!("unknown key `{key}` in `expect`")),
        };
        expect_same(key, expected, &got)?;
    }
    Ok(())
}

/// Returns a tool `t` whose calls all end like this.
async fn each(world: &World, word: &str) -> Result<Fixture, String> {
    let failure =
        Answer::Failure { message: "nope", suggestion: None, transient: None, value: None };
    Ok(match word {
        "trap" => world.module(Module { body: "(unreachable)", ..Module::default() }).await,
        "ok" => world.module(Module::default()).await,
        "failure" => world.module(Module { answer: failure, ..Module::default() }).await,
        other => return Err(format!("unknown word `{other}`")),
    })
}

fn answered(called: Result<Completion, RefusedCall>) -> Value {
    match called {
        Ok(completion) => {
            completion.outcome.shown().map_or(Value::Null, |shown| as_json(&shown.output))
        }
        Err(refused) => Value::String(refused.to_string()),
    }
}

/// Checks the result for an MCP client: `isError`, and its text.
async fn mcp(world: &World, row: &Row) -> Result<(), String> {
    let fixture = match (row.get("does"), row.get("outcome").or(row.get("after"))) {
        (Some(_), _) => fixtures::does(world, row.text("does")?).await?,
        (None, Some(outcome)) => {
            fixtures::ends_as(world, outcome.as_str().unwrap_or_default()).await?
        }
        (None, None) => returning(world, row, None).await?,
    };
    let shown =
        fixture.call(&CallContext::new("row")).await.outcome.shown().ok_or("nothing is shown")?;
    for (key, expected) in object(&row.expect)? {
        let got = match key.as_str() {
            "isError" | "is_error" => json!(shown.is_error),
            "text" => json!(shown.text()),
            "shown" => as_json(&shown.output),
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        expect_same(key, expected, &got)?;
    }
    Ok(())
}

fn text(row: &Row) -> Result<(), String> {
    if let Some(error) = row.get("error") {
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        let mut failure = ToolFailure::new(text("message").unwrap_or_default());
        failure.suggestion = text("suggestion").map(str::to_owned);
        let shown = Outcome::Failure(failure).shown().ok_or("nothing is shown")?;
        return expect_same("text", &row.expect, &json!(shown.text()));
    }
    let output = match row.get("contents") {
        Some(contents) => {
            let contents = contents.as_array().ok_or("`contents` is not a list")?;
            Output::Contents(contents.iter().map(content).collect::<Result<_, _>>()?)
        }
        None => Output::Value(row.value.get("value").cloned().ok_or("the row has no `value`")?),
    };
    expect_same("text", &row.expect, &json!(output.text()))
}

/// Parses an item: a string, or an object with its kind.
fn content(item: &Value) -> Result<Content, String> {
    let text = |name: &str| item.get(name).and_then(Value::as_str);
    if let Some(text) = item.as_str().or(text("text")) {
        return Ok(Content::Text(text.to_owned()));
    }
    if let Some(value) = item.get("json") {
        return Ok(Content::Json(value.clone()));
    }
    let is_blob = ["blob", "image", "data", "media_type", "mime_type"]
        .iter()
        .any(|name| item.get(name).is_some());
    if is_blob || matches!(text("type"), Some("blob" | "image" | "audio" | "data")) {
        return Ok(Content::Blob { media_type: "image/png".to_owned(), data: Vec::new() });
    }
    Err(format!("unknown content {item}"))
}

/// Compares every key of `expect` with the completion of a call. A caller that does not convert
/// failures gets the typed outcome.
fn compare(
    expect: &Value,
    completion: &Completion,
    value: Option<&Value>,
    converts: bool,
) -> Result<(), String> {
    let Completion { outcome, record } = completion;
    let raised = raised(outcome, converts);
    let shown = outcome.shown().filter(|_| raised.is_none());
    let shown = shown.as_ref();
    for (key, expected) in object(expect)? {
        let got = match key.as_str() {
            "shown" if expected == "the value" => {
                let value = value.ok_or("the situation has no value")?;
                let same = shown.is_some_and(|shown| &as_json(&shown.output) == value);
                json!(if same { "the value" } else { "something else" })
            }
            "shown" => shown.map_or(Value::Null, |shown| as_json(&shown.output)),
            "text" => json!(shown.map(|shown| shown.text())),
            "is_error" => json!(shown.is_some_and(|shown| shown.is_error)),
            "type" => json!(record.error_type),
            "outcome" => json!(record.outcome),
            "transient" => json!(outcome.transient()),
            "attempts" => json!(record.attempts),
            "refusals_recorded" => {
                json!(record.refused.iter().map(|refusal| refusal.times).sum::<u32>())
            }
            "raised" => json!(raised),
            "contains" => contained(expected, shown.map(|shown| shown.text()).unwrap_or_default())?,
            "has" => had(expected, record)?,
            "stderr_tail_max" => {
                json!(record.stderr_tail.len().max(expected.as_u64().unwrap_or(0) as usize))
            }
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        expect_same(key, expected, &got)
            .map_err(|error| format!("{error} ({:?})", record.detail))?;
    }
    Ok(())
}

/// Returns the word for an outcome that a caller gets instead of a result for a model.
fn raised(outcome: &Outcome, converts: bool) -> Option<&str> {
    match outcome {
        Outcome::Cancelled => Some("cancelled"),
        Outcome::Error(error) if !converts => Some(error.type_name()),
        _ => None,
    }
}

/// Returns which of the words in `expected` are in the text.
fn contained(expected: &Value, text: String) -> Result<Value, String> {
    let words = object(expected)?.keys();
    Ok(Value::Object(words.map(|word| (word.clone(), json!(text.contains(word)))).collect()))
}

/// Returns the parts in `expected` that the record has.
fn had(expected: &Value, record: &CallRecord) -> Result<Value, String> {
    let parts = expected.as_array().ok_or("`has` is not a list")?;
    let mut had = Vec::new();
    for part in parts {
        let has = match part.as_str().unwrap_or_default() {
            "type" => record.error_type.is_some(),
            "engine_message" => record.detail.as_ref().is_some_and(|detail| !detail.is_empty()),
            "backtrace" => record.backtrace.as_ref().is_some_and(|backtrace| !backtrace.is_empty()),
            "stderr_tail" => record.stderr_tail.contains("secret"),
            // Fields of every record, even if the call leaves them empty.
            "stdout_tail"
            | "dropped_arguments"
            | "dropped"
            | "refused_capabilities"
            | "refused" => true,
            "duration" => record.phases.total() > Duration::ZERO,
            "instructions" | "instructions_used" => {
                record.instructions.is_some_and(|count| count > 0)
            }
            "peak_memory" | "memory_peak" => record.memory_peak_bytes > 0,
            "attempts" => record.attempts > 0,
            other => return Err(format!("unknown part `{other}` of a record")),
        };
        if has {
            had.push(part.clone());
        }
    }
    Ok(Value::Array(had))
}

fn as_json(output: &Output) -> Value {
    match output {
        Output::Value(value) => value.clone(),
        Output::Contents(contents) => json!({"contents": contents.iter().map(|item| match item {
            Content::Text(text) => json!(text),
            Content::Json(value) => json!({"json": value}),
            other => json!(format!("{other:?}")),
        }).collect::<Vec<_>>()}),
    }
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("not an object: {value}"))
}
