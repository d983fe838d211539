//! Shared code for rows about agents: a scripted model, the tools that it calls, and the
//! representation of messages in rows.

mod model;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use cofferdam_agent::{Message, MessageContent, Response, Role, RunError};
use futures_util::StreamExt;
use serde_json::{Map, Value, json};

pub(super) use self::model::{Model, Seen, usage_of};
pub(super) use self::tools::{Tools, world};

/// Maximum time of a row.
const ROW_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the future of a row on the runtime of all rows about agents.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let within = async { tokio::time::timeout(ROW_TIMEOUT, future).await };
    world().runtime.block_on(within).unwrap_or_else(|_| Err("the row takes too long".to_owned()))
}

/// Finishes a run, by its stream if the row says so. The pieces of the stream must make up the
/// response (`LOOP-29`).
pub(super) async fn finished(
    run: cofferdam_agent::Run,
    is_streaming: bool,
) -> Result<Result<Response, RunError>, String> {
    if !is_streaming {
        return Ok(run.await);
    }
    let mut stream = run.stream();
    let mut text = String::new();
    while let Some(update) = stream.next().await {
        match update {
            Ok(update) => {
                for delta in update.deltas {
                    match delta {
                        cofferdam_agent::Delta::Text(more) => text.push_str(&more),
                        cofferdam_agent::Delta::Content(content) => {
                            text.push_str(content.as_text().unwrap_or_default());
                        }
                        _ => {}
                    }
                }
            }
            Err(error) => return Ok(Err(error)),
        }
    }
    let response = stream.finish().await;
    if let Ok(response) = &response {
        let whole: String = response.messages.iter().map(|message| message.text()).collect();
        if whole != text {
            return Err(format!("the pieces hold the text `{text}`, the response `{whole}`"));
        }
    }
    Ok(response)
}

/// Parses contents of a row.
pub(super) fn contents(row: &Value) -> Result<Vec<MessageContent>, String> {
    let contents = row.as_array().ok_or("contents are not a list")?.iter();
    let text =
        |content: &Value, name: &str| content.get(name).and_then(Value::as_str).map(str::to_owned);
    contents
        .map(|content| {
            let id = text(content, "id").unwrap_or_default();
            if let Some(words) = text(content, "text") {
                Ok(MessageContent::text(words))
            } else if let Some(call) = text(content, "call") {
                Ok(MessageContent::call(id, call, text(content, "args").unwrap_or_default()))
            } else if let Some(result) = text(content, "result") {
                Ok(MessageContent::result(id, result))
            } else {
                Err(format!("unknown content {content}"))
            }
        })
        .collect()
}

/// Returns messages as rows write them. `request` names a request id.
pub(super) fn written(messages: &[Arc<Message>], request: &dyn Fn(&str, &str) -> String) -> Value {
    messages
        .iter()
        .map(|message| {
            let contents: Vec<_> =
                message.contents.iter().map(|content| written_content(content, request)).collect();
            json!({"role": role(message.role), "contents": contents})
        })
        .collect()
}

fn written_content(content: &MessageContent, request: &dyn Fn(&str, &str) -> String) -> Value {
    match content {
        MessageContent::Text(text) => json!({"text": text.text}),
        MessageContent::FunctionCall(call) => {
            let mut written =
                json!({"call": call.name, "id": call.call_id, "args": call.arguments});
            if call.is_for_caller {
                written["caller_request"] = true.into();
            }
            written
        }
        MessageContent::FunctionResult(result) => {
            json!({"result": result.result, "id": result.call_id})
        }
        MessageContent::ApprovalRequest(asked) => {
            let call = &asked.function_call;
            json!({
                "approval_request": request(&asked.id, &call.call_id),
                "call": call.name,
                "call_id": call.call_id,
                "args": call.arguments,
            })
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// Returns the error of a run as rows write it: a string, or strings if several calls failed.
pub(super) fn raised(error: &RunError) -> Value {
    match error {
        RunError::Calls(failures) if failures.len() > 1 => {
            failures.iter().map(|failure| Value::from(failure.to_string())).collect()
        }
        other => other.to_string().into(),
    }
}

/// Compares what is expected with what was found, key by key. An expected key that was not found
/// fails the row.
pub(super) fn compare(expect: &Value, found: &Map<String, Value>) -> Result<(), String> {
    let expect = expect.as_object().ok_or("`expect` is not an object")?;
    for (name, expected) in expect {
        let got = found.get(name).ok_or_else(|| format!("unknown key `{name}` in `expect`"))?;
        super::expect_same(name, expected, got)?;
    }
    Ok(())
}
