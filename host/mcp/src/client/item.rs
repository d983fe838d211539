//! Conversion of a server's result to items, and of items to the output of a call (`MCP-16`,
//! `MCP-17`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::{Content, Output};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::CallAnswer;

/// Media type of binary data without a declared one.
const UNKNOWN_BYTES: &str = "application/octet-stream";
/// String form of an empty result.
const NOTHING: &str = "null";

/// One item of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Kind and contents of the item.
    pub kind: ItemKind,
    /// `_meta` of the result that contains the item.
    pub meta: Option<Map<String, Value>>,
}

/// Kinds of items.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ItemKind {
    /// A string.
    Text(String),
    /// Structured content. Its string form is compact JSON.
    Structured(Value),
    /// Binary data.
    Data {
        /// Media type, such as `image/png`.
        media_type: String,
        /// Decoded bytes; empty if the server's base64 was invalid.
        data: Vec<u8>,
    },
    /// Link to a resource.
    Uri {
        /// Address of the resource.
        uri: String,
        /// Name of the resource on the server.
        name: Option<String>,
        /// Media type, such as `text/plain`.
        media_type: Option<String>,
    },
}

/// Selection between the content and the structured content of a result (`MCP-17`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionMode {
    /// Only structured content if there is any, else the content.
    #[default]
    StructuredFirst,
    /// The content if there is any, else structured content.
    ContentFirst,
    /// The content, then structured content.
    Both,
    /// Never structured content.
    ContentOnly,
    /// Never the content.
    StructuredOnly,
}

impl SelectionMode {
    /// Returns the selected items of a result.
    #[must_use]
    pub fn items(self, answer: &CallAnswer) -> Vec<Item> {
        let content = || answer.content.iter().map(kind).collect::<Vec<_>>();
        let structured =
            || answer.structured.iter().cloned().map(ItemKind::Structured).collect::<Vec<_>>();
        let either = |first: Vec<ItemKind>, second: &dyn Fn() -> Vec<ItemKind>| {
            if first.is_empty() { second() } else { first }
        };
        let mut kinds = match self {
            Self::StructuredFirst => either(structured(), &content),
            Self::ContentFirst => either(content(), &structured),
            Self::Both => content().into_iter().chain(structured()).collect(),
            Self::ContentOnly => content(),
            Self::StructuredOnly => structured(),
        };
        if kinds.is_empty() {
            kinds.push(ItemKind::Text(NOTHING.to_owned()));
        }
        kinds.into_iter().map(|kind| Item { kind, meta: answer.meta.clone() }).collect()
    }

    /// Returns true if callers get the structured content that the server's output schema
    /// describes.
    pub(crate) fn is_structured(self) -> bool {
        matches!(self, Self::StructuredFirst | Self::StructuredOnly)
    }
}

impl Item {
    /// Returns the approximate memory that the item takes, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let bytes = match &self.kind {
            ItemKind::Text(text) => text.len(),
            ItemKind::Structured(value) => value.to_string().len(),
            ItemKind::Data { media_type, data } => media_type.len().saturating_add(data.len()),
            ItemKind::Uri { uri, name, media_type } => {
                [Some(uri), name.as_ref(), media_type.as_ref()]
                    .into_iter()
                    .flatten()
                    .map(String::len)
                    .fold(0, usize::saturating_add)
            }
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Returns the item as JSON, with the `type` `text`, `data` or `uri`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut item = match &self.kind {
            ItemKind::Text(text) => json!({"type": "text", "text": text}),
            ItemKind::Structured(value) => json!({"type": "text", "text": value.to_string()}),
            ItemKind::Data { media_type, data } => {
                let uri = format!("data:{media_type};base64,{}", STANDARD.encode(data));
                json!({"type": "data", "uri": uri, "media_type": media_type})
            }
            ItemKind::Uri { uri, media_type, .. } => match media_type {
                Some(media_type) => json!({"type": "uri", "uri": uri, "media_type": media_type}),
                None => json!({"type": "uri", "uri": uri}),
            },
        };
        if let (Some(meta), Value::Object(members)) = (&self.meta, &mut item) {
            members.insert("_meta".to_owned(), Value::Object(meta.clone()));
        }
        item
    }
}

/// Returns the output of a call. Structured content stays a JSON value, so that clients also
/// receive it as one. A string or null becomes a string with its JSON, because the text form of
/// these values (`RES-16`) differs from their JSON.
#[must_use]
pub fn into_output(items: Vec<Item>) -> Output {
    let content = |item: Item| match item.kind {
        ItemKind::Text(text) => Content::Text(text),
        ItemKind::Structured(value @ (Value::String(_) | Value::Null)) => {
            Content::Text(value.to_string())
        }
        ItemKind::Structured(value) => Content::Json(value),
        ItemKind::Data { media_type, data } => Content::Blob { media_type, data },
        ItemKind::Uri { uri, name, media_type } => {
            Content::Link { name: name.unwrap_or_else(|| uri.clone()), uri, media_type }
        }
    };
    Output::from_contents(items.into_iter().map(content).collect())
}

/// Converts one block of MCP content. A block of an unknown kind is shown as its JSON.
pub(crate) fn kind(block: &Value) -> ItemKind {
    let text = |name: &str| block.get(name).and_then(Value::as_str).map(str::to_owned);
    match block.get("type").and_then(Value::as_str) {
        Some("text") => ItemKind::Text(text("text").unwrap_or_default()),
        Some("image" | "audio") => data(text("mimeType"), text("data")),
        Some("resource_link") => ItemKind::Uri {
            uri: text("uri").unwrap_or_default(),
            name: text("name"),
            media_type: text("mimeType"),
        },
        Some("resource") => embedded(block.get("resource").unwrap_or(&Value::Null)),
        _ => ItemKind::Text(block.to_string()),
    }
}

fn embedded(resource: &Value) -> ItemKind {
    let text = |name: &str| resource.get(name).and_then(Value::as_str).map(str::to_owned);
    match text("text") {
        Some(text) => ItemKind::Text(text),
        None => data(text("mimeType"), text("blob")),
    }
}

fn data(media_type: Option<String>, base64: Option<String>) -> ItemKind {
    ItemKind::Data {
        media_type: media_type.unwrap_or_else(|| UNKNOWN_BYTES.to_owned()),
        data: base64.and_then(|base64| STANDARD.decode(base64).ok()).unwrap_or_default(),
    }
}
