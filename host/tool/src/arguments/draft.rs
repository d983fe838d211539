//! A value while it is being decoded.
//!
//! Several schemas may look at one value, one after another (`ARG-21`). What none of them has
//! touched must still be there as it was written (`ARG-9`), and what only one of them declares must
//! not be dropped by another. So a value stays text until a schema converts it, an object is opened
//! member by member, and members that no schema declares are dropped at the very end.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::meter::Meter;
use super::path::Path;
use super::problem::{self, Found, Problem};
use crate::json::{self, Json, Shape};

/// A value that may be text, converted, or in parts.
#[derive(Debug)]
pub(super) enum Draft<'a> {
    /// As it was read.
    Text(&'a Json<'a>),
    /// Converted.
    Value(Value),
    /// An array whose elements are decoded one by one.
    List(Vec<Draft<'a>>),
    /// An object whose members are decoded one by one.
    Object(ObjectDraft<'a>),
    /// Reported as a problem: there is no value.
    Invalid,
}

#[derive(Debug, Default)]
pub(super) struct ObjectDraft<'a> {
    pub(super) entries: Vec<Entry<'a>>,
    /// Some schema drops what no schema declares (`ARG-24`).
    pub(super) drops: bool,
    /// Some schema has `unevaluatedProperties` and decides itself.
    pub(super) keeps: bool,
}

#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) draft: Draft<'a>,
    /// Some schema says what this member is.
    pub(super) declared: bool,
}

/// What finishing a draft brings to light.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub(super) dropped: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// How many steps it takes to copy a value: its parts, and its long texts.
pub(crate) fn weight(value: &Value) -> u64 {
    match value {
        Value::String(text) => text_weight(text),
        Value::Array(items) => items.iter().map(weight).fold(1, u64::saturating_add),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| text_weight(name) + weight(value))
            .fold(1, u64::saturating_add),
        _ => 1,
    }
}

fn text_weight(text: &str) -> u64 {
    1 + u64::try_from(text.len() / 256).unwrap_or(u64::MAX / 2)
}

/// How many steps it takes to turn text into a value: a string is copied, anything else is built
/// part by part.
fn reading_weight(json: &Json<'_>) -> u64 {
    match json.shape() {
        Shape::Array(_) | Shape::Object(_) => {
            u64::try_from(json.raw().len() / 8).unwrap_or(u64::MAX)
        }
        _ => text_weight(json.raw()),
    }
}

impl<'a> Draft<'a> {
    pub(super) fn found(&self) -> Found {
        match self {
            Self::Text(json) => match json.shape() {
                Shape::Null => Found::Null,
                Shape::Bool(_) => Found::Boolean,
                Shape::Number => Found::Number(json::is_integer_literal(json.raw())),
                Shape::String(_) => Found::String,
                Shape::Array(_) => Found::Array,
                Shape::Object(_) => Found::Object,
            },
            Self::Value(value) => Found::of(value),
            Self::List(_) => Found::Array,
            Self::Object(_) => Found::Object,
            Self::Invalid => Found::Null,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        match self {
            Self::Text(json) => json.is_null(),
            Self::Value(value) => value.is_null(),
            _ => false,
        }
    }

    pub(super) fn as_object_mut(&mut self) -> Option<&mut ObjectDraft<'a>> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    pub(super) fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid)
    }

    pub(super) fn is_supplied(&self) -> bool {
        !self.is_null()
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(json) => json.as_str(),
            Self::Value(value) => value.as_str(),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Text(json) => match json.shape() {
                Shape::Bool(value) => Some(*value),
                _ => None,
            },
            Self::Value(value) => value.as_bool(),
            _ => None,
        }
    }

    /// The JSON text of the value: as it was written if nobody has touched it, compact otherwise.
    pub(super) fn written(&self, meter: &mut Meter) -> Cow<'a, str> {
        match self {
            Self::Text(json) => Cow::Borrowed(json.raw()),
            Self::Value(value) => Cow::Owned(value.to_string()),
            parts => {
                let value = parts.copy(meter).finish(&super::TOP, &mut Finished::default());
                Cow::Owned(value.to_string())
            }
        }
    }

    /// A copy to try something on, which is paid for. Text is not copied, but whoever tries
    /// something on it reads it.
    pub(super) fn copy(&self, meter: &mut Meter) -> Self {
        match self {
            Self::Text(json) if meter.spend(reading_weight(json)) => Self::Text(json),
            Self::Value(value) if meter.spend(weight(value)) => Self::Value(value.clone()),
            Self::List(items) => Self::List(items.iter().map(|item| item.copy(meter)).collect()),
            Self::Object(object) => Self::Object(ObjectDraft {
                entries: object.entries.iter().map(|entry| entry.copy(meter)).collect(),
                ..*object
            }),
            Self::Text(_) | Self::Value(_) | Self::Invalid => Self::Invalid,
        }
    }

    /// The value, with what nobody declares left out. Numbers that no schema has looked at and that
    /// a 64-bit float cannot hold are range problems (`ARG-13`).
    pub(super) fn finish(self, at: &Path<'_>, finished: &mut Finished) -> Value {
        match self {
            Self::Text(json) => plain(json, at, finished),
            Self::Value(value) => value,
            Self::List(items) => {
                let items = items.into_iter().enumerate();
                Value::Array(
                    items.map(|(index, item)| item.finish(&at.index(index), finished)).collect(),
                )
            }
            Self::Object(object) => Value::Object(object.finish(at, finished)),
            Self::Invalid => Value::Null,
        }
    }
}

impl<'a> Entry<'a> {
    fn copy(&self, meter: &mut Meter) -> Self {
        meter.spend(1);
        Self { name: self.name.clone(), draft: self.draft.copy(meter), declared: self.declared }
    }
}

impl ObjectDraft<'_> {
    fn finish(self, at: &Path<'_>, finished: &mut Finished) -> Map<String, Value> {
        let drops = self.drops && !self.keeps;
        let mut members = Map::with_capacity(self.entries.len());
        for entry in self.entries {
            let at = at.name(&entry.name);
            if drops && !entry.declared {
                finished.dropped.push(at.to_string());
            } else {
                let value = entry.draft.finish(&at, finished);
                members.insert(entry.name.clone().into_owned(), value);
            }
        }
        members
    }
}

/// A value that no schema converts.
fn plain(json: &Json<'_>, at: &Path<'_>, finished: &mut Finished) -> Value {
    match json.shape() {
        Shape::Null => Value::Null,
        Shape::Bool(value) => Value::Bool(*value),
        Shape::String(text) => Value::String(text.clone().into_owned()),
        Shape::Number => json::number(json.raw()).map_or_else(
            || {
                finished.problems.push(problem::range(at, &["a number"]));
                Value::Null
            },
            Value::Number,
        ),
        Shape::Array(items) => {
            let items = items.iter().enumerate();
            Value::Array(
                items.map(|(index, item)| plain(item, &at.index(index), finished)).collect(),
            )
        }
        Shape::Object(object) => {
            let members = object.members();
            let plain = |(name, member): (&Cow<'_, str>, _)| {
                (name.to_string(), plain(member, &at.name(name), finished))
            };
            Value::Object(members.map(plain).collect())
        }
    }
}
