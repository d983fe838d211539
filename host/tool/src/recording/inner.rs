//! Calls of other tools, and questions to the caller.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::RecordedContent;
use crate::{Annotations, ToolFailure};

/// Tool that a guest saw in the list of tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedTool {
    /// Name.
    pub name: String,
    /// Title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Description.
    pub description: String,
    /// Input schema as JSON text.
    pub input_schema: String,
    /// Output schema as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
    /// Annotations.
    pub annotations: Annotations,
}

/// Call of another tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedInnerCall {
    /// Name of the tool.
    pub tool: String,
    /// Arguments as the guest wrote them.
    pub arguments: String,
    /// Answer that the guest received.
    pub answer: RecordedInnerAnswer,
    /// Number of a call that the guest started without waiting for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
}

/// Answer to the call of another tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedInnerAnswer {
    /// The tool returned contents.
    Ok(Vec<RecordedContent>),
    /// The tool reported a failure.
    Failed(ToolFailure),
    /// The call ended with an error of this type.
    Ended(String),
    /// The arguments did not fit the schema.
    InvalidArguments(String),
    /// There is no such tool for the guest.
    UnknownTool,
    /// Calls were nested too deeply.
    TooDeep,
    /// A started call ended with an error.
    Error(RecordedCallError),
    /// The guest did not receive the end of a started call.
    Unread,
}

/// Error of a call that the guest started without waiting for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedCallError {
    /// Kind of the error, such as `unknown-tool`.
    pub kind: String,
    /// Name of the error type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<String>,
    /// Message for the model.
    pub message: String,
    /// Suggestion for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// Error value as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// True if the same call may succeed later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub transient: bool,
}

/// Questions that were asked at once, and their answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedAnswers {
    /// Kind and parameters of each question.
    pub questions: Vec<(String, Map<String, Value>)>,
    /// Answers, or the message of the failure.
    pub answers: Result<Vec<Value>, String>,
}
