//! Requests of the Responses API.
//!
//! Unless the service keeps the conversation, every request contains all of it, and reasoning
//! arrives encrypted and is sent back unchanged. Items then carry no ids of the service, because it
//! would look them up.

use cofferdam_agent::{
    FunctionCall, FunctionResult, Message, MessageContent, Reasoning, Role, ToolMode,
};
use serde_json::{Map, Value, json};

use super::super::adaptation::INCLUDE;
use super::super::attachment::Attachment;
use super::super::caching;
use super::super::prepared::{PreparedRequest, arguments_text};
use super::super::response_format::WrittenFormat;
use super::super::tools::WrittenSchema;

/// Serializes a function.
pub(in super::super) fn tool(name: &str, description: &str, schema: &WrittenSchema) -> Value {
    // If `strict` is absent, the service may choose.
    let (parameters, strict) = (&schema.schema, schema.is_strict);
    json!({"type": "function", "name": name, "description": description, "parameters": parameters, "strict": strict})
}

/// Returns all fields of a request except the tools.
pub(in super::super) fn fields(asked: &PreparedRequest<'_>) -> Map<String, Value> {
    let (options, settings) = (&asked.request.options, asked.settings);
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    set("model", asked.model().into());
    if let Some(instructions) = asked.instructions() {
        set("instructions", instructions.into());
    }
    set("input", input(asked).into());
    set("store", settings.store.into());
    if let Some(id) = &asked.request.conversation_id {
        set("previous_response_id", id.as_str().into());
    }
    if asked.requests_reasoning() {
        set(INCLUDE, json!(["reasoning.encrypted_content"]));
    }
    if asked.streams {
        set("stream", true.into());
    }
    if let Some(tokens) = asked.max_tokens() {
        set("max_output_tokens", tokens.into());
    }
    if let Some(temperature) = asked.temperature() {
        set("temperature", temperature.into());
    }
    if let Some(key) = caching::key(asked) {
        set(caching::KEY, key.into());
    }
    if let Some(share) = asked.top_p() {
        set("top_p", share.into());
    }
    if let Some(effort) = options.effort {
        set("reasoning", json!({"effort": effort.name()}));
    }
    if let Some(format) = asked.format() {
        set("text", json!({"format": response_format(format)}));
    }
    if asked.has_tools() {
        if let Some(mode) = asked.tool_choice() {
            set("tool_choice", tool_choice(mode, asked));
        }
        if let Some(allow) = options.allow_parallel_calls {
            set("parallel_tool_calls", allow.into());
        }
    }
    fields
}

fn response_format(written: &WrittenFormat) -> Value {
    let (format, schema, strict) = (&written.format, &written.schema, written.is_strict);
    let mut fields =
        json!({"type": "json_schema", "name": format.name(), "schema": schema, "strict": strict});
    if let (Some(description), Some(fields)) = (format.description(), fields.as_object_mut()) {
        fields.insert("description".to_owned(), description.into());
    }
    fields
}

fn tool_choice(mode: &ToolMode, asked: &PreparedRequest<'_>) -> Value {
    match mode {
        ToolMode::Auto => "auto".into(),
        ToolMode::None => "none".into(),
        ToolMode::Required(None) => "required".into(),
        ToolMode::Required(Some(name)) => {
            json!({"type": "function", "name": asked.names.wire(name)})
        }
    }
}

fn input(asked: &PreparedRequest<'_>) -> Vec<Value> {
    let mut items = Vec::new();
    asked.messages.iter().for_each(|message| add(&mut items, asked, message));
    items
}

fn add(items: &mut Vec<Value>, asked: &PreparedRequest<'_>, message: &Message) {
    let before = items.len();
    let mut parts = Vec::new();
    for content in &message.contents {
        match content {
            MessageContent::Text(text) if text.text.is_empty() => {}
            MessageContent::Text(text) if message.role == Role::Assistant => {
                items.push(json!({"type": "message", "role": "assistant", "content": text.text}));
            }
            MessageContent::Text(text) => {
                parts.push(json!({"type": "input_text", "text": text.text}))
            }
            MessageContent::Data(_) | MessageContent::Uri(_)
                if matches!(message.role, Role::User | Role::Tool) =>
            {
                parts.extend(Attachment::of(content).map(part))
            }
            MessageContent::Reasoning(reasoning) => items.extend(reasoning_items(reasoning)),
            MessageContent::FunctionCall(call) => items.push(call_item(asked, call)),
            MessageContent::FunctionResult(result) => items.push(result_item(asked, result)),
            _ => {}
        }
    }
    // The API rejects reasoning that nothing follows, which happens when a reply was cut off.
    while items.len() > before && items.last().is_some_and(is_reasoning) {
        items.pop();
    }
    if !parts.is_empty() {
        let role = if message.role == Role::System { "system" } else { "user" };
        items.push(json!({"type": "message", "role": role, "content": parts}));
    }
}

/// Returns the reasoning items as they arrived. Reasoning of another provider has a different form.
fn reasoning_items(reasoning: &Reasoning) -> impl Iterator<Item = Value> {
    let items = reasoning.opaque.as_ref().and_then(Value::as_array);
    items.into_iter().flatten().filter(|item| is_reasoning(item)).cloned()
}

fn is_reasoning(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("reasoning")
}

fn call_item(asked: &PreparedRequest<'_>, call: &FunctionCall) -> Value {
    json!({
        "type": "function_call",
        "call_id": asked.ids.wire(&call.call_id),
        "name": asked.names.wire(&call.name),
        "arguments": arguments_text(&call.arguments),
    })
}

fn result_item(asked: &PreparedRequest<'_>, result: &FunctionResult) -> Value {
    let output = if result.items.is_empty() {
        result.result.as_str().into()
    } else {
        let text = (!result.result.is_empty())
            .then(|| json!({"type": "input_text", "text": result.result}));
        Value::Array(
            text.into_iter().chain(result.items.iter().map(Attachment::Data).map(part)).collect(),
        )
    };
    json!({"type": "function_call_output", "call_id": asked.ids.wire(&result.call_id), "output": output})
}

/// Writes a file as a part of a message. The API reads every type of file by its address.
pub(in super::super) fn attachment(file: Attachment<'_>) -> Option<Value> {
    match file {
        file if file.is_image() => {
            Some(json!({"type": "input_image", "detail": "auto", "image_url": file.url()}))
        }
        Attachment::Uri(uri) => Some(json!({"type": "input_file", "file_url": uri.uri})),
        file if file.media_type() == "application/pdf" => {
            Some(json!({"type": "input_file", "filename": "document.pdf", "file_data": file.url()}))
        }
        Attachment::Data(_) => None,
    }
}

fn part(file: Attachment<'_>) -> Value {
    attachment(file).unwrap_or_else(|| json!({"type": "input_text", "text": file.not_shown()}))
}
