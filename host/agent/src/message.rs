//! Messages of a conversation, independent of any provider. Their JSON form is that of a history
//! record (`SES-10`).

mod content;
mod usage;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use content::{
    ApprovalAnswer, ApprovalRequest, Data, FunctionCall, FunctionResult, MessageContent, Reasoning,
    TextContent, UriContent,
};
pub(crate) use content::{OBJECTIONS, PROGRAM};
pub use usage::TokenUsage;

/// Key in [`Message::additional_properties`] of the id of the context provider that added the
/// message (`SES-3`).
const SOURCE: &str = "source_id";
/// Key in [`Message::additional_properties`] that marks pinned messages (`SES-17`).
const PINNED: &str = "pinned";

/// One message. Unknown fields are preserved (`SES-10`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    #[serde(rename = "type", default)]
    record: MessageRecordType,
    /// Role of the author.
    pub role: Role,
    /// Parts of the message, in order.
    #[serde(default)]
    pub contents: Vec<MessageContent>,
    /// Properties that programs attach to the message. The model does not see them.
    #[serde(default)]
    pub additional_properties: Map<String, Value>,
    /// Unknown fields of the record.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageRecordType {
    #[default]
    Message,
}

/// Role of a message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program: instructions.
    #[serde(alias = "developer")]
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Results of function calls.
    Tool,
}

impl Message {
    /// Creates a message.
    #[must_use]
    pub fn new(role: Role, contents: Vec<MessageContent>) -> Self {
        Self {
            record: MessageRecordType::Message,
            role,
            contents,
            additional_properties: Map::new(),
            extra: Map::new(),
        }
    }

    /// Creates a user message from a string.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![MessageContent::text(text)])
    }

    /// Creates an assistant message from a string.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![MessageContent::text(text)])
    }

    /// Creates a system message from a string.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![MessageContent::text(text)])
    }

    /// Returns the concatenated text contents.
    #[must_use]
    pub fn text(&self) -> String {
        self.contents.iter().filter_map(MessageContent::as_text).collect()
    }

    /// Removes the reasoning. Providers accept reasoning only behind the messages that it came
    /// after, so a message that stays while those before it are rewritten has to lose it.
    #[must_use]
    pub fn without_reasoning(mut self) -> Self {
        self.contents.retain(|content| !matches!(content, MessageContent::Reasoning(_)));
        self
    }

    /// Returns the function calls in order.
    pub fn calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.contents.iter().filter_map(MessageContent::as_call)
    }

    /// Returns the results of function calls in order.
    pub fn results(&self) -> impl Iterator<Item = &FunctionResult> {
        self.contents.iter().filter_map(MessageContent::as_result)
    }

    /// Returns the id of the context provider that added the message, if one did (`SES-3`).
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.additional_properties.get(SOURCE).and_then(Value::as_str)
    }

    /// Marks the message as added by a context provider (`SES-3`).
    #[must_use]
    pub fn from_source(mut self, source: &str) -> Self {
        self.additional_properties.insert(SOURCE.to_owned(), source.into());
        self
    }

    /// Removes the mark of a context provider.
    pub(crate) fn without_source(mut self) -> Self {
        self.additional_properties.remove(SOURCE);
        self
    }

    /// Pins the message: a [compaction](crate::Compaction) keeps it (`SES-17`).
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.additional_properties.insert(PINNED.to_owned(), true.into());
        self
    }

    /// Returns whether the message is pinned.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.additional_properties.get(PINNED) == Some(&Value::Bool(true))
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::user(text)
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::user(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_read_back_with_everything_in_it() {
        let record = json!({
            "type": "message",
            "role": "assistant",
            "contents": [
                {"type": "text", "text": "hé", "annotations": [1]},
                {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}", "item_id": "fc_1"},
                {"type": "function_result", "call_id": "c1", "result": "3"},
                {"type": "hosted_file", "file_id": "f"},
                {"type": "uri", "uri": "https://a.example/b.png", "media_type": "image/png", "n": 1},
            ],
            "additional_properties": {"k": {"n": 1}},
            "author_name": "A",
        });
        let message: Message = serde_json::from_value(record.clone()).unwrap();
        assert_eq!(message.calls().next().unwrap().name, "add");
        assert!(matches!(message.contents.last(), Some(MessageContent::Uri(_))));
        assert_eq!(serde_json::to_value(&message).unwrap(), record);
    }

    #[test]
    fn reasoning_is_removed_and_nothing_else() {
        let thought = Reasoning { text: "Hm.".to_owned(), ..Reasoning::default() };
        let others = vec![MessageContent::text("a"), MessageContent::call("c", "f", "{}")];
        let mut contents = vec![MessageContent::Reasoning(thought)];
        contents.extend(others.clone());
        contents.insert(2, contents[0].clone());
        let message = Message::new(Role::Assistant, contents).from_source("s");
        let expected = Message::new(Role::Assistant, others).from_source("s");
        assert_eq!(message.without_reasoning(), expected);
    }

    #[test]
    fn arguments_and_results_of_other_writers_become_texts() {
        let record = json!({"role": "tool", "contents": [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": {"a": 1}},
            {"type": "function_result", "call_id": "c", "result": {"b": [2]}},
            {"type": "function_result", "call_id": "d"},
        ]});
        let message: Message = serde_json::from_value(record).unwrap();
        assert_eq!(message.calls().next().unwrap().arguments, r#"{"a":1}"#);
        let results: Vec<_> = message.results().map(|result| result.result.as_str()).collect();
        assert_eq!(results, [r#"{"b":[2]}"#, ""]);
    }

    #[test]
    fn a_record_of_another_type_is_no_message() {
        assert!(
            serde_json::from_value::<Message>(json!({"type": "session", "role": "user"})).is_err()
        );
        assert!(
            serde_json::from_value::<Message>(json!({"type": "message", "role": "unknown"}))
                .is_err()
        );
    }
}
