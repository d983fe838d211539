//! Requests to the Messages API.
//!
//! * Turns alternate: consecutive messages of one role become one turn. Results of calls come first
//!   in the user's turn after the calls.
//! * System messages before the first assistant turn move to the field for instructions.
//! * Thinking is returned unchanged, with its signature.
//! * Arguments of a call are an object in this API. If a model wrote invalid JSON, the request
//!   contains an object with the original string, so that the model sees what it wrote next to the
//!   result that describes the error.

use cofferdam_agent::{ChatOptions, FunctionResult, ToolMode};
use serde_json::{Map, Value, json};

use super::super::attachment::Attachment;
use super::super::caching;
use super::super::prepared::PreparedRequest;
use super::super::tools::WrittenSchema;
use super::CONTAINER;
use super::turns::{container, system, turns};

/// Default maximum number of tokens of a reply. The API requires a number, and every current model
/// can write this many.
const TOKENS_MAX: u64 = 16_000;
/// Key of the type of a block.
pub(super) const TYPE: &str = "type";

/// Returns the definition of a function.
pub(in super::super) fn tool(name: &str, description: &str, schema: &WrittenSchema) -> Value {
    let mut tool = json!({"name": name, "description": description, "input_schema": schema.schema});
    if schema.is_strict
        && let Some(tool) = tool.as_object_mut()
    {
        tool.insert("strict".to_owned(), true.into());
    }
    tool
}

/// Returns all fields of the request except the tools.
pub(in super::super) fn fields(asked: &PreparedRequest<'_>) -> Map<String, Value> {
    let options = &asked.request.options;
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    set("model", asked.model().into());
    set("max_tokens", asked.max_tokens().unwrap_or(TOKENS_MAX).into());
    let system = system(asked);
    if !system.is_empty() {
        set("system", instructions(system, asked.cache_mark));
    }
    if let Some(container) = container(asked) {
        set(CONTAINER, container.into());
    }
    let mut turns = turns(asked);
    let of_user = |turn: &&mut Value| turn.get("role").and_then(Value::as_str) == Some("user");
    let content = turns.iter_mut().rev().find(of_user).and_then(|turn| turn.get_mut("content"));
    let last = content.and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut());
    caching::add_mark(last, asked.cache_mark);
    set("messages", turns.into());
    if asked.streams {
        set("stream", true.into());
    }
    if let Some(temperature) = asked.temperature() {
        set("temperature", temperature.into());
    }
    if let Some(share) = asked.top_p() {
        set("top_p", share.into());
    }
    if !options.stop.is_empty() {
        set("stop_sequences", options.stop.clone().into());
    }
    let output = output_config(asked);
    if !output.is_empty() {
        set("output_config", output.into());
    }
    if asked.has_tools()
        && let Some(choice) = tool_choice(options, asked)
    {
        set("tool_choice", choice);
    }
    fields
}

/// Returns the instructions, as a block if they are marked.
fn instructions(system: String, mark: Option<&Value>) -> Value {
    if mark.is_none() {
        return system.into();
    }
    let mut block = json!({TYPE: "text", "text": system});
    caching::add_mark(Some(&mut block), mark);
    vec![block].into()
}

/// Returns the effort and the form of the reply. The API has no name for a form, and a description
/// belongs to the schema.
fn output_config(asked: &PreparedRequest<'_>) -> Map<String, Value> {
    let mut output = Map::new();
    if let Some(effort) = asked.request.options.effort {
        output.insert("effort".to_owned(), effort.name().into());
    }
    if let Some(written) = asked.format() {
        let mut schema = written.schema.clone();
        if let (Some(description), Some(schema)) =
            (written.format.description(), schema.as_object_mut())
        {
            schema.entry("description").or_insert_with(|| description.into());
        }
        output.insert("format".to_owned(), json!({TYPE: "json_schema", "schema": schema}));
    }
    output
}

fn tool_choice(options: &ChatOptions, asked: &PreparedRequest<'_>) -> Option<Value> {
    let mut choice = match asked.tool_choice() {
        None if options.allow_parallel_calls.is_none() => return None,
        None | Some(ToolMode::Auto) => json!({TYPE: "auto"}),
        // Parallel calls are irrelevant if calls are forbidden.
        Some(ToolMode::None) => return Some(json!({TYPE: "none"})),
        Some(ToolMode::Required(None)) => json!({TYPE: "any"}),
        Some(ToolMode::Required(Some(name))) => {
            json!({TYPE: "tool", "name": asked.names.wire(name)})
        }
    };
    if let (Some(allow), Some(choice)) = (options.allow_parallel_calls, choice.as_object_mut()) {
        choice.insert("disable_parallel_tool_use".to_owned(), (!allow).into());
    }
    Some(choice)
}

pub(super) fn result_block(asked: &PreparedRequest<'_>, result: &FunctionResult) -> Value {
    let mut fields = Map::new();
    fields.insert(TYPE.to_owned(), "tool_result".into());
    fields.insert("tool_use_id".to_owned(), asked.ids.wire(&result.call_id).into());
    let has_text = !result.result.trim().is_empty();
    if let Some(names) = asked.deferred.references(&result.call_id) {
        let reference =
            |name: &String| json!({TYPE: "tool_reference", "tool_name": asked.names.wire(name)});
        fields.insert("content".to_owned(), names.iter().map(reference).collect());
    } else if !result.items.is_empty() {
        let text = has_text.then(|| json!({TYPE: "text", "text": result.result}));
        let parts: Vec<_> =
            text.into_iter().chain(result.items.iter().map(Attachment::Data).map(block)).collect();
        fields.insert("content".to_owned(), parts.into());
    } else if has_text {
        fields.insert("content".to_owned(), result.result.as_str().into());
    }
    if result.is_error {
        fields.insert("is_error".to_owned(), true.into());
    }
    Value::Object(fields)
}

/// Writes a file as a block. The API has no audio.
pub(in super::super) fn attachment(file: Attachment<'_>) -> Option<Value> {
    let kind = match file.media_type() {
        _ if file.is_image() => "image",
        "application/pdf" => "document",
        _ => return None,
    };
    let source = match file {
        Attachment::Data(data) => {
            json!({TYPE: "base64", "media_type": data.media_type, "data": data.data})
        }
        Attachment::Uri(uri) => json!({TYPE: "url", "url": uri.uri}),
    };
    Some(json!({TYPE: kind, "source": source}))
}

pub(super) fn block(file: Attachment<'_>) -> Value {
    attachment(file).unwrap_or_else(|| json!({TYPE: "text", "text": file.not_shown()}))
}
