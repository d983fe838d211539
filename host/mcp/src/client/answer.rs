//! Results of `tools/call`.

use serde_json::{Map, Value};

use super::call_error::CallError;
use super::item::{Item, ItemKind, SelectionMode, kind};
use super::limits::{ERROR_BYTES_MAX, ITEMS_MAX, RESULT_BYTES_MAX, cut};

/// Parsed `CallToolResult`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallAnswer {
    /// Content blocks as the server wrote them.
    pub content: Vec<Value>,
    /// Structured content. Null counts as absent.
    pub structured: Option<Value>,
    /// True if the tool failed.
    pub is_error: bool,
    /// `_meta` of the result.
    pub meta: Option<Map<String, Value>>,
}

impl CallAnswer {
    /// Parses a result. Returns `None` for anything else.
    #[must_use]
    pub fn read(result: Value) -> Option<Self> {
        let Value::Object(mut members) = result else { return None };
        if members.get("resultType").is_some_and(|kind| kind != "complete") {
            return None;
        }
        if !["content", "structuredContent", "isError"]
            .iter()
            .any(|name| members.contains_key(*name))
        {
            return None;
        }
        let content = match members.remove("content") {
            Some(Value::Array(content)) if content.iter().all(Value::is_object) => content,
            None | Some(Value::Null) => Vec::new(),
            Some(_) => return None,
        };
        let is_error = match members.remove("isError") {
            Some(Value::Bool(is_error)) => is_error,
            None | Some(Value::Null) => false,
            Some(_) => return None,
        };
        let meta = match members.remove("_meta") {
            Some(Value::Object(meta)) => Some(meta),
            _ => None,
        };
        let structured = members.remove("structuredContent").filter(|value| !value.is_null());
        Some(Self { content, structured, is_error, meta })
    }

    /// Returns the items of a successful result.
    ///
    /// # Errors
    /// [`CallError::Tool`] if the tool reports a failure (`MCP-18`), [`CallError::TooLarge`] above
    /// the limits.
    pub fn into_items(self, mode: SelectionMode) -> Result<Vec<Item>, CallError> {
        let too_large = CallError::TooLarge { bytes_max: RESULT_BYTES_MAX };
        if self.content.len() > ITEMS_MAX {
            return Err(too_large);
        }
        let items = mode.items(&self);
        if items.iter().map(Item::bytes).fold(0, u64::saturating_add) > RESULT_BYTES_MAX {
            return Err(too_large);
        }
        if self.is_error { Err(CallError::Tool(self.error_text())) } else { Ok(items) }
    }

    /// Joins the text blocks with line feeds.
    fn error_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match kind(block) {
            ItemKind::Text(text) => Some(text),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        if texts.is_empty() {
            "null".to_owned()
        } else {
            cut(&texts.join("\n"), ERROR_BYTES_MAX).to_owned()
        }
    }
}
