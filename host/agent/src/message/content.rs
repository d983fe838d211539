//! The parts of a message.

use cofferdam_tool::origin::ToolOrigin;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// The field of an approval request with the objections of the guard to the call.
pub(crate) const OBJECTIONS: &str = "policy_violations";

/// One part of a message. Every part keeps the fields of its record that are not known here
/// (`SES-10`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(Text),
    /// What a model thought before it answered, as far as the provider shows it. It goes back to
    /// the provider as it came.
    #[serde(rename = "text_reasoning")]
    Reasoning(Reasoning),
    /// Bytes with a media type.
    Data(Data),
    /// The model wants a function called.
    FunctionCall(FunctionCall),
    /// What a function call gave.
    FunctionResult(FunctionResult),
    /// A person is asked whether a call may be made (`LOOP-36`). No model sees it.
    #[serde(rename = "function_approval_request")]
    ApprovalRequest(ApprovalRequest),
    /// What the person said (`LOOP-37`). No model sees it.
    #[serde(rename = "function_approval_response")]
    ApprovalAnswer(ApprovalAnswer),
    /// A part of another kind. It is kept, and no model sees it.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

/// Text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// The text itself.
    pub text: String,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Reasoning of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reasoning {
    /// What may be shown of it; often nothing.
    #[serde(default)]
    pub text: String,
    /// What the provider wants back unchanged: a signature, an encrypted item. Only the client that
    /// wrote it reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Bytes with a media type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// For example `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The model wants a function called.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The model's id of the call.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// The arguments as the model wrote them: JSON text if the model got it right. Empty means
    /// none.
    #[serde(default, deserialize_with = "text_of_any")]
    pub arguments: String,
    /// Whether the caller of the run has to make the call (`LOOP-26`).
    #[serde(default, rename = "caller_request", skip_serializing_if = "std::ops::Not::not")]
    pub is_for_caller: bool,
    /// Fields that are not known here; a provider's own id of the item, for example.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What a function call gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionResult {
    /// The call's id.
    pub call_id: String,
    /// What the model is shown, as text (`RES-16`).
    #[serde(default, deserialize_with = "text_of_any")]
    pub result: String,
    /// Parts of the result that are no text, such as images. A provider that cannot take them gets
    /// the text alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Data>,
    /// Whether the result counts as an error (`LOOP-17`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A person is asked whether a call may be made (`LOOP-36`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id of the request: fresh, and not to be guessed.
    pub id: String,
    /// The call, with its exact arguments.
    pub function_call: FunctionCall,
    /// Origin of the tool that would run. Requests of earlier versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<ToolOrigin>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What the person said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAnswer {
    /// The id of the request.
    pub id: String,
    /// The boolean `true` is approval; everything else is a refusal (`LOOP-38`).
    #[serde(default)]
    pub approved: Value,
    /// Why not; the model is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The id of the call. What is given here has to be what was asked (`LOOP-37`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The name of the function, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The arguments as JSON text, likewise; compared as JSON values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Fields that are not known here.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Content {
    /// Text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), extra: Map::new() })
    }

    /// A function call.
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

    /// The result of a call.
    #[must_use]
    pub fn result(call_id: impl Into<String>, result: impl Into<String>) -> Self {
        Self::FunctionResult(FunctionResult {
            call_id: call_id.into(),
            result: result.into(),
            ..FunctionResult::default()
        })
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The call, if it is one.
    #[must_use]
    pub fn as_call(&self) -> Option<&FunctionCall> {
        match self {
            Self::FunctionCall(call) => Some(call),
            _ => None,
        }
    }

    /// The result, if it is one.
    #[must_use]
    pub fn as_result(&self) -> Option<&FunctionResult> {
        match self {
            Self::FunctionResult(result) => Some(result),
            _ => None,
        }
    }
}

impl ApprovalRequest {
    /// The answer that the call may be made.
    #[must_use]
    pub fn approve(&self) -> Content {
        self.answer(true, None)
    }

    /// The answer that it may not. A reason is told to the model.
    #[must_use]
    pub fn refuse(&self, reason: Option<String>) -> Content {
        self.answer(false, reason)
    }

    /// Returns the objections of the agent's guard to the call, in its words; none unless the user
    /// is asked because of them.
    pub fn violations(&self) -> impl Iterator<Item = &str> {
        let violations = self.extra.get(OBJECTIONS).and_then(Value::as_array);
        violations.into_iter().flatten().filter_map(Value::as_str)
    }

    fn answer(&self, approved: bool, reason: Option<String>) -> Content {
        Content::ApprovalAnswer(ApprovalAnswer {
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

/// Other writers put values where texts are here.
fn text_of_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => String::new(),
        Value::String(text) => text,
        other => other.to_string(),
    })
}
