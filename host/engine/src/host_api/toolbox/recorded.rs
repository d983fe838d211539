//! Conversions between the guest's types of inner calls and those of recordings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::recording::{
    RecordedCallError, RecordedContent, RecordedInnerAnswer, RecordedTool,
};
use cofferdam_tool::{ToolDefinition, ToolFailure};

use super::inner::to_guest_failure;
use crate::guest::cofferdam::plugin::tool_calls::{self, ErrorKind};
use crate::guest::cofferdam::plugin::toolbox::Error;
use crate::guest::cofferdam::plugin::types;
use crate::guest::{Content, EmbeddedResource, Link, ResourceBody};

/// Converts a definition to the form of recordings.
pub(super) fn tool(definition: &ToolDefinition) -> RecordedTool {
    RecordedTool {
        name: definition.name.to_string(),
        title: definition.title.clone(),
        description: definition.description.clone(),
        input_schema: definition.input.published().to_string(),
        output_schema: definition.output.as_ref().map(|schema| schema.published().to_string()),
        annotations: definition.annotations,
    }
}

/// Converts a definition to the guest's form.
pub(super) fn to_guest_definition(tool: RecordedTool) -> types::ToolDefinition {
    let annotations = tool.annotations;
    types::ToolDefinition {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        annotations: types::Annotations {
            read_only: annotations.read_only,
            destructive: annotations.destructive,
            idempotent: annotations.idempotent,
            open_world: annotations.open_world,
            long_running: annotations.long_running,
        },
    }
}

/// Converts what the guest received.
pub(super) fn answer(answer: &Result<Vec<Content>, Error>) -> RecordedInnerAnswer {
    match answer {
        Ok(contents) => RecordedInnerAnswer::Ok(contents.iter().map(content).collect()),
        Err(Error::Failed(failure)) => RecordedInnerAnswer::Failed(ToolFailure {
            message: failure.message.clone(),
            suggestion: failure.suggestion.clone(),
            transient: failure.transient,
            // The guest's form is JSON text, which was made of a value.
            value: failure.value.as_ref().and_then(|value| serde_json::from_str(value).ok()),
            is_bare: false,
        }),
        Err(Error::Ended(name)) => RecordedInnerAnswer::Ended(name.clone()),
        Err(Error::InvalidArguments(text)) => RecordedInnerAnswer::InvalidArguments(text.clone()),
        Err(Error::UnknownTool) => RecordedInnerAnswer::UnknownTool,
        Err(Error::TooDeep) => RecordedInnerAnswer::TooDeep,
    }
}

/// Converts a recorded answer to the guest's form.
pub(super) fn to_guest_answer(answer: RecordedInnerAnswer) -> Result<Vec<Content>, Error> {
    match answer {
        RecordedInnerAnswer::Ok(contents) => Ok(contents.into_iter().map(to_guest).collect()),
        RecordedInnerAnswer::Failed(failure) => Err(Error::Failed(to_guest_failure(failure))),
        RecordedInnerAnswer::Ended(name) => Err(Error::Ended(name)),
        RecordedInnerAnswer::InvalidArguments(text) => Err(Error::InvalidArguments(text)),
        RecordedInnerAnswer::UnknownTool => Err(Error::UnknownTool),
        RecordedInnerAnswer::TooDeep => Err(Error::TooDeep),
        // Answers to started calls, which `toolbox.call-tool` does not get.
        RecordedInnerAnswer::Error(_) | RecordedInnerAnswer::Unread => Err(Error::UnknownTool),
    }
}

/// Converts the outcome of a started call.
pub(super) fn outcome(outcome: &Result<Vec<Content>, tool_calls::Error>) -> RecordedInnerAnswer {
    match outcome {
        Ok(contents) => RecordedInnerAnswer::Ok(contents.iter().map(content).collect()),
        Err(error) => RecordedInnerAnswer::Error(RecordedCallError {
            kind: kind_name(error.kind).to_owned(),
            error_type: error.error_type.clone(),
            message: error.message.clone(),
            suggestion: error.suggestion.clone(),
            value: error.value.clone(),
            transient: error.transient,
        }),
    }
}

/// Converts a recorded answer to the outcome of a started call, or returns `None` if the guest did
/// not receive it.
pub(super) fn to_guest_outcome(
    answer: RecordedInnerAnswer,
) -> Option<Result<Vec<Content>, tool_calls::Error>> {
    match answer {
        RecordedInnerAnswer::Ok(contents) => Some(Ok(contents.into_iter().map(to_guest).collect())),
        RecordedInnerAnswer::Error(error) => Some(Err(tool_calls::Error {
            kind: KINDS.into_iter().find(|kind| kind_name(*kind) == error.kind)?,
            error_type: error.error_type,
            message: error.message,
            suggestion: error.suggestion,
            value: error.value,
            transient: error.transient,
        })),
        _ => None,
    }
}

const KINDS: [ErrorKind; 7] = [
    ErrorKind::UnknownTool,
    ErrorKind::InvalidArguments,
    ErrorKind::Failed,
    ErrorKind::Ended,
    ErrorKind::Denied,
    ErrorKind::TooDeep,
    ErrorKind::Limit,
];

fn kind_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownTool => "unknown-tool",
        ErrorKind::InvalidArguments => "invalid-arguments",
        ErrorKind::Failed => "failed",
        ErrorKind::Ended => "ended",
        ErrorKind::Denied => "denied",
        ErrorKind::TooDeep => "too-deep",
        ErrorKind::Limit => "limit",
    }
}

fn content(content: &Content) -> RecordedContent {
    match content {
        Content::Text(text) => RecordedContent::Text(text.clone()),
        Content::Json(text) => RecordedContent::Json(text.clone()),
        Content::Blob(blob) => RecordedContent::Blob {
            media_type: blob.media_type.clone(),
            base64: STANDARD.encode(&blob.data),
        },
        Content::Resource(EmbeddedResource { uri, media_type, body }) => {
            let (text, base64) = match body {
                ResourceBody::Text(text) => (Some(text.clone()), None),
                ResourceBody::Blob(data) => (None, Some(STANDARD.encode(data))),
            };
            let (uri, media_type) = (uri.clone(), media_type.clone());
            RecordedContent::Resource { uri, media_type, text, base64 }
        }
        Content::Link(Link { uri, name, media_type }) => RecordedContent::Link {
            uri: uri.clone(),
            name: name.clone(),
            media_type: media_type.clone(),
        },
    }
}

fn to_guest(content: RecordedContent) -> Content {
    let bytes = |base64: &str| STANDARD.decode(base64).unwrap_or_default();
    match content {
        RecordedContent::Text(text) => Content::Text(text),
        RecordedContent::Json(text) => Content::Json(text),
        RecordedContent::Blob { media_type, base64 } => {
            Content::Blob(types::Blob { media_type, data: bytes(&base64) })
        }
        RecordedContent::Resource { uri, media_type, text, base64 } => {
            let body = match text {
                Some(text) => ResourceBody::Text(text),
                None => ResourceBody::Blob(bytes(&base64.unwrap_or_default())),
            };
            Content::Resource(EmbeddedResource { uri, media_type, body })
        }
        RecordedContent::Link { uri, name, media_type } => {
            Content::Link(Link { uri, name, media_type })
        }
    }
}
