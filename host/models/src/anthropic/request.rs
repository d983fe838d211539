//! Requests to the Messages API.
//!
//! * Turns alternate: consecutive messages of one role become one turn. Results of calls come first
//!   in the user's turn after the calls.
//! * System messages move to the field for instructions, wherever they were.
//! * Thinking is returned unchanged, with its signature.
//! * Arguments of a call are an object in this API. If a model wrote invalid JSON or another value,
//!   the request contains an object with the original string, so that the model sees what it wrote
//!   next to the result that describes the error.

use cofferdam_agent::{
    ChatOptions, Data, FunctionResult, Message, MessageContent, Reasoning, Role, ToolMode,
};
use serde_json::{Map, Value, json};

use super::super::prepared::{PreparedRequest, not_shown};
use super::super::tools::WrittenSchema;

/// Default maximum number of tokens of a reply. The API requires a number, and every current model
/// can write this many.
const TOKENS_MAX: u64 = 16_000;
/// Key for arguments that are not an object.
const NOT_AN_OBJECT: &str = "malformed_arguments";
const TYPE: &str = "type";

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
    set("model", asked.settings.model.as_str().into());
    set("max_tokens", asked.max_tokens().unwrap_or(TOKENS_MAX).into());
    let system = system(asked);
    if !system.is_empty() {
        set("system", system.into());
    }
    set("messages", turns(asked).into());
    if asked.streams {
        set("stream", true.into());
    }
    if let Some(temperature) = options.temperature {
        set("temperature", temperature.into());
    }
    if asked.has_tools()
        && let Some(choice) = tool_choice(options, asked)
    {
        set("tool_choice", choice);
    }
    fields
}

fn system(asked: &PreparedRequest<'_>) -> String {
    let instructions = asked.request.options.instructions.iter().cloned();
    let messages = asked.messages.iter().filter(|message| message.role == Role::System);
    let texts = instructions.chain(messages.map(|message| message.text()));
    texts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn tool_choice(options: &ChatOptions, asked: &PreparedRequest<'_>) -> Option<Value> {
    let mut choice = match options.tool_choice.as_ref() {
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

/// Author of a message, as the API names it.
#[derive(Clone, Copy, PartialEq)]
enum Speaker {
    User,
    Assistant,
}

fn turns(asked: &PreparedRequest<'_>) -> Vec<Value> {
    let mut turns: Vec<(Speaker, Vec<Value>)> = Vec::new();
    for message in asked.messages.iter().filter(|message| message.role != Role::System) {
        for content in &message.contents {
            let speaker = match content {
                MessageContent::FunctionResult(_) => Speaker::User,
                _ if message.role == Role::Assistant => Speaker::Assistant,
                _ => Speaker::User,
            };
            let blocks = blocks(asked, message, content);
            match turns.last_mut() {
                _ if blocks.is_empty() => {}
                Some((last, turn)) if *last == speaker => turn.extend(blocks),
                _ => turns.push((speaker, blocks)),
            }
        }
    }
    turns.into_iter().filter_map(turn).collect()
}

fn turn((speaker, mut blocks): (Speaker, Vec<Value>)) -> Option<Value> {
    let is = |block: &Value, kinds: &[&str]| {
        block.get(TYPE).and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
    };
    let role = match speaker {
        Speaker::User => {
            blocks.sort_by_key(|block| !is(block, &["tool_result"]));
            "user"
        }
        Speaker::Assistant => {
            // The API rejects a turn that ends in thinking, as it does after a reply was cut off.
            while blocks.last().is_some_and(|last| is(last, &THINKING)) {
                blocks.pop();
            }
            "assistant"
        }
    };
    (!blocks.is_empty()).then(|| json!({"role": role, "content": blocks}))
}

fn blocks(asked: &PreparedRequest<'_>, message: &Message, content: &MessageContent) -> Vec<Value> {
    match content {
        // The API rejects blank text.
        MessageContent::Text(text) if text.text.trim().is_empty() => vec![],
        MessageContent::Text(text) => vec![json!({TYPE: "text", "text": text.text})],
        MessageContent::Data(data) if message.role != Role::Assistant => vec![block(data)],
        MessageContent::Reasoning(reasoning) if message.role == Role::Assistant => {
            thinking(reasoning)
        }
        MessageContent::FunctionCall(call) => {
            let (id, name) = (asked.ids.wire(&call.call_id), asked.names.wire(&call.name));
            vec![json!({TYPE: "tool_use", "id": id, "name": name, "input": input(&call.arguments)})]
        }
        MessageContent::FunctionResult(result) => vec![result_block(asked, result)],
        _ => vec![],
    }
}

const THINKING: [&str; 2] = ["thinking", "redacted_thinking"];

/// Returns the thinking blocks unchanged. Blocks of another provider have other types and are
/// dropped.
fn thinking(reasoning: &Reasoning) -> Vec<Value> {
    let parts = reasoning.opaque.as_ref().and_then(Value::as_array);
    let is_thinking = |part: &&Value| {
        part.get(TYPE).and_then(Value::as_str).is_some_and(|kind| THINKING.contains(&kind))
    };
    parts.into_iter().flatten().filter(is_thinking).cloned().collect()
}

fn input(arguments: &str) -> Value {
    if arguments.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(input)) => Value::Object(input),
        _ => json!({NOT_AN_OBJECT: arguments}),
    }
}

fn result_block(asked: &PreparedRequest<'_>, result: &FunctionResult) -> Value {
    let mut fields = Map::new();
    fields.insert(TYPE.to_owned(), "tool_result".into());
    fields.insert("tool_use_id".to_owned(), asked.ids.wire(&result.call_id).into());
    let has_text = !result.result.trim().is_empty();
    if !result.items.is_empty() {
        let text = has_text.then(|| json!({TYPE: "text", "text": result.result}));
        let parts: Vec<_> = text.into_iter().chain(result.items.iter().map(block)).collect();
        fields.insert("content".to_owned(), parts.into());
    } else if has_text {
        fields.insert("content".to_owned(), result.result.as_str().into());
    }
    if result.is_error {
        fields.insert("is_error".to_owned(), true.into());
    }
    Value::Object(fields)
}

fn block(data: &Data) -> Value {
    let source = json!({TYPE: "base64", "media_type": data.media_type, "data": data.data});
    match data.media_type.as_str() {
        kind if kind.starts_with("image/") => json!({TYPE: "image", "source": source}),
        "application/pdf" => json!({TYPE: "document", "source": source}),
        _ => json!({TYPE: "text", "text": not_shown(data)}),
    }
}
