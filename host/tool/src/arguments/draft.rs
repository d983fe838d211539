//! A value while it is being decoded.
//!
//! Several schemas may apply to one value, one after another (`ARG-21`). A part that none of them
//! has touched must be passed on as it was written (`ARG-9`), and a member that only one of them
//! declares must not be dropped by another. So a value stays JSON text until a schema converts it,
//! an object is opened member by member, and members that no schema declares are dropped at the
//! very end.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::meter::Meter;
use super::path::Path;
use super::problem::{self, FoundKind, Problem};
use crate::json::{self, Json, JsonShape};

/// A value that is unread JSON, converted, or split into parts.
#[derive(Debug)]
pub(super) enum ValueDraft<'a> {
    /// JSON as it was read.
    Text(&'a Json<'a>),
    /// A converted value.
    Value(Value),
    /// An array whose elements are decoded one by one.
    List(Vec<ValueDraft<'a>>),
    /// An object whose members are decoded one by one.
    Object(ObjectDraft<'a>),
    /// A value whose problem has been reported.
    Invalid,
}

#[derive(Debug, Default)]
pub(super) struct ObjectDraft<'a> {
    pub(super) entries: Vec<DraftEntry<'a>>,
    /// True if a schema drops undeclared members (`ARG-24`).
    pub(super) drops: bool,
    /// True if a schema has `unevaluatedProperties`, which then decides instead.
    pub(super) keeps: bool,
}

#[derive(Debug)]
pub(super) struct DraftEntry<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) draft: ValueDraft<'a>,
    /// True if a schema describes this member.
    pub(super) declared: bool,
}

/// Dropped paths and problems found by finishing a draft.
#[derive(Debug, Default)]
pub(super) struct FinishedDraft {
    pub(super) dropped: Vec<String>,
    pub(super) problems: Vec<Problem>,
}

/// Returns the number of steps that copying a value costs: one per part, and more for long strings.
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

/// Returns the number of steps that turning JSON into a value costs: a string is copied, anything
/// else is built part by part.
fn reading_weight(json: &Json<'_>) -> u64 {
    match json.shape() {
        JsonShape::Array(_) | JsonShape::Object(_) => {
            u64::try_from(json.raw().len() / 8).unwrap_or(u64::MAX)
        }
        _ => text_weight(json.raw()),
    }
}

impl<'a> ValueDraft<'a> {
    pub(super) fn found(&self) -> FoundKind {
        match self {
            Self::Text(json) => match json.shape() {
                JsonShape::Null => FoundKind::Null,
                JsonShape::Bool(_) => FoundKind::Boolean,
                JsonShape::Number => FoundKind::Number(json::is_integer_literal(json.raw())),
                JsonShape::String(_) => FoundKind::String,
                JsonShape::Array(_) => FoundKind::Array,
                JsonShape::Object(_) => FoundKind::Object,
            },
            Self::Value(value) => FoundKind::of(value),
            Self::List(_) => FoundKind::Array,
            Self::Object(_) => FoundKind::Object,
            Self::Invalid => FoundKind::Null,
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
                JsonShape::Bool(value) => Some(*value),
                _ => None,
            },
            Self::Value(value) => value.as_bool(),
            _ => None,
        }
    }

    /// Returns the JSON of the value: as written if no schema has touched it, else compact.
    pub(super) fn written(&self, meter: &mut Meter) -> Cow<'a, str> {
        match self {
            Self::Text(json) => Cow::Borrowed(json.raw()),
            Self::Value(value) => Cow::Owned(value.to_string()),
            parts => {
                let value = parts.copy(meter).finish(&super::TOP, &mut FinishedDraft::default());
                Cow::Owned(value.to_string())
            }
        }
    }

    /// Returns a copy for a trial and charges its cost to `meter`. JSON text is not copied, but a
    /// trial reads it, so it is charged as well.
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

    /// Returns the value without undeclared members. Numbers that no schema has converted and that
    /// a 64-bit float cannot hold are range problems (`ARG-13`).
    pub(super) fn finish(self, at: &Path<'_>, finished: &mut FinishedDraft) -> Value {
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

impl<'a> DraftEntry<'a> {
    fn copy(&self, meter: &mut Meter) -> Self {
        meter.spend(1);
        Self { name: self.name.clone(), draft: self.draft.copy(meter), declared: self.declared }
    }
}

impl ObjectDraft<'_> {
    fn finish(self, at: &Path<'_>, finished: &mut FinishedDraft) -> Map<String, Value> {
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

/// Builds a value that no schema converts.
fn plain(json: &Json<'_>, at: &Path<'_>, finished: &mut FinishedDraft) -> Value {
    match json.shape() {
        JsonShape::Null => Value::Null,
        JsonShape::Bool(value) => Value::Bool(*value),
        JsonShape::String(text) => Value::String(text.clone().into_owned()),
        JsonShape::Number => json::number(json.raw()).map_or_else(
            || {
                finished.problems.push(problem::range(at, &["a number"]));
                Value::Null
            },
            Value::Number,
        ),
        JsonShape::Array(items) => {
            let items = items.iter().enumerate();
            Value::Array(
                items.map(|(index, item)| plain(item, &at.index(index), finished)).collect(),
            )
        }
        JsonShape::Object(object) => {
            let members = object.members();
            let plain = |(name, member): (&Cow<'_, str>, _)| {
                (name.to_string(), plain(member, &at.name(name), finished))
            };
            Value::Object(members.map(plain).collect())
        }
    }
}
