//! Items of a result that is not a single value.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use cofferdam_tool::Content;
use cofferdam_tool::output::ResourceBody;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{read_raw, to_raw};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum ContentEntry {
    Text { text: String },
    Json { value: Box<RawValue> },
    Blob { media_type: String, base64: String },
    TextResource { uri: String, media_type: Option<String>, text: String },
    BlobResource { uri: String, media_type: Option<String>, base64: String },
    Link { uri: String, name: String, media_type: Option<String> },
}

impl ContentEntry {
    pub(super) fn new(content: Content) -> Self {
        match content {
            Content::Text(text) => Self::Text { text },
            Content::Json(value) => Self::Json { value: to_raw(&value) },
            Content::Blob { media_type, data } => {
                Self::Blob { media_type, base64: BASE64_STANDARD.encode(data) }
            }
            Content::Resource { uri, media_type, body: ResourceBody::Text(text) } => {
                Self::TextResource { uri, media_type, text }
            }
            Content::Resource { uri, media_type, body: ResourceBody::Blob(data) } => {
                Self::BlobResource { uri, media_type, base64: BASE64_STANDARD.encode(data) }
            }
            Content::Link { uri, name, media_type } => Self::Link { uri, name, media_type },
            // The enum may grow.
            _ => Self::Text { text: "(content of an unknown kind)".to_owned() },
        }
    }

    /// Returns the item.
    ///
    /// # Errors
    /// If a value cannot be read, or the bytes of a blob are not in Base64.
    pub(super) fn into_content(self) -> Result<Content, String> {
        let bytes = |base64: String| {
            BASE64_STANDARD.decode(base64).map_err(|error| format!("invalid Base64: {error}"))
        };
        Ok(match self {
            Self::Text { text } => Content::Text(text),
            Self::Json { value } => Content::Json(read_raw(&value)?),
            Self::Blob { media_type, base64 } => Content::Blob { media_type, data: bytes(base64)? },
            Self::TextResource { uri, media_type, text } => {
                Content::Resource { uri, media_type, body: ResourceBody::Text(text) }
            }
            Self::BlobResource { uri, media_type, base64 } => {
                let body = ResourceBody::Blob(bytes(base64)?);
                Content::Resource { uri, media_type, body }
            }
            Self::Link { uri, name, media_type } => Content::Link { uri, name, media_type },
        })
    }
}
