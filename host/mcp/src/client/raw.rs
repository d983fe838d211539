//! Preserves message fields that the SDK's types do not have.
//!
//! The SDK parses results by trying one type after the other, and a result that fits a type loses
//! every field that the type lacks: `execution` of a tool, the interval of an earlier task, content
//! of a new kind. So results that this client parses itself are wrapped before the SDK sees them,
//! in an object that fits no type and passes unchanged. Lists of tools are the exception: the
//! transport has to see them, because they determine which arguments become headers.

use rmcp::model::{CustomResult, ErrorData, ServerJsonRpcMessage, ServerResult};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::limits::OWN_MESSAGE_BYTES_MAX;
use super::listing::EXECUTION;
use super::unread::unread_answer;

/// Single member of a wrapped result.
const WRAPPED: &str = "cofferdam/result";
/// Members of results that this client parses itself.
const OWN: [&str; 11] = [
    "content",
    "structuredContent",
    "isError",
    "task",
    "taskId",
    "messages",
    "prompts",
    "inputRequests",
    "contents",
    "resources",
    "resourceTemplates",
];
/// Types of preliminary results.
const OWN_KINDS: [&str; 2] = ["task", "input_required"];

/// Method that replaces the method of a request or notification which is too large.
pub(crate) const TOO_LARGE: &str = "cofferdam/too-large";

/// Parses one message of a server with a length of `bytes`.
pub(crate) fn message(
    mut message: Value,
    bytes: usize,
) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    prepare(&mut message, bytes);
    serde_json::from_value(message)
}

/// Returns a message in the form that the SDK should read. An answer that cannot be read becomes an
/// error; other invalid messages are left for the SDK to reject.
pub(crate) fn text(text: String) -> String {
    // Only large messages and answers are changed, and most events are neither.
    let is_answer = text.contains("\"result\"") || text.contains("\"error\"");
    if text.len() <= OWN_MESSAGE_BYTES_MAX && !is_answer {
        return text;
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(mut message) if !has_unreadable_error(&message) => {
            prepare(&mut message, text.len());
            message.to_string()
        }
        _ => match unread_answer(text.as_bytes(), || None) {
            Some(answer) => serde_json::to_string(&answer).unwrap_or(text),
            None => text,
        },
    }
}

fn has_unreadable_error(message: &Value) -> bool {
    message.get("error").is_some_and(|error| ErrorData::deserialize(error).is_err())
}

fn prepare(message: &mut Value, bytes: usize) {
    if bytes > OWN_MESSAGE_BYTES_MAX
        && let Some(members) = message.as_object_mut()
        && members.contains_key("method")
    {
        // The id is retained so that a request can be answered.
        members.remove("params");
        members.insert("method".to_owned(), TOO_LARGE.into());
        return;
    }
    let Some(result) = message.get_mut("result") else { return };
    let Some(members) = result.as_object_mut() else { return };
    let is_own_kind = members
        .get("resultType")
        .and_then(Value::as_str)
        .is_some_and(|kind| OWN_KINDS.contains(&kind));
    if is_own_kind || OWN.iter().any(|name| members.contains_key(*name)) {
        *result = json!({ WRAPPED: result.take() });
    } else if let Some(Value::Array(tools)) = members.get_mut("tools") {
        // A single invalid tool would make the SDK reject the whole list.
        tools.retain(|tool| tool.get("name").is_some_and(Value::is_string));
        tools.iter_mut().filter_map(Value::as_object_mut).for_each(fit);
    }
}

/// Changes a tool so that the SDK's type reads it without loss.
fn fit(tool: &mut Map<String, Value>) {
    let schema = tool.entry("inputSchema").or_insert(Value::Null);
    if schema.is_null() {
        *schema = json!({});
    }
    for name in ["outputSchema", "_meta", "annotations"] {
        if tool.get(name).is_some_and(|value| !value.is_object()) {
            tool.remove(name);
        }
    }
    if let Some(execution) = tool.remove("execution")
        && let Value::Object(meta) = tool.entry("_meta").or_insert_with(|| json!({}))
    {
        meta.insert(EXECUTION.to_owned(), execution);
    }
}

/// Returns the result as the server wrote it.
pub(crate) fn reveal(result: ServerResult) -> Value {
    match result {
        ServerResult::CustomResult(CustomResult(Value::Object(mut members))) => {
            match members.remove(WRAPPED) {
                Some(result) => result,
                None => Value::Object(members),
            }
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(result: Value) -> Value {
        let text = text(json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string());
        match serde_json::from_str(&text).unwrap() {
            ServerJsonRpcMessage::Response(response) => reveal(response.result),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn results_come_out_as_they_went_in() {
        for result in [
            json!({"content": [{"type": "hologram", "x": 1}], "isError": false, "extra": [1]}),
            json!({"task": {"taskId": "a", "status": "working", "pollInterval": 5}}),
            json!({"taskId": "a", "status": "working", "createdAt": "", "lastUpdatedAt": "", "pollInterval": 5}),
            json!({"resultType": "input_required", "requestState": "s"}),
            json!({"weird": 1}),
        ] {
            assert_eq!(through(result.clone()), result);
        }
    }

    #[test]
    fn tools_keep_what_the_type_has_no_field_for() {
        let tools = json!({"tools": [
            {"name": "a", "inputSchema": null, "execution": {"taskSupport": "required"}},
            {"inputSchema": {}}, 7,
        ]});
        let listed = through(tools);
        assert_eq!(listed["tools"].as_array().unwrap().len(), 1);
        assert_eq!(listed["tools"][0]["_meta"][EXECUTION], json!({"taskSupport": "required"}));
        assert_eq!(listed["tools"][0]["inputSchema"], json!({}));
    }
}
