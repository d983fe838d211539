//! From a server's result to items, and from items to the output of a call (`MCP-16`, `MCP-17`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::{Content, Output};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::answer::CallAnswer;

/// The type of bytes that nobody named.
const UNKNOWN_BYTES: &str = "application/octet-stream";
/// The text of nothing.
const NOTHING: &str = "null";

/// One item of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// `_meta` of the result that it is from.
    pub meta: Option<Map<String, Value>>,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ItemKind {
    /// Text.
    Text(String),
    /// Structured content, which reads as compact JSON.
    Structured(Value),
    /// Bytes with a type.
    Data {
        /// For example `image/png`.
        media_type: String,
        /// The bytes; none when the server's base64 was none.
        data: Vec<u8>,
    },
    /// The address of something.
    Uri {
        /// Where it is.
        uri: String,
        /// What the server calls it.
        name: Option<String>,
        /// For example `text/plain`.
        media_type: Option<String>,
    },
}

/// Which of a result's two halves is used (`MCP-17`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionMode {
    /// Structured content alone if there is any, else the content.
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
    /// The items of a result.
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

    /// Whether a value that the server declares a schema for is what a caller gets.
    pub(crate) fn is_structured(self) -> bool {
        matches!(self, Self::StructuredFirst | Self::StructuredOnly)
    }
}

impl Item {
    /// How much of the host's memory the item takes, in bytes.
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

    /// The item as JSON: `type` is `text`, `data` or `uri`.
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

/// The output of a call. Structured content is a JSON value, so that it stays one for whoever is
/// served it; where the text form of a value would be something else than its JSON (a text, null),
/// it is the JSON as text.
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

/// One block of MCP content. A block of a kind that nobody knows is shown as what it is.
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
