//! Requests in the form of Chat Completions.
//!
//! A result of a call is a message of its own, and holds text alone: images of results follow in a
//! message of the user's, after the last result. There is no mark for errors; the text of a result
//! says what went wrong. Reasoning is not sent back: the interface has no place for it.

use cofferdam_agent::{Content, Data, FunctionCall, FunctionResult, Message, Role, ToolMode};
use serde_json::{Map, Value, json};

use super::super::asked::{Asked, arguments_text, data_url, not_shown};
use super::super::tools::WrittenSchema;

/// A function.
pub(in super::super) fn tool(name: &str, description: &str, schema: &WrittenSchema) -> Value {
    let mut function =
        json!({"name": name, "description": description, "parameters": schema.schema});
    // Others do not know the field, so it is there only if it says something.
    if schema.is_strict
        && let Some(function) = function.as_object_mut()
    {
        function.insert("strict".to_owned(), true.into());
    }
    json!({"type": "function", "function": function})
}

/// Everything but the tools.
pub(in super::super) fn fields(asked: &Asked<'_>) -> Map<String, Value> {
    let options = &asked.request.options;
    let mut fields = Map::new();
    let mut set = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    set("model", asked.settings.model.as_str().into());
    set("messages", messages(asked).into());
    if asked.streams {
        set("stream", true.into());
        set("stream_options", json!({"include_usage": true}));
    }
    if let Some(tokens) = asked.max_tokens() {
        // OpenAI refuses the old name for its newer models, and others do not know the new one.
        set(
            if is_openai(&asked.settings.base_url) {
                "max_completion_tokens"
            } else {
                "max_tokens"
            },
            tokens.into(),
        );
    }
    if let Some(temperature) = options.temperature {
        set("temperature", temperature.into());
    }
    if asked.has_tools() {
        if let Some(mode) = &options.tool_choice {
            set("tool_choice", tool_choice(mode, asked));
        }
        if let Some(allow) = options.allow_parallel_calls {
            set("parallel_tool_calls", allow.into());
        }
    }
    fields
}

/// Whether a server is one of OpenAI itself, or of its largest tenant.
fn is_openai(base_url: &str) -> bool {
    let url = reqwest::Url::parse(base_url).ok();
    let host = url.as_ref().and_then(|url| url.host_str()).unwrap_or_default();
    host == "api.openai.com"
        || [".api.openai.com", ".openai.azure.com"].iter().any(|end| host.ends_with(end))
}

fn tool_choice(mode: &ToolMode, asked: &Asked<'_>) -> Value {
    match mode {
        ToolMode::Auto => "auto".into(),
        ToolMode::None => "none".into(),
        ToolMode::Required(None) => "required".into(),
        ToolMode::Required(Some(name)) => {
            json!({"type": "function", "function": {"name": asked.names.wire(name)}})
        }
    }
}

fn messages(asked: &Asked<'_>) -> Vec<Value> {
    let mut writer = Writer { asked, messages: Vec::new(), images: Vec::new() };
    if let Some(instructions) =
        asked.request.options.instructions.as_deref().filter(|text| !text.is_empty())
    {
        writer.messages.push(json!({"role": "system", "content": instructions}));
    }
    asked.messages.iter().for_each(|message| writer.add(message));
    writer.show_images();
    writer.messages
}

struct Writer<'a> {
    asked: &'a Asked<'a>,
    messages: Vec<Value>,
    /// Images of results, which follow when all results are there.
    images: Vec<Value>,
}

impl Writer<'_> {
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
        json!({"id": self.asked.ids.wire(&call.call_id), "type": "function", "function": function})
    }

    fn add_result(&mut self, result: &FunctionResult) {
        let id = self.asked.ids.wire(&result.call_id);
        self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": result.result}));
        if !result.items.is_empty() {
            self.images.push(
                json!({"type": "text", "text": format!("Part of the result of the call {id}:")}),
            );
            self.images.extend(result.items.iter().map(part));
        }
    }

    fn show_images(&mut self) {
        if !self.images.is_empty() {
            let images = std::mem::take(&mut self.images);
            self.messages.push(json!({"role": "user", "content": images}));
        }
    }

    fn add_question(&mut self, message: &Message) {
        if !message.contents.iter().any(|content| matches!(content, Content::Data(_))) {
            return self.add_text("user", &message.text());
        }
        let parts = message.contents.iter().filter_map(|content| match content {
            Content::Text(text) if !text.text.is_empty() => {
                Some(json!({"type": "text", "text": text.text}))
            }
            Content::Data(data) => Some(part(data)),
            _ => None,
        });
        let parts: Vec<_> = parts.collect();
        self.messages.push(json!({"role": "user", "content": parts}));
    }
}

fn part(data: &Data) -> Value {
    match data.media_type.as_str() {
        kind if kind.starts_with("image/") => {
            json!({"type": "image_url", "image_url": {"url": data_url(data)}})
        }
        "application/pdf" => {
            json!({"type": "file", "file": {"filename": "document.pdf", "file_data": data_url(data)}})
        }
        "audio/wav" | "audio/x-wav" => {
            json!({"type": "input_audio", "input_audio": {"data": data.data, "format": "wav"}})
        }
        "audio/mpeg" | "audio/mp3" => {
            json!({"type": "input_audio", "input_audio": {"data": data.data, "format": "mp3"}})
        }
        _ => json!({"type": "text", "text": not_shown(data)}),
    }
}

#[cfg(test)]
mod tests {
    use super::is_openai;

    #[test]
    fn openai_is_known_by_its_host() {
        for base in [
            "https://api.openai.com/v1/",
            "https://eu.api.openai.com/v1",
            "https://x.openai.azure.com/openai/v1",
        ] {
            assert!(is_openai(base), "{base}");
        }
        for base in [
            "http://127.0.0.1/v1",
            "https://notapi.openai.com.example",
            "https://api.openai.com.example",
            "",
        ] {
            assert!(!is_openai(base), "{base}");
        }
    }
}
