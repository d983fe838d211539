//! Requests of the Chat Completions API.
//!
//! The result of a call is a separate message and can hold only text: images in results follow in a
//! user message after the last result. There is no error flag; the text of a result says what went
//! wrong. Reasoning is not sent back, because the API has no field for it.

use cofferdam_agent::{FunctionCall, FunctionResult, Message, MessageContent, Role, ToolMode};
use serde_json::{Map, Value, json};

use super::super::attachment::Attachment;
use super::super::caching;
use super::super::prepared::{PreparedRequest, arguments_text};
use super::super::response_format::WrittenFormat;
use super::super::tools::WrittenSchema;

/// Serializes a function.
pub(in super::super) fn tool(name: &str, description: &str, schema: &WrittenSchema) -> Value {
    let mut function =
        json!({"name": name, "description": description, "parameters": schema.schema});
    // Other servers may not know the field, so it is present only if it is true.
    if schema.is_strict
        && let Some(function) = function.as_object_mut()
    {
        function.insert("strict".to_owned(), true.into());
    }
    json!({"type": "function", "function": function})
}

/// Returns all fields of a request except the tools.
pub(in super::super) fn fields(asked: &PreparedRequest<'_>) -> Map<String, Value> {
    let options = &asked.request.options;
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    set("model", asked.model().into());
    set("messages", messages(asked).into());
    if asked.streams {
        set("stream", true.into());
        set("stream_options", json!({"include_usage": true}));
    }
    if let Some(tokens) = asked.max_tokens() {
        // OpenAI's newer models reject `max_tokens`, and other servers do not know its replacement.
        set(
            if is_openai(&asked.host) { "max_completion_tokens" } else { "max_tokens" },
            tokens.into(),
        );
    }
    if let Some(temperature) = asked.temperature() {
        set("temperature", temperature.into());
    }
    // Other servers may not know the field.
    if let Some(key) = caching::key(asked).filter(|_| is_openai(&asked.host)) {
        set(caching::KEY, key.into());
    }
    if let Some(share) = asked.top_p() {
        set("top_p", share.into());
    }
    if !options.stop.is_empty() {
        set("stop", options.stop.clone().into());
    }
    if let Some(seed) = options.seed {
        set("seed", seed.into());
    }
    if let Some(effort) = options.effort {
        set("reasoning_effort", effort.name().into());
    }
    if let Some(format) = asked.format() {
        set("response_format", response_format(format));
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
    let mut inner = json!({"name": format.name(), "schema": schema, "strict": strict});
    if let (Some(description), Some(inner)) = (format.description(), inner.as_object_mut()) {
        inner.insert("description".to_owned(), description.into());
    }
    json!({"type": "json_schema", "json_schema": inner})
}

/// Returns whether a host is OpenAI's own or Azure's.
fn is_openai(host: &str) -> bool {
    host == "api.openai.com"
        || [".api.openai.com", ".openai.azure.com"].iter().any(|end| host.ends_with(end))
}

fn tool_choice(mode: &ToolMode, asked: &PreparedRequest<'_>) -> Value {
    match mode {
        ToolMode::Auto => "auto".into(),
        ToolMode::None => "none".into(),
        ToolMode::Required(None) => "required".into(),
        ToolMode::Required(Some(name)) => {
            json!({"type": "function", "function": {"name": asked.names.wire(name)}})
        }
    }
}

fn messages(asked: &PreparedRequest<'_>) -> Vec<Value> {
    let mut writer = ChatWriter { asked, messages: Vec::new(), images: Vec::new() };
    if let Some(instructions) = asked.instructions() {
        writer.messages.push(json!({"role": "system", "content": instructions}));
    }
    asked.messages.iter().for_each(|message| writer.add(message));
    writer.show_images();
    writer.messages
}

struct ChatWriter<'a> {
    asked: &'a PreparedRequest<'a>,
    messages: Vec<Value>,
    /// Images of results, sent after all results.
    images: Vec<Value>,
}

impl ChatWriter<'_> {
    fn add(&mut self, message: &Message) {
        let is_result_alone = message.role == Role::Tool;
        if !is_result_alone {
            self.show_images();
        }
        match message.role {
            Role::System => self.add_text("system", &message.text()),
            Role::Assistant => self.add_reply(message),
            Role::User | Role::Tool => {}
        }
        message.results().for_each(|result| self.add_result(result));
        if message.role == Role::User {
            self.show_images();
            self.add_question(message);
        }
    }

    fn add_text(&mut self, role: &str, text: &str) {
        if !text.is_empty() {
            self.messages.push(json!({"role": role, "content": text}));
        }
    }

    fn add_reply(&mut self, message: &Message) {
        let calls: Vec<_> = message.calls().map(|call| self.call(call)).collect();
        let text = message.text();
        if calls.is_empty() {
            return self.add_text("assistant", &text);
        }
        let text = if text.is_empty() { Value::Null } else { text.into() };
        self.messages.push(json!({"role": "assistant", "content": text, "tool_calls": calls}));
    }

    fn call(&self, call: &FunctionCall) -> Value {
        let function = json!({"name": self.asked.names.wire(&call.name), "arguments": arguments_text(&call.arguments)});
        let mut call_fields = Map::new();
        call_fields.insert("id".to_owned(), self.asked.ids.wire(&call.call_id).into());
        call_fields.insert("type".to_owned(), "function".into());
        call_fields.insert("function".to_owned(), function);
        for (key, value) in self.asked.wire_fields(call).into_iter().flatten() {
            call_fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Value::Object(call_fields)
    }

    fn add_result(&mut self, result: &FunctionResult) {
        let id = self.asked.ids.wire(&result.call_id);
        self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": result.result}));
        if !result.items.is_empty() {
            self.images.push(
                json!({"type": "text", "text": format!("Part of the result of the call {id}:")}),
            );
            self.images.extend(result.items.iter().map(Attachment::Data).map(part));
        }
    }

    fn show_images(&mut self) {
        if !self.images.is_empty() {
            let images = std::mem::take(&mut self.images);
            self.messages.push(json!({"role": "user", "content": images}));
        }
    }

    fn add_question(&mut self, message: &Message) {
        if !message.contents.iter().any(|content| Attachment::of(content).is_some()) {
            return self.add_text("user", &message.text());
        }
        let parts = message.contents.iter().filter_map(|content| match content {
            MessageContent::Text(text) if !text.text.is_empty() => {
                Some(json!({"type": "text", "text": text.text}))
            }
            content => Attachment::of(content).map(part),
        });
        let parts: Vec<_> = parts.collect();
        self.messages.push(json!({"role": "user", "content": parts}));
    }
}

/// Writes a file as a part of a message. The API has no links to other files than images.
pub(in super::super) fn attachment(file: Attachment<'_>) -> Option<Value> {
    if file.is_image() {
        return Some(json!({"type": "image_url", "image_url": {"url": file.url()}}));
    }
    let Attachment::Data(data) = file else { return None };
    let audio = |format| json!({"type": "input_audio", "input_audio": {"data": data.data, "format": format}});
    match data.media_type.as_str() {
        "application/pdf" => {
            let content = json!({"filename": "document.pdf", "file_data": file.url()});
            Some(json!({"type": "file", "file": content}))
        }
        "audio/wav" | "audio/x-wav" => Some(audio("wav")),
        "audio/mpeg" | "audio/mp3" => Some(audio("mp3")),
        _ => None,
    }
}

fn part(file: Attachment<'_>) -> Value {
    attachment(file).unwrap_or_else(|| json!({"type": "text", "text": file.not_shown()}))
}

#[cfg(test)]
mod tests {
    use super::is_openai;

    #[test]
    fn openai_is_known_by_its_host() {
        for host in ["api.openai.com", "eu.api.openai.com", "x.openai.azure.com"] {
            assert!(is_openai(host), "{host}");
        }
        for host in ["127.0.0.1", "notapi.openai.com.example", "api.openai.com.example", ""] {
            assert!(!is_openai(host), "{host}");
        }
    }
}
