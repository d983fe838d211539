//! Serialized form of accepted schemas. Only the JSON text is stored and the rest is computed on
//! demand: the published form by the first listing, the plan by the first call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json::{self, Json};

/// Deepest nesting of the published form. A declaration has at most half as many levels.
const LEVELS_MAX: usize = 128;

/// JSON text of a schema that was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SerializedSchema {
    declared: String,
    /// Published form, if it differs from the declared one.
    published: Option<String>,
    /// True if the reader of `serde_json`, which is faster but not always exact about fractions,
    /// reads the published form unchanged.
    is_plain: bool,
}

impl SerializedSchema {
    /// Returns the serialized form of `declared`, from which `published` was computed.
    pub(crate) fn new(declared: &str, published: &Value) -> Self {
        // Compared as text, because the order of members is published too.
        let text = published.to_string();
        let as_declared = read(declared).map(|value| value.to_string());
        let is_as_declared = as_declared.as_ref() == Some(&text);
        let shown = if is_as_declared { declared } else { &text };
        let plain = serde_json::from_str::<Value>(shown).map(|value| value.to_string());
        let is_plain = plain.is_ok_and(|plain| plain == text);
        Self {
            declared: declared.to_owned(),
            published: (!is_as_declared).then_some(text),
            is_plain,
        }
    }

    pub(super) fn declared(&self) -> &str {
        &self.declared
    }
}

/// Returns the published form of a serialized schema, or an empty object if it is missing or was
/// never accepted.
pub(super) fn published(serialized: Option<&SerializedSchema>) -> Value {
    let value = serialized.and_then(|serialized| {
        let text = serialized.published.as_deref().unwrap_or(&serialized.declared);
        if serialized.is_plain { serde_json::from_str(text).ok() } else { read(text) }
    });
    value.unwrap_or_else(|| Value::Object(Map::new()))
}

/// Returns the members of the published form: a copy of `published`, or read again if that is
/// missing.
pub(super) fn object(
    published: Option<&Value>,
    serialized: Option<&SerializedSchema>,
) -> Map<String, Value> {
    let object = match published {
        Some(value) => value.clone(),
        None => self::published(serialized),
    };
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Reads numbers in the same way as compilation.
fn read(text: &str) -> Option<Value> {
    json::read(text.as_bytes(), LEVELS_MAX).ok().as_ref().and_then(Json::to_value)
}
