//! Conversion of a guest's result to an outcome, within the output limit.

use cofferdam_tool::output::{ResourceBody as ToolResourceBody, parse_json};
use cofferdam_tool::{Content as ToolContent, ErrorType, Outcome, Output, ToolError, ToolFailure};

use crate::guest::{Content, Failure, ResourceBody};

/// Maximum number of items in one result. An item without text has no length, but still takes a
/// line in the model's input.
const CONTENTS_MAX: usize = 4096;

/// Returns the maximum number of bytes to copy of a result of at most `output_bytes_max`: text in
/// UTF-16 takes up to twice as much in the guest, and each item takes some space in the host.
pub(crate) fn copied_bytes_max(output_bytes_max: u64) -> u64 {
    let items =
        u64::try_from(CONTENTS_MAX.saturating_mul(size_of::<Content>())).unwrap_or(u64::MAX);
    output_bytes_max.saturating_mul(2).saturating_add(items)
}

/// Returns the number of bytes that an answer takes in the host.
pub(crate) fn answer_bytes(answer: &Result<Vec<Content>, Failure>) -> u64 {
    match answer {
        Ok(contents) => {
            let items = u64::try_from(size_of_val(contents.as_slice())).unwrap_or(u64::MAX);
            items.saturating_add(contents.iter().map(Content::json_bytes).sum())
        }
        Err(failure) => failure.bytes(),
    }
}

/// Converts a guest's answer to the outcome of the call (`RES-1`, `RES-2`, `RES-18`).
pub(crate) fn outcome(answer: Result<Vec<Content>, Failure>, output_bytes_max: u64) -> Outcome {
    let outcome = match answer {
        Ok(contents) => output(contents, output_bytes_max).map(Outcome::Ok),
        Err(failure) => tool_failure(failure, output_bytes_max).map(Outcome::Failure),
    };
    outcome.unwrap_or_else(Outcome::Error)
}

fn output(contents: Vec<Content>, bytes_max: u64) -> Result<Output, ToolError> {
    if contents.len() > CONTENTS_MAX {
        let detail =
            format!("the result has {} items; the limit is {CONTENTS_MAX}", contents.len());
        return Err(ToolError::new(ErrorType::OutputLimit).with_detail(detail));
    }
    let bytes = contents.iter().map(Content::json_bytes).sum();
    check_size(bytes, bytes_max)?;
    let contents: Result<Vec<_>, _> = contents.into_iter().map(tool_content).collect();
    Ok(Output::from_contents(contents?))
}

fn tool_content(content: Content) -> Result<ToolContent, ToolError> {
    Ok(match content {
        Content::Text(text) => ToolContent::Text(text),
        Content::Json(text) => ToolContent::Json(json(&text)?),
        Content::Blob(blob) => ToolContent::Blob { media_type: blob.media_type, data: blob.data },
        Content::Resource(resource) => ToolContent::Resource {
            uri: resource.uri,
            media_type: resource.media_type,
            body: match resource.body {
                ResourceBody::Text(text) => ToolResourceBody::Text(text),
                ResourceBody::Blob(data) => ToolResourceBody::Blob(data),
            },
        },
        Content::Link(link) => {
            ToolContent::Link { uri: link.uri, name: link.name, media_type: link.media_type }
        }
    })
}

fn tool_failure(failure: Failure, bytes_max: u64) -> Result<ToolFailure, ToolError> {
    check_size(failure.bytes(), bytes_max)?;
    Ok(ToolFailure {
        value: failure.value.as_deref().map(json).transpose()?,
        message: failure.message,
        suggestion: failure.suggestion,
        transient: failure.transient,
        ..ToolFailure::default()
    })
}

fn json(text: &str) -> Result<serde_json::Value, ToolError> {
    parse_json(text).map_err(|error| invalid(format!("the guest's JSON is not valid: {error}")))
}

fn invalid(detail: String) -> ToolError {
    ToolError::new(ErrorType::InvalidResult).with_detail(detail)
}

/// Rejects a result that is longer than the limit (`RES-18`).
pub(crate) fn check_size(bytes: u64, bytes_max: u64) -> Result<(), ToolError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    let detail = format!("the result is {bytes} bytes long; the limit is {bytes_max}");
    Err(ToolError::new(ErrorType::OutputLimit).with_detail(detail))
}

fn len(text: impl AsRef<[u8]>) -> u64 {
    u64::try_from(text.as_ref().len()).unwrap_or(u64::MAX)
}

fn optional_len(text: Option<&String>) -> u64 {
    text.map_or(0, len)
}

impl Failure {
    /// Returns the total length of its strings, in bytes.
    fn bytes(&self) -> u64 {
        len(&self.message)
            + optional_len(self.suggestion.as_ref())
            + optional_len(self.value.as_ref())
    }
}

impl Content {
    /// Returns the length of the item in the result, in bytes: JSON as the guest wrote it, text
    /// unchanged, the bytes of a blob, and every address, name and media type.
    fn json_bytes(&self) -> u64 {
        match self {
            Self::Text(text) | Self::Json(text) => len(text),
            Self::Blob(blob) => len(&blob.media_type) + len(&blob.data),
            Self::Resource(resource) => {
                let body = match &resource.body {
                    ResourceBody::Text(text) => len(text),
                    ResourceBody::Blob(data) => len(data),
                };
                len(&resource.uri) + optional_len(resource.media_type.as_ref()) + body
            }
            Self::Link(link) => {
                len(&link.uri) + len(&link.name) + optional_len(link.media_type.as_ref())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::{EmbeddedResource, Link};

    fn error_type(outcome: &Outcome) -> Option<ErrorType> {
        match outcome {
            Outcome::Error(error) => error.error_type(),
            _ => None,
        }
    }

    #[test]
    fn exactly_the_limit_passes() {
        let text = |n: usize| Ok(vec![Content::Text("x".repeat(n))]);
        assert!(matches!(outcome(text(10), 10), Outcome::Ok(_)));
        assert_eq!(error_type(&outcome(text(11), 10)), Some(ErrorType::OutputLimit));
    }

    #[test]
    fn every_part_of_a_resource_and_of_a_link_is_counted() {
        let resource = |body| {
            Content::Resource(EmbeddedResource {
                uri: "u:1".into(),
                media_type: Some("a/b".into()),
                body,
            })
        };
        for item in [
            resource(ResourceBody::Text("0123".into())),
            resource(ResourceBody::Blob(b"0123".to_vec())),
            Content::Link(Link {
                uri: "u:1".into(),
                name: "0123".into(),
                media_type: Some("a/b".into()),
            }),
        ] {
            assert!(matches!(outcome(Ok(vec![item.clone()]), 10), Outcome::Ok(_)), "{item:?}");
            assert_eq!(error_type(&outcome(Ok(vec![item]), 9)), Some(ErrorType::OutputLimit));
        }
    }

    #[test]
    fn items_are_counted_too() {
        let empty = |n: usize| Ok(vec![Content::Text(String::new()); n]);
        assert!(matches!(outcome(empty(CONTENTS_MAX), 10), Outcome::Ok(_)));
        assert_eq!(error_type(&outcome(empty(CONTENTS_MAX + 1), 10)), Some(ErrorType::OutputLimit));
    }

    #[test]
    fn json_must_be_json() {
        let ended = outcome(Ok(vec![Content::Json("{\"a\":1,}".into())]), 100);
        assert_eq!(error_type(&ended), Some(ErrorType::InvalidResult));
    }

    #[test]
    fn a_failure_counts_against_the_limit_too() {
        let failure =
            Failure { message: "x".repeat(101), suggestion: None, transient: None, value: None };
        assert_eq!(error_type(&outcome(Err(failure), 100)), Some(ErrorType::OutputLimit));
    }
}
