//! Outcome of a recorded call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::ResourceBody;
use crate::{Content, Outcome, Output, ToolFailure};

/// Outcome of a call in a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedOutcome {
    /// The tool returned contents.
    Ok(Vec<RecordedContent>),
    /// The tool reported a failure.
    Failure(ToolFailure),
    /// A trap, a limit, a denial or an invalid result ended the call.
    Error {
        /// Type of the error, such as `Timeout`.
        error: String,
        /// Error value of the host, if it replaces the message for the type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Value>,
    },
    /// The caller gave up.
    Cancelled,
}

/// Content of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedContent {
    /// Text.
    Text(String),
    /// JSON text.
    Json(String),
    /// Bytes in Base64, with a media type.
    Blob {
        /// Media type.
        media_type: String,
        /// The bytes in Base64.
        base64: String,
    },
    /// An addressed resource with its content.
    Resource {
        /// Address.
        uri: String,
        /// Media type.
        media_type: Option<String>,
        /// Content, if it is text.
        text: Option<String>,
        /// Content in Base64, if it is not.
        base64: Option<String>,
    },
    /// A link to a resource.
    Link {
        /// Address.
        uri: String,
        /// Name.
        name: String,
        /// Media type.
        media_type: Option<String>,
    },
}

impl From<&Outcome> for RecordedOutcome {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Ok(Output::Value(Value::Null)) => Self::Ok(Vec::new()),
            Outcome::Ok(Output::Value(Value::String(text))) => {
                Self::Ok(vec![RecordedContent::Text(text.clone())])
            }
            Outcome::Ok(Output::Value(value)) => {
                Self::Ok(vec![RecordedContent::Json(value.to_string())])
            }
            Outcome::Ok(Output::Contents(contents)) => {
                Self::Ok(contents.iter().map(RecordedContent::from).collect())
            }
            Outcome::Failure(failure) => Self::Failure(failure.clone()),
            Outcome::Error(error) => Self::Error {
                error: error.type_name().to_owned(),
                value: error.has_own_value().then(|| error.error_value()),
            },
            Outcome::Cancelled => Self::Cancelled,
        }
    }
}

impl From<&Content> for RecordedContent {
    fn from(content: &Content) -> Self {
        match content {
            Content::Text(text) => Self::Text(text.clone()),
            Content::Json(value) => Self::Json(value.to_string()),
            Content::Blob { media_type, data } => {
                Self::Blob { media_type: media_type.clone(), base64: STANDARD.encode(data) }
            }
            Content::Resource { uri, media_type, body } => {
                let (text, base64) = match body {
                    ResourceBody::Text(text) => (Some(text.clone()), None),
                    ResourceBody::Blob(data) => (None, Some(STANDARD.encode(data))),
                };
                Self::Resource { uri: uri.clone(), media_type: media_type.clone(), text, base64 }
            }
            Content::Link { uri, name, media_type } => {
                Self::Link { uri: uri.clone(), name: name.clone(), media_type: media_type.clone() }
            }
        }
    }
}
