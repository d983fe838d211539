//! Results of successful calls.

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
        /// Media type, such as `image/png`.
        media_type: String,
        /// Content of the blob.
        data: Vec<u8>,
    },
    /// An addressed resource with its content.
    Resource {
        /// Address of the resource.
        uri: String,
        /// Media type, such as `text/markdown`.
        media_type: Option<String>,
        /// Content of the resource.
        body: ResourceBody,
    },
    /// A link to a resource that can be read separately.
    Link {
        /// Address of the resource.
        uri: String,
        /// Name of the resource.
        name: String,
        /// Media type, such as `text/csv`.
        media_type: Option<String>,
    },
}

/// Content of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceBody {
    /// Text for the model.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// Output of a call: a single value, or a list of content items (`RES-1`, `RES-16`).
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A plain value, shown to the model unchanged.
    Value(Value),
    /// Several items, or a single one that is not a value.
    Contents(Vec<Content>),
}

impl Output {
    /// Converts a guest's list of items. A single text or JSON item is a plain value, and an empty
    /// list is null.
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

    /// Returns the output as text (`RES-16`): null is empty, a string is itself, any other value is
    /// compact JSON; the texts of a list are joined by line feeds.
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

    /// Like [`text`](Self::text), but consumes the output, so that a long string is moved instead
    /// of cloned.
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

/// Error returned when a tool's result is not a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJson {
    /// The JSON is nested deeper than 128 levels.
    #[error("the text is nested deeper than {LEVELS_MAX} levels")]
    TooDeep,
    /// The string breaks the grammar of JSON.
    #[error("the text is not JSON from byte {offset}")]
    Malformed {
        /// Offset of the byte at which reading stopped.
        offset: usize,
    },
    /// A number is too large for a 64-bit float.
    #[error("a number is out of the range of a 64-bit float")]
    NumberOutOfRange,
}

/// Parses the JSON of a result. Checks the nesting before building anything.
///
/// # Errors
/// [`InvalidJson`] if the string is not one JSON value of at most 128 levels.
pub fn parse_json(text: &str) -> Result<Value, InvalidJson> {
    if json::levels(text.as_bytes()) > LEVELS_MAX {
        return Err(InvalidJson::TooDeep);
    }
    let read = json::read(text.as_bytes(), LEVELS_MAX);
    let value = read.map_err(|malformed| InvalidJson::Malformed { offset: malformed.offset })?;
    value.to_value().ok_or(InvalidJson::NumberOutOfRange)
}

/// Returns the text of a single value (`RES-16`).
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
