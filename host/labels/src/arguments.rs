//! Variables in the arguments of a call (`LBL-6`).
//!
//! An argument refers to a variable if it is the reference object that the model was shown (with
//! `"type": "variable_reference"`) or a string that is exactly the variable's id; the tool then
//! gets the value as a string instead. An id inside a longer string is not replaced, but the label
//! of its variable still counts.

use std::collections::HashMap;

use cofferdam_agent::middleware::CallArguments;
use cofferdam_tool::arguments::DecodeOptions;
use cofferdam_tool::label::Label;
use cofferdam_tool::output::parse_json;
use serde_json::Value;

use super::store::Store;

/// Prefix of variable ids (`LBL-7`).
pub(super) const ID_START: &str = "var_";
/// Number of hexadecimal digits after the prefix.
const ID_DIGITS: usize = 16;
/// Value of `type` in a reference.
pub(super) const REFERENCE: &str = "variable_reference";
/// Maximum total size, in bytes, of all values inserted into the arguments of one call. A value
/// counts each time that it is inserted.
const BYTES_MAX: usize = 16 << 20;

/// Arguments with their variables resolved.
#[derive(Debug, Default)]
pub(super) struct ResolvedArguments {
    /// Arguments with references replaced by values; `None` if there are no references.
    pub(super) arguments: Option<CallArguments>,
    /// Combined label of all variables that the arguments name.
    pub(super) label: Label,
}

/// Error returned by [`resolve`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnresolvedVariables {
    /// A reference names a variable that the session does not have (`LBL-14`).
    #[error("Unknown variable '{id}'")]
    Unknown { id: String },
    /// The arguments are longer than any tool accepts.
    #[error("The arguments have more than {bytes_max} bytes.")]
    ArgumentsTooLarge { bytes_max: usize },
    /// The values are too large in total.
    #[error("The variables in the arguments have more than {BYTES_MAX} bytes together.")]
    TooLarge,
}

/// Replaces references in arguments by the values of their variables.
pub(super) fn resolve(
    arguments: &CallArguments,
    store: &Store,
) -> Result<ResolvedArguments, UnresolvedVariables> {
    let mut value = match arguments {
        CallArguments::Value(value) if names_some(value) => value.clone(),
        CallArguments::Text(text) if is_worth_reading(text) => read(text)?,
        _ => return Ok(ResolvedArguments::default()),
    };
    let is_json = matches!(value, Value::Object(_) | Value::Array(_));
    let mut found = VariableUse::new(store);
    found.resolve(&mut value)?;
    let arguments = (is_json && found.is_changed).then_some(CallArguments::Value(value));
    Ok(ResolvedArguments { arguments, label: found.label })
}

/// Reads arguments as the model wrote them, within the limit of every tool.
fn read(text: &str) -> Result<Value, UnresolvedVariables> {
    let bytes_max = DecodeOptions::default().text_bytes_max;
    if text.len() > bytes_max {
        return Err(UnresolvedVariables::ArgumentsTooLarge { bytes_max });
    }
    // No tool receives what is not JSON.
    Ok(parse_json(text).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// Returns the combined label of the variables that arguments name.
pub(super) fn label(arguments: &str, store: &Store) -> Label {
    match resolve(&CallArguments::Text(arguments.to_owned()), store) {
        Ok(resolved) => resolved.label,
        // The call will fail before a tool runs.
        Err(_) => Label::default(),
    }
}

struct VariableUse<'s> {
    store: &'s Store,
    /// Labels of all variables, read once because a string may name a million of them. A label that
    /// has been counted is replaced by the default.
    known: HashMap<String, Label>,
    /// Values that were read before, because arguments may refer to one of them many times, and
    /// reading it takes as long as its binary items are large.
    values: HashMap<String, String>,
    label: Label,
    bytes: usize,
    is_changed: bool,
}

impl<'s> VariableUse<'s> {
    fn new(store: &'s Store) -> Self {
        let (known, values) = (store.labels(), HashMap::new());
        Self { store, known, values, label: Label::default(), bytes: 0, is_changed: false }
    }

    fn resolve(&mut self, value: &mut Value) -> Result<(), UnresolvedVariables> {
        match value {
            Value::String(text) if is_id(text) => {
                // A string that only looks like an id is not changed.
                if let Some(known) = self.value(text)? {
                    *text = known;
                }
            }
            Value::String(text) => self.note(text),
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.resolve(item))?,
            Value::Object(members) if members.get("type").is_some_and(|kind| kind == REFERENCE) => {
                let id = members
                    .get("variable_id")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                *value = match self.value(&id)? {
                    Some(known) => Value::String(known),
                    None => return Err(UnresolvedVariables::Unknown { id }),
                };
            }
            Value::Object(members) => {
                members.keys().for_each(|name| self.note(name));
                members.values_mut().try_for_each(|member| self.resolve(member))?;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    fn value(&mut self, id: &str) -> Result<Option<String>, UnresolvedVariables> {
        if !self.count(id) {
            return Ok(None);
        }
        let text = match self.values.get(id) {
            Some(text) => text,
            None => {
                let Some(value) = self.store.value(id) else { return Ok(None) };
                self.values.entry(id.to_owned()).or_insert(value.text)
            }
        };
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > BYTES_MAX {
            return Err(UnresolvedVariables::TooLarge);
        }
        self.is_changed = true;
        Ok(Some(text.clone()))
    }

    /// Adds the labels of variables that a string mentions.
    fn note(&mut self, text: &str) {
        for (start, _) in text.match_indices(ID_START) {
            let id = text.get(start..start.saturating_add(ID_START.len() + ID_DIGITS));
            if let Some(id) = id {
                self.count(id);
            }
        }
    }

    /// Adds the label of a variable. Returns whether there is such a variable.
    fn count(&mut self, id: &str) -> bool {
        let label = self.known.get_mut(id).map(std::mem::take);
        label.map(|label| self.label.add(&label)).is_some()
    }
}

/// Returns whether a string may name a variable. JSON escapes may hide an id.
fn is_worth_reading(text: &str) -> bool {
    text.contains(ID_START) || text.contains(REFERENCE) || text.contains('\\')
}

fn names_some(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(ID_START),
        Value::Array(items) => items.iter().any(names_some),
        Value::Object(members) => {
            members.get("type").is_some_and(|kind| kind == REFERENCE)
                || members.keys().any(|name| name.contains(ID_START))
                || members.values().any(names_some)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns whether a string is exactly one variable id.
pub(super) fn is_id(text: &str) -> bool {
    text.strip_prefix(ID_START).is_some_and(|digits| {
        digits.len() == ID_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests;
