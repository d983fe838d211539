//! What a tool returns when it succeeds.

use serde_json::Value;

use crate::json;

/// Deepest nesting of a result (`RES`, row `InvalidResult`).
const LEVELS_MAX: usize = 128;

/// One item of a result, as in MCP.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text for the model.
    Text(String),
    /// A JSON value.
    Json(Value),
    /// Bytes with a media type.
    Blob {
        /// For example `image/png`.
        media_type: String,
        /// The bytes themselves.
        data: Vec<u8>,
    },
    /// Something that has an address, together with what it holds.
    Resource {
        /// Where it is from.
        uri: String,
        /// For example `text/markdown`.
        media_type: Option<String>,
        /// What it holds.
        body: ResourceBody,
    },
    /// The address of something that can be read on its own.
    Link {
        /// Where it is.
        uri: String,
        /// What to call it.
        name: String,
        /// For example `text/csv`.
        media_type: Option<String>,
    },
}

/// What a resource holds.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceBody {
    /// Text for the model.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// The output of a call: a single value, or a list of content items (`RES-1`, `RES-16`).
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A plain value, shown to the model unchanged.
    Value(Value),
    /// Several items, or one that is not a value.
    Contents(Vec<Content>),
}

impl Output {
    /// Reads a guest's list of items: one text or JSON item alone is a plain value, no item is
    /// null.
    #[must_use]
    pub fn from_contents(mut contents: Vec<Content>) -> Self {
        if contents.len() > 1 {
            return Self::Contents(contents);
        }
        match contents.pop() {
            None => Self::Value(Value::Null),
            Some(Content::Text(text)) => Self::Value(Value::String(text)),
            Some(Content::Json(value)) => Self::Value(value),
            Some(blob) => Self::Contents(vec![blob]),
        }
    }

    /// The text form (`RES-16`): null is empty, a string is itself, any other value is compact
    /// JSON; of a list, the texts joined by a line feed.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Value(value) => value_text(value),
            Self::Contents(contents) => {
                let texts: Vec<_> = contents.iter().filter_map(Content::text).collect();
                texts.join("\n")
            }
        }
    }

    /// The same of an output that nobody needs any more: a string is moved, however long it is.
    #[must_use]
    pub fn into_text(self) -> String {
        match self {
            Self::Value(Value::String(text)) => text,
            other => other.text(),
        }
    }
}

impl Content {
    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Json(value) => Some(value_text(value)),
            Self::Resource { body: ResourceBody::Text(text), .. } => Some(text.clone()),
            Self::Blob { .. } | Self::Resource { .. } | Self::Link { .. } => None,
        }
    }
}

/// Why a text that a tool returned is not a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJson {
    /// The text is nested deeper than 128 levels.
    #[error("the text is nested deeper than {LEVELS_MAX} levels")]
    TooDeep,
    /// The text breaks the grammar of JSON.
    #[error("the text is not JSON from byte {offset}")]
    Malformed {
        /// Where reading stopped.
        offset: usize,
    },
    /// A number is too large for a 64-bit float.
    #[error("a number is out of the range of a 64-bit float")]
    NumberOutOfRange,
}

/// Reads the JSON text of a result. The depth is counted before anything is built.
///
/// # Errors
/// [`InvalidJson`] when the text is not one JSON value of at most 128 levels.
pub fn parse_json(text: &str) -> Result<Value, InvalidJson> {
    if json::levels(text.as_bytes()) > LEVELS_MAX {
        return Err(InvalidJson::TooDeep);
    }
    let read = json::read(text.as_bytes(), LEVELS_MAX);
    let value = read.map_err(|malformed| InvalidJson::Malformed { offset: malformed.offset })?;
    value.to_value().ok_or(InvalidJson::NumberOutOfRange)
}

/// Text of a single value (`RES-16`).
pub(crate) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_single_item_is_a_plain_value() {
        assert_eq!(Output::from_contents(vec![]), Output::Value(Value::Null));
        assert_eq!(
            Output::from_contents(vec![Content::Text("a".into())]),
            Output::Value(json!("a"))
        );
        assert_eq!(
            Output::from_contents(vec![Content::Json(json!({"b": 1}))]),
            Output::Value(json!({"b": 1}))
        );
        let blob = Content::Blob { media_type: "image/png".into(), data: vec![1] };
        assert_eq!(Output::from_contents(vec![blob.clone()]), Output::Contents(vec![blob]));
    }

    #[test]
    fn json_may_have_128_levels() {
        let nested = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(parse_json(&nested(128)).is_ok());
        assert_eq!(parse_json(&nested(129)), Err(InvalidJson::TooDeep));
        assert_eq!(parse_json("{\"a\":1,}"), Err(InvalidJson::Malformed { offset: 7 }));
        assert_eq!(parse_json("1e400"), Err(InvalidJson::NumberOutOfRange));
    }

    #[test]
    fn text_keeps_key_order_and_non_ascii_characters() {
        assert_eq!(Output::Value(json!({"z": "é", "a": [1, 2]})).text(), r#"{"z":"é","a":[1,2]}"#);
        assert_eq!(Output::Value(json!("as \"is\"")).text(), "as \"is\"");
        assert_eq!(Output::Value(Value::Null).text(), "");
    }
}
