//! Content items of a tool's result.

use serde::Serialize;
use serde_json::{Value, json};

use crate::ToolFailure;

/// One item of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// JSON text. It is handed on as it is; the host refuses what is not JSON (`InvalidResult`).
    /// [`Content::json`] writes it.
    Json(String),
    /// Bytes with a media type.
    Blob(Blob),
    /// Something that has an address, together with what it holds.
    Resource(Resource),
    /// The address of something that can be read on its own.
    Link(Link),
}

/// The value that a model sees of a result: null, a text, or a JSON value; several items as an
/// array of such values.
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
        Content::Resource(Resource { uri, media_type, body }) => match body {
            ResourceBody::Text(text) => json!({"uri": uri, "media_type": media_type, "text": text}),
            ResourceBody::Blob(data) => {
                json!({"uri": uri, "media_type": media_type, "bytes": data.len()})
            }
        },
        Content::Link(Link { uri, name, media_type }) => {
            json!({"uri": uri, "name": name, "media_type": media_type})
        }
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

impl From<Resource> for Content {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource)
    }
}

impl From<Link> for Content {
    fn from(link: Link) -> Self {
        Self::Link(link)
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

/// Something that has an address, together with what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// Address of the source.
    pub uri: String,
    /// For example `text/markdown`.
    pub media_type: Option<String>,
    /// Content.
    pub body: ResourceBody,
}

/// Content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text for the model.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Resource {
    /// A text from somewhere.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), media_type: None, body: ResourceBody::Text(text.into()) }
    }

    /// Bytes from somewhere.
    #[must_use]
    pub fn blob(uri: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { uri: uri.into(), media_type: None, body: ResourceBody::Blob(data.into()) }
    }

    /// With a media type.
    #[must_use]
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}

/// The address of something that can be read on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Address.
    pub uri: String,
    /// Display name.
    pub name: String,
    /// For example `text/csv`.
    pub media_type: Option<String>,
}

impl Link {
    /// The address of something.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), media_type: None }
    }

    /// With a media type.
    #[must_use]
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}
