//! Parts of a message.

use cofferdam_tool::origin::ToolOrigin;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Field of an approval request that contains the guard's objections to the call.
pub(crate) const OBJECTIONS: &str = "policy_violations";
/// Field of an approval request about a call of a program: the id of the call that runs it.
pub(crate) const PROGRAM: &str = "program_call_id";

/// One part of a message. Every part preserves the unknown fields of its record (`SES-10`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum MessageContent {
    /// Text.
    Text(TextContent),
    /// Reasoning of a model, to the extent that the provider shows it. It is sent back to the
    /// provider unchanged.
    #[serde(rename = "text_reasoning")]
    Reasoning(Reasoning),
    /// Bytes with a media type.
    Data(Data),
    /// A file at an address that the provider reads.
    Uri(UriContent),
    /// A function call by the model.
    FunctionCall(FunctionCall),
    /// Result of a function call.
    FunctionResult(FunctionResult),
    /// Request to the user to approve a call (`LOOP-36`). The model does not see it.
    #[serde(rename = "function_approval_request")]
    ApprovalRequest(ApprovalRequest),
    /// Answer of the user to an approval request (`LOOP-37`). The model does not see it.
    #[serde(rename = "function_approval_response")]
    ApprovalAnswer(ApprovalAnswer),
    /// A part of an unknown kind. It is preserved, and the model does not see it.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// Text content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextContent {
    /// The text itself.
    pub text: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reasoning of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// Text that may be shown; often empty.
    #[serde(default)]
    pub text: String,
    /// Value that the provider requires back unchanged: a signature or an encrypted item. Only the
    /// client that created it reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Bytes with a media type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// Media type, for example `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A file at an address that the provider reads. What is there may change between requests, so
/// prefer [`Data`] in a conversation that goes on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct UriContent {
    /// Address of the file.
    pub uri: String,
    /// Media type, for example `image/png`.
    pub media_type: String,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A function call by the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// Id that the model gave the call.
    pub call_id: String,
    /// Name of the function.
    pub name: String,
    /// Arguments as the model wrote them, which should be JSON. Empty means none.
    #[serde(default, deserialize_with = "text_of_any")]
    pub arguments: String,
    /// True if the caller of the run has to execute the call (`LOOP-26`).
    #[serde(default, rename = "caller_request", skip_serializing_if = "std::ops::Not::not")]
    pub is_for_caller: bool,
    /// Unknown fields, such as a provider's own id of the item.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Result of a function call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionResult {
    /// Id of the call.
    pub call_id: String,
    /// Text for the model (`RES-16`).
    #[serde(default, deserialize_with = "text_of_any")]
    pub result: String,
    /// Parts of the result that are not text, such as images. A provider that does not support them
    /// gets only the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Data>,
    /// True if the result counts as an error (`LOOP-17`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Request to the user to approve a call (`LOOP-36`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Id of the request: fresh and not guessable.
    pub id: String,
    /// The call, with its exact arguments.
    pub function_call: FunctionCall,
    /// Origin of the tool that would run. Requests of earlier versions do not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Answer of the user to an approval request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// Id of the request.
    pub id: String,
    /// Boolean `true` approves; any other value refuses (`LOOP-38`).
    #[serde(default)]
    pub approved: Value,
    /// Reason for a refusal, which the model sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Id of the call. If given, it has to match the request (`LOOP-37`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Name of the function. If given, it has to match the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Arguments as JSON. If given, they have to match the request; compared as JSON values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl MessageContent {
    /// Creates a text content.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), extra: Map::new() })
    }

    /// Creates a function call.
    #[must_use]
    pub fn call(
        call_id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self::FunctionCall(FunctionCall {
            call_id: call_id.into(),
            name: name.into(),
            arguments: arguments.into(),
            ..FunctionCall::default()
        })
    }

    /// Creates the result of a call.
    #[must_use]
    pub fn result(call_id: impl Into<String>, result: impl Into<String>) -> Self {
        Self::FunctionResult(FunctionResult {
            call_id: call_id.into(),
            result: result.into(),
            ..FunctionResult::default()
        })
    }

    /// Returns the text, if this is a text content.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// Returns the call, if this is one.
    #[must_use]
    pub fn as_call(&self) -> Option<&FunctionCall> {
        match self {
            Self::FunctionCall(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the result, if this is one.
    #[must_use]
    pub fn as_result(&self) -> Option<&FunctionResult> {
        match self {
            Self::FunctionResult(result) => Some(result),
            _ => None,
        }
    }
}

impl ApprovalRequest {
    /// Returns the answer that approves the call.
    #[must_use]
    pub fn approve(&self) -> MessageContent {
        self.answer(true, None)
    }

    /// Returns the answer that refuses the call. The model sees the reason.
    #[must_use]
    pub fn refuse(&self, reason: Option<String>) -> MessageContent {
        self.answer(false, reason)
    }

    /// Returns the messages of the guard's objections to the call; none unless the user is asked
    /// because of them.
    pub fn violations(&self) -> impl Iterator<Item = &str> {
        let violations = self.extra.get(OBJECTIONS).and_then(Value::as_array);
        violations.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns whether the call is one that a program of the model makes.
    #[must_use]
    pub fn is_of_program(&self) -> bool {
        self.extra.contains_key(PROGRAM)
    }

    fn answer(&self, approved: bool, reason: Option<String>) -> MessageContent {
        MessageContent::ApprovalAnswer(ApprovalAnswer {
            id: self.id.clone(),
            approved: approved.into(),
            reason,
            call_id: Some(self.function_call.call_id.clone()),
            name: Some(self.function_call.name.clone()),
            arguments: Some(self.function_call.arguments.clone()),
            extra: Map::new(),
        })
    }
}

/// Accepts any value as a string, because other programs write values here.
fn text_of_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    })
}
