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
    /// JSON as a string, passed on unchanged. The host rejects invalid JSON (`InvalidResult`). Use
    /// [`Content::json`] to create it.
    Json(String),
    /// Bytes with a media type.
    Blob(Blob),
    /// A resource with its content.
    Resource(Resource),
    /// The address of a resource that can be read separately.
    Link(Link),
}

/// Returns the value that a model sees for a result: null, a string, or a JSON value; for several
/// items, an array of such values.
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
    /// Creates text for the model.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Creates a JSON item from a value.
    ///
    /// # Errors
    /// [`ToolFailure`] if the value cannot be serialized as JSON, for example a map whose keys are
    /// not strings.
    pub fn json(value: &impl Serialize) -> Result<Self, ToolFailure> {
        serde_json::to_string(value).map(Self::Json).map_err(|error| {
            ToolFailure::new(format!("the result cannot be written as JSON: {error}")).permanent()
        })
    }

    /// Creates an item from bytes and their media type.
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

/// Bytes with a media type, such as an image or an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Blob {
    /// Media type, for example `image/png`.
    pub media_type: String,
    /// The bytes.
    pub data: Vec<u8>,
}

impl Blob {
    /// Creates a blob.
    #[must_use]
    pub fn new(media_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { media_type: media_type.into(), data: data.into() }
    }
}

/// A resource with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resource {
    /// Address of the resource.
    pub uri: String,
    /// Media type, for example `text/markdown`.
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
    /// Creates a resource with text.
    #[must_use]
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), media_type: None, body: ResourceBody::Text(text.into()) }
    }

    /// Creates a resource with bytes.
    #[must_use]
    pub fn blob(uri: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self { uri: uri.into(), media_type: None, body: ResourceBody::Blob(data.into()) }
    }

    /// Sets the media type.
    #[must_use]
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}

/// The address of a resource that can be read separately.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// Address.
    pub uri: String,
    /// Display name.
    pub name: String,
    /// Media type, for example `text/csv`.
    pub media_type: Option<String>,
}

impl Link {
    /// Creates a link.
    #[must_use]
    pub fn new(uri: impl Into<String>, name: impl Into<String>) -> Self {
        Self { uri: uri.into(), name: name.into(), media_type: None }
    }

    /// Sets the media type.
    #[must_use]
    pub fn media_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }
}
