//! Reads JSON without losing how it was written.
//!
//! Three rules need more than a map of values. A string parameter accepts a number or an object
//! exactly as it was written (`ARG-9`), so every value keeps its source text. `1e400` is a value
//! out of range, not malformed JSON (`ARG-13`), so numbers stay text until a schema determines
//! their kind. And a declaration with a repeated key is rejected (`ARG-38`) while in arguments the
//! last one counts (`ARG-29`), so an object records repetitions.
//!
//! Strings without escapes and all source texts borrow from the input. Reading takes two passes
//! over the bytes, of which the first counts the levels: nothing recurses deeper than the limit
//! checked there.

mod equal;
mod number;
mod reader;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use equal::equal;
pub(crate) use equal::has_duplicates;
pub(crate) use number::{compare, integer, is_integer_literal, is_multiple, is_whole, number};
pub(crate) use reader::{levels, read, value_levels};

/// A JSON value with its source text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Json<'t> {
    raw: &'t str,
    shape: JsonShape<'t>,
}

/// Kind and content of a value. The content of a number is its source text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum JsonShape<'t> {
    Null,
    Bool(bool),
    Number,
    String(Cow<'t, str>),
    Array(Vec<Json<'t>>),
    Object(JsonObject<'t>),
}

/// Members of an object in the order of the input. The last member of a repeated key wins.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct JsonObject<'t> {
    members: Vec<(Cow<'t, str>, Json<'t>)>,
    repeated: Option<Cow<'t, str>>,
}

impl<'t> Json<'t> {
    /// Returns `{}`, the value of missing arguments.
    pub(crate) fn empty_object() -> Self {
        Self { raw: "{}", shape: JsonShape::Object(JsonObject::default()) }
    }

    /// Returns the source text of the value, without surrounding white space.
    pub(crate) fn raw(&self) -> &'t str {
        self.raw
    }

    pub(crate) fn shape(&self) -> &JsonShape<'t> {
        &self.shape
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.shape, JsonShape::Null)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.shape {
            JsonShape::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&JsonObject<'t>> {
        match &self.shape {
            JsonShape::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Json<'t>]> {
        match &self.shape {
            JsonShape::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Converts to a plain value. Returns `None` if a number does not fit into a 64-bit float.
    pub(crate) fn to_value(&self) -> Option<Value> {
        Some(match &self.shape {
            JsonShape::Null => Value::Null,
            JsonShape::Bool(value) => Value::Bool(*value),
            JsonShape::Number => Value::Number(number(self.raw)?),
            JsonShape::String(text) => Value::String(text.clone().into_owned()),
            JsonShape::Array(items) => {
                Value::Array(items.iter().map(Self::to_value).collect::<Option<_>>()?)
            }
            JsonShape::Object(object) => Value::Object(object.to_map()?),
        })
    }
}

impl<'t> JsonObject<'t> {
    pub(crate) fn members(&self) -> impl ExactSizeIterator<Item = (&Cow<'t, str>, &Json<'t>)> {
        self.members.iter().map(|(name, value)| (name, value))
    }

    /// Returns the member of that name. Linear, so only for declarations, whose size is limited.
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'t>> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Returns the first key that occurs twice.
    pub(crate) fn repeated(&self) -> Option<&str> {
        self.repeated.as_deref()
    }

    fn to_map(&self) -> Option<Map<String, Value>> {
        self.members
            .iter()
            .map(|(name, value)| Some((name.clone().into_owned(), value.to_value()?)))
            .collect()
    }
}
