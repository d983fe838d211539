//! What a conversation consists of, independent of any provider. The JSON form is that of a history
//! record (`SES-10`).

mod content;
mod usage;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use content::OBJECTIONS;
pub use content::{
    ApprovalAnswer, ApprovalRequest, Content, Data, FunctionCall, FunctionResult, Reasoning, Text,
};
pub use usage::TokenUsage;

/// Under this key of [`Message::additional_properties`] stands which context provider added the
/// message (`SES-3`).
const SOURCE: &str = "source_id";

/// One message. Fields that are not known are kept as they were read (`SES-10`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    #[serde(rename = "type", default)]
    record: RecordType,
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    #[serde(default)]
    pub contents: Vec<Content>,
    /// What a program attaches to the message. No model sees it.
    #[serde(default)]
    pub additional_properties: Map<String, Value>,
    /// Fields of the record that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordType {
    #[default]
    Message,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Whoever wrote the program: instructions.
    #[serde(alias = "developer")]
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Results of function calls.
    Tool,
}

impl Message {
    /// A message.
    #[must_use]
    pub fn new(role: Role, contents: Vec<Content>) -> Self {
        Self {
            record: RecordType::Message,
            role,
            contents,
            additional_properties: Map::new(),
            extra: Map::new(),
        }
    }

    /// A text of the person.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Content::text(text)])
    }

    /// A text of the model.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Content::text(text)])
    }

    /// Instructions.
    #[must_use]
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Content::text(text)])
    }

    /// The texts, one after another.
    #[must_use]
    pub fn text(&self) -> String {
        self.contents.iter().filter_map(Content::as_text).collect()
    }

    /// The function calls in their order.
    pub fn calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.contents.iter().filter_map(Content::as_call)
    }

    /// The results of function calls in their order.
    pub fn results(&self) -> impl Iterator<Item = &FunctionResult> {
        self.contents.iter().filter_map(Content::as_result)
    }

    /// Which context provider added the message, if one did (`SES-3`).
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.additional_properties.get(SOURCE).and_then(Value::as_str)
    }

    /// Marks the message as one that a context provider added (`SES-3`).
    #[must_use]
    pub fn from_source(mut self, source: &str) -> Self {
        self.additional_properties.insert(SOURCE.to_owned(), source.into());
        self
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
            ],
            "additional_properties": {"k": {"n": 1}},
            "author_name": "A",
        });
        let message: Message = serde_json::from_value(record.clone()).unwrap();
        assert_eq!(message.calls().next().unwrap().name, "add");
        assert_eq!(serde_json::to_value(&message).unwrap(), record);
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
            serde_json::from_value::<Message>(json!({"type": "message", "role": "nobody"}))
                .is_err()
        );
    }
}
