//! Outcome of a recorded call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::{ResourceBody, parse_json};
use crate::{Content, ErrorType, Outcome, Output, ToolError, ToolFailure};

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

impl RecordedOutcome {
    /// Returns the outcome, or `None` if the recording is invalid. Details for the operator are not
    /// in a recording.
    #[must_use]
    pub fn into_outcome(self) -> Option<Outcome> {
        Some(match self {
            Self::Ok(contents) => {
                let contents = contents.into_iter().map(RecordedContent::into_content);
                Outcome::Ok(Output::from_contents(contents.collect::<Option<_>>()?))
            }
            Self::Failure(failure) => Outcome::Failure(failure),
            Self::Error { error, value } => {
                let error = match ErrorType::named(&error) {
                    Some(known) => ToolError::new(known),
                    None => ToolError::host(error),
                };
                Outcome::Error(match value {
                    Some(value) => error.with_error_value(|_| value),
                    None => error,
                })
            }
            Self::Cancelled => Outcome::Cancelled,
        })
    }
}

impl RecordedContent {
    fn into_content(self) -> Option<Content> {
        Some(match self {
            Self::Text(text) => Content::Text(text),
            Self::Json(json) => Content::Json(parse_json(&json).ok()?),
            Self::Blob { media_type, base64 } => {
                Content::Blob { media_type, data: STANDARD.decode(base64).ok()? }
            }
            Self::Resource { uri, media_type, text, base64 } => {
                let body = match (text, base64) {
                    (Some(text), None) => ResourceBody::Text(text),
                    (None, Some(base64)) => ResourceBody::Blob(STANDARD.decode(base64).ok()?),
                    _ => return None,
                };
                Content::Resource { uri, media_type, body }
            }
            Self::Link { uri, name, media_type } => Content::Link { uri, name, media_type },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_back(outcome: &Outcome) -> Option<Outcome> {
        let json = serde_json::to_string(&RecordedOutcome::from(outcome)).unwrap();
        serde_json::from_str::<RecordedOutcome>(&json).unwrap().into_outcome()
    }

    #[test]
    fn outcomes_are_read_back_equal() {
        let resource = |body| Content::Resource { uri: "file:a".into(), media_type: None, body };
        let outcomes = [
            Outcome::Ok(Output::Value(Value::Null)),
            Outcome::Ok(Output::Value("text".into())),
            Outcome::Ok(Output::Value(json!({"a": 0.1, "b": [1, 2.2250738585072014e-308]}))),
            Outcome::Ok(Output::Contents(vec![
                Content::Text("a".into()),
                Content::Json(json!({"a": 1})),
                Content::Blob { media_type: "image/png".into(), data: vec![0, 255] },
                resource(ResourceBody::Text("t".into())),
                resource(ResourceBody::Blob(vec![7])),
                Content::Link { uri: "u".into(), name: "n".into(), media_type: None },
            ])),
            Outcome::Failure(ToolFailure { transient: Some(true), ..ToolFailure::bare("no") }),
            Outcome::Error(ToolError::new(ErrorType::Timeout)),
            Outcome::Error(ToolError::host("Upstream").with_error_value(|_| json!({"k": 1}))),
            Outcome::Cancelled,
        ];
        for outcome in outcomes {
            assert_eq!(read_back(&outcome), Some(outcome));
        }
    }

    #[test]
    fn invalid_recordings_have_no_outcome() {
        let text = |text: &str| Some(text.to_owned());
        let both = RecordedContent::Resource {
            uri: "u".into(),
            media_type: None,
            text: text("t"),
            base64: text("dA=="),
        };
        for content in [both, RecordedContent::Json("{".into())] {
            assert_eq!(RecordedOutcome::Ok(vec![content]).into_outcome(), None);
        }
    }
}
