//! Scripted servers, and the conformance rows that run against them.
//!
//! A row returns everything that the operation produced; the runner compares the parts that the row
//! expects.

mod script;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::{CallContext, InputSchema};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

pub use self::script::Scripted;
use self::script::Step;
use super::{
    CallAnswer, CallError, Calls, Item, Questions, Resend, SamplingHandler, SamplingLimits,
    SelectionMode, TaskOptions, TaskSupport, into_output,
};

/// Runs a row of the operations `result`, `plain_call`, `task_call`, `sampling` or `no_conversion`.
///
/// # Errors
/// The part of the row that is not understood.
pub fn play(row: &Value) -> Result<Value, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    match text(row, "op")? {
        "result" => result(row),
        "plain_call" => runtime.block_on(plain_call(row)),
        "task_call" => runtime.block_on(task_call(row)),
        "sampling" => runtime.block_on(sampling(row)),
        "no_conversion" => no_conversion(row),
        other => Err(format!("`{other}` is not played here")),
    }
}

fn text<'a>(row: &'a Value, name: &str) -> Result<&'a str, String> {
    row.get(name).and_then(Value::as_str).ok_or_else(|| format!("the row has no text `{name}`"))
}

fn result(row: &Value) -> Result<Value, String> {
    let mode = match text(row, "mode")? {
        "default" => SelectionMode::default(),
        mode => serde_json::from_value(mode.into()).map_err(|error| error.to_string())?,
    };
    let answer =
        CallAnswer::read(fixture(text(row, "content")?)?).ok_or("the fixture is not a result")?;
    Ok(mode.items(&answer).iter().map(Item::to_json).collect())
}

/// Returns the result that a row refers to.
fn fixture(name: &str) -> Result<Value, String> {
    let link = json!({"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"});
    let with_type = |mut block: Value, media_type: &str| {
        if let Value::Object(members) = &mut block {
            members.insert("mimeType".to_owned(), media_type.into());
        }
        block
    };
    let hello = json!({"type": "text", "text": "hello"});
    let content = match name {
        "empty" | "structured only" | "structured, no text" => json!([]),
        "text" | "text, no structured" | "structured + text" => json!([hello]),
        "empty text" => json!([{"type": "text", "text": ""}]),
        "two texts" => json!([hello, {"type": "text", "text": "b"}]),
        "image" => json!([{"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
        "bad base64 image" => json!([{"type": "image", "data": "!!!", "mimeType": "image/png"}]),
        "audio" => json!([{"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}]),
        "resource link" => json!([with_type(link, "text/plain")]),
        "resource link without type" => json!([link]),
        "embedded text" => {
            json!([{"type": "resource", "resource": {"uri": "file:///a.txt", "text": "emb"}}])
        }
        "embedded blob" => {
            json!([{"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "aGk="}}])
        }
        other => return Err(format!("unknown content `{other}`")),
    };
    Ok(if name.starts_with("structured") {
        json!({"content": content, "structuredContent": {"a": 1}})
    } else {
        json!({"content": content})
    })
}

fn calls(script: &Arc<Scripted>, tasks: TaskOptions) -> Calls {
    Calls {
        remote: Arc::clone(script) as _,
        tasks,
        selection: SelectionMode::default(),
        questions: Arc::new(Questions::default()),
        loads_tools: true,
        resend: Resend::Always,
        wait: None,
    }
}

fn parameters(tool: &str) -> Map<String, Value> {
    Map::from_iter([("name".to_owned(), tool.into()), ("arguments".to_owned(), json!({}))])
}

/// Returns the outcome of a call in the terms of the rows.
fn ended(result: Result<Vec<Item>, CallError>) -> (&'static str, Value) {
    match result {
        Ok(items) => ("text", into_output(items).text().into()),
        Err(CallError::Cancelled) => ("raised", "cancelled".into()),
        Err(error) => ("error", error.to_string().into()),
    }
}

async fn plain_call(row: &Value) -> Result<Value, String> {
    let tool = text(row, "tool")?;
    let error = |code: i64, message: &str| Step::Error { code, message: message.to_owned() };
    let failed = |content: Value| Step::Answer(json!({"content": content, "isError": true}));
    let steps = match text(row, "server")? {
        "ok" | "load_tools False" => vec![],
        "closed-then-ok" => vec![Step::Closed],
        "closed-twice" => vec![Step::Closed, Step::Closed],
        "terminated-then-ok" => vec![error(-32600, "Session terminated")],
        "reconnect-fails" => vec![Step::Closed, Step::NoReconnect],
        "iserror" => {
            vec![failed(json!([{"type": "text", "text": "l1"}, {"type": "text", "text": "l2"}]))]
        }
        "iserror-empty" => vec![failed(json!([]))],
        "mcp-error" => vec![error(-32000, "server said no")],
        "other-exception" => vec![Step::Broken],
        other => return Err(format!("unknown server `{other}`")),
    };
    let mut script = Scripted::new(steps);
    script.calls_plainly = true;
    let script = Arc::new(script);
    let mut calls = calls(&script, TaskOptions::default());
    calls.loads_tools = text(row, "server")? != "load_tools False";
    let context = CallContext::new("row");
    let (end, value) =
        ended(calls.call(tool, TaskSupport::Other, parameters(tool), &context).await);
    let played = script.played();
    Ok(json!({end: value, "sent": played.requests.len(), "reconnects": played.reconnects}))
}

async fn task_call(row: &Value) -> Result<Value, String> {
    let tool = text(row, "tool")?;
    let options = row.get("options").unwrap_or(&Value::Null);
    let seconds = |name: &str| options.get(name).and_then(Value::as_f64);
    let cancels =
        options.get("cancel_remote_task_on_local_cancellation") != Some(&Value::Bool(false));
    let wait = seconds("max_task_wait");
    let tasks = TaskOptions::new(seconds("default_ttl"), wait, cancels)
        .map_err(|error| error.to_string())?;
    let steps =
        row.get("server_script").and_then(Value::as_array).ok_or("the row has no script")?;
    let mut script = Scripted::new(steps.iter().flat_map(Step::read).collect());
    script.calls_plainly = true;
    script.sleeps_really = wait.is_some();
    // Without a time limit, the caller ends the call.
    let cancellation = CancellationToken::new();
    script.on_hang = wait.is_none().then(|| cancellation.clone());
    let script = Arc::new(script);
    let support = TaskSupport::read(row.get("task_support"));
    let context = CallContext { cancellation, ..CallContext::new("row") };
    let call = calls(&script, tasks);
    let call = call.call(tool, support, parameters(tool), &context);
    let end = tokio::time::timeout(Duration::from_secs(20), call).await;
    let (end, value) = ended(end.map_err(|_| "the call hangs".to_owned())?);
    let played = script.played();
    Ok(json!({
        end: value,
        "cancel_sent": played.requests.iter().any(|request| request == "tasks/cancel"),
        "requests": played.requests,
        "reconnects": played.reconnects,
        "sleeps_s": played.sleeps_s,
        "task_param": played.task_parameter,
    }))
}

struct Echo;

#[async_trait]
impl SamplingHandler for Echo {
    async fn create_message(&self, parameters: Map<String, Value>) -> Result<Value, String> {
        Ok(Value::Object(parameters))
    }
}

async fn sampling(row: &Value) -> Result<Value, String> {
    let requests =
        row.get("requests").map_or(Some(1), Value::as_u64).ok_or("`requests` is not a number")?;
    let handler = (row.get("handler") == Some(&Value::Bool(true))).then(|| Arc::new(Echo) as _);
    let sampling = SamplingLimits::new(handler);
    let (mut answered, mut tokens) = (0, None);
    for _ in 0..requests {
        let asked = row.get("max_tokens").cloned().unwrap_or_else(|| 100.into());
        if let Ok(message) =
            sampling.answer(Map::from_iter([("maxTokens".to_owned(), asked)])).await
        {
            answered += 1;
            tokens = message.get("maxTokens").cloned();
        }
    }
    let refused = answered < requests;
    Ok(
        json!({"answered": answered, "refused": refused, "max_tokens": tokens, "max_tokens_used": tokens}),
    )
}

/// Passes arguments through the tool's schema to the request.
fn no_conversion(row: &Value) -> Result<Value, String> {
    let declared =
        row.get("inputSchema").or_else(|| row.get("schema")).cloned().unwrap_or_default();
    let written =
        row.get("model_arguments").or_else(|| row.get("arguments")).cloned().unwrap_or_default();
    let written = written.as_str().map_or_else(|| written.to_string(), str::to_owned);
    let schema = super::input_schema(Some(&declared));
    let mut table = super::ToolTable::default();
    table.set("t", &schema);
    let decoded =
        InputSchema::forwarded(schema).decode("t", Some(written.as_bytes()), &Default::default());
    let decoded = decoded.map_err(|error| error.to_string())?;
    let forwarded = table.forward("t", &Default::default(), decoded.value().clone(), &Map::new());
    Ok(json!({"arguments": forwarded.arguments, "dropped": forwarded.dropped}))
}
