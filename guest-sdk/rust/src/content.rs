//! What a tool answers with, item by item.

use serde::Serialize;
use serde_json::{Value, json};

use crate::ToolFailure;

/// One item of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// JSON text. It is handed on as it is; the host refuses what is not JSON (`InvalidResult`). [`Content::json`] writes it.
    Json(String),
    /// Bytes with a media type.
    Blob(Blob),
}

/// The value that a model sees of a result: null, a text, or a JSON value; several items as an array of such values.
pub(crate) fn value(contents: Vec<Content>) -> serde_json::Result<Value> {
    let mut values = contents.into_iter().map(of_item).collect::<serde_json::Result<Vec<_>>>()?;
    Ok(match values.len() {
        0 => Value::Null,
        1 => values.swap_remove(0),
        _ => Value::Array(values),
    })
}

fn of_item(content: Content) -> serde_json::Result<Value> {
    Ok(match content {
        Content::Text(text) => Value::String(text),
        Content::Json(json) => serde_json::from_str(&json)?,
        Content::Blob(blob) => json!({"media_type": blob.media_type, "bytes": blob.data.len()}),
    })
}

impl Content {
    /// Text for the model.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A value as JSON.
    ///
    /// # Errors
    ///
    /// If the value cannot be written as JSON, for example a map whose keys are not texts.
    pub fn json(value: &impl Serialize) -> Result<Self, ToolFailure> {
        serde_json::to_string(value).map(Self::Json).map_err(|error| {
            ToolFailure::new(format!("the result cannot be written as JSON: {error}")).permanent()
        })
    }

    /// Bytes with a media type.
    #[must_use]
    pub fn blob(media_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::Blob(Blob::new(media_type, data))
    }
}

impl From<Blob> for Content {
    fn from(blob: Blob) -> Self {
        Self::Blob(blob)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

/// Bytes with a media type: an image, an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blob {
    /// For example `image/png`.
    pub media_type: String,
    /// The bytes themselves.
    pub data: Vec<u8>,
}

impl Blob {
    /// Bytes with a media type.
    #[must_use]
    pub fn new(media_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { media_type: media_type.into(), data: data.into() }
    }
}
