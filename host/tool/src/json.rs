//! Reading JSON text without losing how it was written.
//!
//! Three rules ask for more than a map of values. A string parameter takes a number or an object
//! exactly as it was typed (`ARG-9`), so every value keeps its span. `1e400` is a value out of
//! range and not a broken text (`ARG-13`), so numbers stay text until a schema says what they are.
//! And a declaration that repeats a key is refused (`ARG-38`) while in arguments the last one
//! counts (`ARG-29`), so an object remembers that it happened.
//!
//! Strings without escapes and all spans borrow from the text. Reading costs one pass over the
//! bytes, and one before it that counts the levels: nothing recurses deeper than the limit that was
//! checked there.

mod equal;
mod number;
mod reader;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub(crate) use equal::{equal, has_duplicates};
pub(crate) use number::{compare, integer, is_integer_literal, is_multiple, is_whole, number};
pub(crate) use reader::{levels, read, value_levels};

/// A JSON value with the text it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Json<'t> {
    raw: &'t str,
    shape: Shape<'t>,
}

/// What a value is. A number is its text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape<'t> {
    Null,
    Bool(bool),
    Number,
    String(Cow<'t, str>),
    Array(Vec<Json<'t>>),
    Object(Object<'t>),
}

/// The members of an object in the order of the text. Of a repeated key only the last member is
/// kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Object<'t> {
    members: Vec<(Cow<'t, str>, Json<'t>)>,
    repeated: Option<Cow<'t, str>>,
}

impl<'t> Json<'t> {
    /// `{}`, which is what no arguments at all mean.
    pub(crate) fn empty_object() -> Self {
        Self { raw: "{}", shape: Shape::Object(Object::default()) }
    }

    /// The text of the value as it was written, without the white space around it.
    pub(crate) fn raw(&self) -> &'t str {
        self.raw
    }

    pub(crate) fn shape(&self) -> &Shape<'t> {
        &self.shape
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Null)
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.shape {
            Shape::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_object(&self) -> Option<&Object<'t>> {
        match &self.shape {
            Shape::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(crate) fn as_array(&self) -> Option<&[Json<'t>]> {
        match &self.shape {
            Shape::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The value without its text; `None` if it holds a number that a 64-bit float cannot.
    pub(crate) fn to_value(&self) -> Option<Value> {
        Some(match &self.shape {
            Shape::Null => Value::Null,
            Shape::Bool(value) => Value::Bool(*value),
            Shape::Number => Value::Number(number(self.raw)?),
            Shape::String(text) => Value::String(text.clone().into_owned()),
            Shape::Array(items) => {
                Value::Array(items.iter().map(Self::to_value).collect::<Option<_>>()?)
            }
            Shape::Object(object) => Value::Object(object.to_map()?),
        })
    }
}

impl<'t> Object<'t> {
    pub(crate) fn members(&self) -> impl ExactSizeIterator<Item = (&Cow<'t, str>, &Json<'t>)> {
        self.members.iter().map(|(name, value)| (name, value))
    }

    /// The member of that name. Linear: for declarations, whose size is limited.
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'t>> {
        self.members.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// The first key that occurs twice.
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
