//! Schemas that were accepted before. Their text is kept, and the rest is made of it when it is
//! needed: what is published by the first list, the plan by the first call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json::{self, Json};

/// Deepest nesting of what is published. A declaration has at most half as many levels.
const LEVELS_MAX: usize = 128;

/// The text of a schema that was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptSchema {
    declared: String,
    /// What is published, where that is not what was declared.
    published: Option<String>,
    /// Whether the reader of `serde_json`, which is faster and not always exact about fractions,
    /// reads that as it is.
    is_plain: bool,
}

impl KeptSchema {
    /// The text `declared`, of which `published` was made.
    pub(crate) fn new(declared: &str, published: &Value) -> Self {
        // As texts, because the order of members is published too.
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

/// What a kept schema publishes. Nothing, if it is none or was never accepted.
pub(super) fn published(kept: Option<&KeptSchema>) -> Value {
    let value = kept.and_then(|kept| {
        let text = kept.published.as_deref().unwrap_or(&kept.declared);
        if kept.is_plain { serde_json::from_str(text).ok() } else { read(text) }
    });
    value.unwrap_or_else(|| Value::Object(Map::new()))
}

/// The members of what is published: a copy of `published`, or read anew where that is not there.
pub(super) fn object(published: Option<&Value>, kept: Option<&KeptSchema>) -> Map<String, Value> {
    let object = match published {
        Some(value) => value.clone(),
        None => self::published(kept),
    };
    match object {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// Reads numbers as compiling does.
fn read(text: &str) -> Option<Value> {
    json::read(text.as_bytes(), LEVELS_MAX).ok().as_ref().and_then(Json::to_value)
}
