//! Messages between executors: JSON with a declared type, so that a waiting message can be stored
//! in a file.

use std::fmt;

use cofferdam_agent::Message;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of the type of agent messages.
const MESSAGE: &str = "message";

/// Type of a message. Edges connect executors whose types fit (`WF-7`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageType {
    /// Every value. This type fits every other type and every other type fits it; the value itself
    /// is checked when it arrives.
    Any,
    /// A string.
    Text,
    /// A number without a fraction.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Any JSON object.
    Object,
    /// A list whose elements all have one type.
    List(Box<MessageType>),
    /// A type of the embedding program, identified by its name. Its JSON is not checked.
    Named(String),
}

/// A value with its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Payload {
    /// Type of the value.
    #[serde(rename = "type")]
    pub message_type: MessageType,
    /// Value as JSON.
    pub value: Value,
}

/// Error returned if a value does not have the expected type.
#[derive(Debug, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct TypeMismatch {
    /// Expected type.
    pub expected: MessageType,
    /// Actual type.
    pub found: &'static str,
}

/// A Rust type that executors can send: it is serialized as JSON, and its message type is known
/// without a value.
///
/// A type of the embedding program is `Named`: `fn message_type() -> MessageType {
/// MessageType::named("order") }`.
pub trait TypedMessage: Serialize + DeserializeOwned + Send + 'static {
    /// Returns the message type.
    fn message_type() -> MessageType;
}

impl MessageType {
    /// Returns the type of lists of `of`.
    #[must_use]
    pub fn list(of: Self) -> Self {
        Self::List(Box::new(of))
    }

    /// Returns a type of the embedding program.
    pub fn named(name: impl Into<String>) -> Self {
        Self::Named(name.into())
    }

    /// Returns the type of lists of agent messages: a conversation or a part of one.
    #[must_use]
    pub fn messages() -> Self {
        Self::list(Self::named(MESSAGE))
    }

    /// Returns whether a message of this type can be sent to an executor that takes `wanted`
    /// (`WF-7`).
    #[must_use]
    pub fn fits(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Any, _) | (_, Self::Any) | (Self::Integer, Self::Number) => true,
            (Self::List(own), Self::List(wanted)) => own.fits(wanted),
            (own, wanted) => own == wanted,
        }
    }

    /// Returns whether a value has this type. A named type admits every value, because only the
    /// embedding program knows its form.
    #[must_use]
    pub fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Any | Self::Named(_) => true,
            Self::Text => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List(of) => {
                value.as_array().is_some_and(|list| list.iter().all(|value| of.admits(value)))
            }
        }
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("anything"),
            Self::Text => f.write_str("text"),
            Self::Integer => f.write_str("integer"),
            Self::Number => f.write_str("number"),
            Self::Boolean => f.write_str("boolean"),
            Self::Object => f.write_str("object"),
            Self::List(of) => write!(f, "list of {of}"),
            Self::Named(name) => write!(f, "`{name}`"),
        }
    }
}

impl Payload {
    /// Creates a value of a type.
    ///
    /// # Errors
    /// [`TypeMismatch`] if the value does not have the type.
    pub fn new(message_type: MessageType, value: Value) -> Result<Self, TypeMismatch> {
        if message_type.admits(&value) {
            return Ok(Self { message_type, value });
        }
        Err(TypeMismatch { found: kind(&value), expected: message_type })
    }

    /// Creates a string.
    pub fn text(text: impl Into<String>) -> Self {
        Self { message_type: MessageType::Text, value: Value::String(text.into()) }
    }

    /// Creates a value with the narrowest type that fits it.
    #[must_use]
    pub fn json(value: Value) -> Self {
        let message_type = match &value {
            Value::String(_) => MessageType::Text,
            Value::Bool(_) => MessageType::Boolean,
            Value::Number(number) if number.is_i64() || number.is_u64() => MessageType::Integer,
            Value::Number(_) => MessageType::Number,
            Value::Object(_) => MessageType::Object,
            Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_string) => {
                MessageType::list(MessageType::Text)
            }
            Value::Array(_) => MessageType::list(MessageType::Any),
            Value::Null => MessageType::Any,
        };
        Self { message_type, value }
    }

    /// Creates a list of agent messages.
    #[must_use]
    pub fn messages(messages: &[Message]) -> Self {
        // Cannot fail: messages contain only strings, maps and numbers.
        let value = serde_json::to_value(messages).unwrap_or_default();
        Self { message_type: MessageType::messages(), value }
    }

    /// Serializes a value of a Rust type.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn of<T: TypedMessage>(value: &T) -> Result<Self, serde_json::Error> {
        Ok(Self { message_type: T::message_type(), value: serde_json::to_value(value)? })
    }

    /// Parses the value as a Rust type.
    ///
    /// # Errors
    /// The JSON does not have the form of the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(&self.value)
    }

    /// Returns whether an executor that takes `wanted` takes this message: both the type and the
    /// value have to fit.
    #[must_use]
    pub fn fits_type(&self, wanted: &MessageType) -> bool {
        self.message_type.fits(wanted) && wanted.admits(&self.value)
    }

    /// Returns the value as the user reads it: a string unchanged, messages as their text,
    /// everything else as JSON.
    #[must_use]
    pub fn display_text(&self) -> String {
        if let Value::String(text) = &self.value {
            return text.clone();
        }
        if self.message_type == MessageType::messages()
            && let Ok(messages) = self.read::<Vec<Message>>()
        {
            let texts: Vec<_> = messages.iter().map(Message::text).collect();
            return texts.join("\n");
        }
        self.value.to_string()
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Payload {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self::json(value)
    }
}

impl From<Vec<Message>> for Payload {
    fn from(messages: Vec<Message>) -> Self {
        Self::messages(&messages)
    }
}

impl From<Message> for Payload {
    fn from(message: Message) -> Self {
        Self::messages(&[message])
    }
}

/// Returns the type of a value, for error messages.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

macro_rules! typed {
    ($($rust:ty => $message_type:expr),* $(,)?) => {
        $(impl TypedMessage for $rust {
            fn message_type() -> MessageType {
                $message_type
            }
        })*
    };
}

typed! {
    String => MessageType::Text,
    bool => MessageType::Boolean,
    i32 => MessageType::Integer,
    i64 => MessageType::Integer,
    u32 => MessageType::Integer,
    u64 => MessageType::Integer,
    usize => MessageType::Integer,
    f64 => MessageType::Number,
    Value => MessageType::Any,
    serde_json::Map<String, Value> => MessageType::Object,
    Message => MessageType::named(MESSAGE),
}

impl<T: TypedMessage> TypedMessage for Vec<T> {
    fn message_type() -> MessageType {
        MessageType::list(T::message_type())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_fit_by_their_form() {
        let list = MessageType::list;
        assert!(
            MessageType::Integer.fits(&MessageType::Number)
                && !MessageType::Number.fits(&MessageType::Integer)
        );
        assert!(list(MessageType::Integer).fits(&list(MessageType::Number)));
        assert!(!MessageType::Text.fits(&list(MessageType::Text)));
        assert!(!MessageType::named("a").fits(&MessageType::named("b")));
        assert!(!MessageType::named("a").fits(&MessageType::Object));
        assert!(Payload::json(json!(["a"])).fits_type(&list(MessageType::Text)));
        assert!(!Payload::json(json!([1])).fits_type(&list(MessageType::Text)));
        assert!(!Payload::json(json!(null)).fits_type(&MessageType::Text));
    }

    #[test]
    fn a_value_says_what_it_is_instead() {
        let refused = Payload::new(MessageType::list(MessageType::Text), json!({})).unwrap_err();
        assert_eq!(refused.to_string(), "expected list of text, found object");
        assert_eq!(
            Payload::messages(&[Message::user("a"), Message::assistant("b")]).display_text(),
            "a\nb"
        );
    }

    #[test]
    fn types_are_plain_json() {
        let written = serde_json::to_value(MessageType::messages()).unwrap();
        assert_eq!(written, json!({"list": {"named": "message"}}));
        assert_eq!(
            serde_json::from_value::<MessageType>(written).unwrap(),
            MessageType::messages()
        );
    }
}
