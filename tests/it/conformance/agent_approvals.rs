//! Rows of `approvals.jsonl`: calls that need approval.

use std::collections::HashMap;
use std::sync::Arc;

use cofferdam_agent::{ApprovalAnswer, Message, MessageContent, Role, Session};
use serde_json::{Map, Value, json};

use super::Row;
use super::agent::{Model, Tools, block_on, compare, finished, role, written};
use super::agent_loop::builder;

pub(crate) fn run(row: &Row) -> Result<(), String> {
    block_on(async {
        match row.op.as_str() {
            "approval" => approval(row).await,
            other => Err(format!("unknown operation `{other}`")),
        }
    })
}

async fn approval(row: &Row) -> Result<(), String> {
    let (model, tools) = (Model::of(row)?, Tools::new());
    let agent = builder(row, &model, &tools)?.build().map_err(|error| error.to_string())?;
    let session = row.flag("session").then(|| Session::with_id("s"));
    let steps = row.required("steps")?.as_array().ok_or("`steps` is not a list")?;
    let expected = row.expect.as_array().ok_or("`expect` is not a list")?;
    if steps.len() != expected.len() {
        return Err("`expect` does not belong to `steps`".to_owned());
    }
    // Ids of requests by the id of their call.
    let mut requests = HashMap::new();
    for (index, (step, expected)) in steps.iter().zip(expected).enumerate() {
        let messages = input(step, &requests, session.is_some())?;
        let mut run = agent.run(messages);
        if let Some(session) = &session {
            run = run.session(session);
        }
        let before = model.seen().len();
        let ran = finished(run, row.flag("stream")).await?;
        let response = ran.map_err(|error| format!("step {index} raises {error}"))?;
        for request in response.approval_requests() {
            let call_id = request.function_call.call_id.clone();
            let known = requests.insert(call_id, request.id.clone());
            if known.is_some_and(|known| known != request.id) {
                return Err(format!("step {index}: a request that is open has another id"));
            }
        }
        let name = |id: &str, call_id: &str| {
            let is_issued = requests.get(call_id).is_some_and(|issued| issued == id);
            if is_issued { format!("<request {call_id}>") } else { id.to_owned() }
        };
        let seen = model.seen().split_off(before);
        let mut found = Map::new();
        found.insert("response".to_owned(), written(&response.messages, &name));
        found.insert("tool_log".to_owned(), tools.take_log().into());
        found.insert("model_calls".to_owned(), seen.len().into());
        let roles = seen
            .last()
            .map(|seen| seen.messages.iter().map(|message| role(message.role)).collect::<Vec<_>>());
        found.insert("model_saw_roles".to_owned(), json!(roles));
        compare(expected, &found).map_err(|error| format!("step {index}: {error}"))?;
    }
    Ok(())
}

/// Returns the messages that the caller sends in one step.
fn input(
    step: &Value,
    requests: &HashMap<String, String>,
    has_session: bool,
) -> Result<Vec<Arc<Message>>, String> {
    let hi = || Arc::new(Message::user("hi"));
    match step.get("step").and_then(Value::as_str) {
        Some("run") => return Ok(vec![hi()]),
        Some("answer") => {}
        other => return Err(format!("unknown step {other:?}")),
    }
    let mut messages = if has_session { vec![] } else { vec![hi()] };
    let answers = step.get("answers").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut contents =
        answers.iter().map(|row| answer(row, requests)).collect::<Result<Vec<_>, _>>()?;
    if let Some(text) = step.get("text").and_then(Value::as_str) {
        contents.push(MessageContent::text(text));
    }
    if !contents.is_empty() {
        messages.push(Arc::new(Message::new(Role::User, contents)));
    }
    Ok(messages)
}

fn answer(row: &Value, requests: &HashMap<String, String>) -> Result<MessageContent, String> {
    let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut answer = ApprovalAnswer::default();
    for name in row.as_object().ok_or("an answer is not an object")?.keys() {
        match name.as_str() {
            "request" => {
                let written = text(name).ok_or("`request` is not text")?;
                let call_id =
                    written.strip_prefix("<request ").and_then(|rest| rest.strip_suffix('>'));
                answer.id =
                    call_id.and_then(|call_id| requests.get(call_id).cloned()).unwrap_or(written);
            }
            "approved" => answer.approved = row[name].clone(),
            "reason" => answer.reason = text(name),
            "call_id" | "id" => answer.call_id = text(name),
            "name" | "call" | "tool" => answer.name = text(name),
            "args" | "arguments" => {
                let arguments = &row[name];
                answer.arguments = Some(text(name).unwrap_or_else(|| arguments.to_string()));
            }
            other => return Err(format!("unknown key `{other}` in an answer")),
        }
    }
    Ok(MessageContent::ApprovalAnswer(answer))
}
