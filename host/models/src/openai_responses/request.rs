//! Requests of the Responses API.
//!
//! Unless the service keeps the conversation, every request contains all of it, and reasoning
//! arrives encrypted and is sent back unchanged. Items then carry no ids of the service, because it
//! would look them up.

use std::collections::HashMap;
use std::sync::Arc;

use cofferdam_agent::{
    FunctionCall, FunctionResult, Message, MessageContent, Reasoning, Role, ToolMode,
};
use serde_json::{Map, Value, json};

use super::super::adaptation::INCLUDE;
use super::super::attachment::Attachment;
use super::super::caching;
use super::super::hosted::{self, CALLER};
use super::super::prepared::{PreparedRequest, arguments_text};
use super::super::response_format::WrittenFormat;
use super::super::tools::WrittenSchema;

/// Types of items that go back as they arrived.
const REASONING: &str = "reasoning";
const PROGRAM: &str = "program";

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
    let callers = callers(asked);
    let mut items = Vec::new();
    asked.messages.iter().for_each(|message| add(&mut items, asked, &callers, message));
    items
}

/// Returns the callers of calls by the ids of the calls. A caller whose program is missing, as it
/// is after a compaction, is left out.
fn callers<'m>(asked: &'m PreparedRequest<'_>) -> HashMap<&'m str, &'m Value> {
    if !asked.settings.hosted_programs {
        return HashMap::new();
    }
    let messages = || asked.messages.iter().map(Arc::as_ref);
    let programs = hosted::programs(messages(), PROGRAM, "call_id");
    let calls = messages().flat_map(Message::calls);
    let with_caller = calls.filter_map(|call| {
        let caller = asked.wire_fields(call)?.get(CALLER)?;
        let program = caller.get("caller_id").and_then(Value::as_str);
        let is_known = program.is_none_or(|program| programs.contains(program));
        is_known.then_some((call.call_id.as_str(), caller))
    });
    with_caller.collect()
}

fn add(
    items: &mut Vec<Value>,
    asked: &PreparedRequest<'_>,
    callers: &HashMap<&str, &Value>,
    message: &Message,
) {
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
            MessageContent::Reasoning(reasoning) => items.extend(own_items(asked, reasoning)),
            MessageContent::FunctionCall(call) => {
                items.push(with_caller(call_item(asked, call), callers.get(&*call.call_id)));
            }
            MessageContent::FunctionResult(result) => {
                items.push(with_caller(result_item(asked, result), callers.get(&*result.call_id)));
            }
            _ => {}
        }
    }
    // The API rejects reasoning that nothing follows, which happens when a reply was cut off.
    while items.len() > before && items.last().is_some_and(|item| is(item, &[REASONING, PROGRAM])) {
        items.pop();
    }
    if !parts.is_empty() {
        let role = if message.role == Role::System { "system" } else { "user" };
        items.push(json!({"type": "message", "role": role, "content": parts}));
    }
}

/// Returns reasoning and programs as they arrived. Reasoning of another provider has a different
/// form.
fn own_items(asked: &PreparedRequest<'_>, reasoning: &Reasoning) -> impl Iterator<Item = Value> {
    let kinds: &[&str] = match asked.settings.hosted_programs {
        true => &[REASONING, PROGRAM, "program_output"],
        false => &[REASONING],
    };
    let items = reasoning.opaque.as_ref().and_then(Value::as_array);
    items.into_iter().flatten().filter(|item| is(item, kinds)).cloned()
}

fn is(item: &Value, kinds: &[&str]) -> bool {
    item.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}

/// Adds the caller of a call to the call or to its result.
fn with_caller(mut item: Value, caller: Option<&&Value>) -> Value {
    if let (Some(caller), Some(fields)) = (caller, item.as_object_mut()) {
        fields.insert(CALLER.to_owned(), (*caller).clone());
    }
    item
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
