//! Variables in the arguments of a call (`LBL-6`).
//!
//! An argument refers to a variable if it is the reference that the model was shown (an object with
//! `"type": "variable_reference"`) or the id itself, as a whole text; then the tool gets the text
//! of the value in its place. An id in the middle of a text stays as it is, but the label of its
//! variable counts as well.

use std::collections::HashMap;

use cofferdam_agent::middleware::CallArguments;
use cofferdam_tool::label::Label;
use cofferdam_tool::output::parse_json;
use serde_json::Value;

use super::store::Store;

/// What ids begin with (`LBL-7`).
pub(super) const ID_START: &str = "var_";
/// How many hexadecimal digits come then.
const ID_DIGITS: usize = 16;
/// What a reference says of itself.
pub(super) const REFERENCE: &str = "variable_reference";
/// All values that are put into the arguments of one call together, in bytes.
const BYTES_MAX: usize = 16 << 20;

/// What arguments are with regard to variables.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// The arguments with the values in the place of references; `None` if there are no references.
    pub(super) arguments: Option<CallArguments>,
    /// The labels of all variables that are named, combined.
    pub(super) label: Label,
}

/// Why arguments cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unresolved {
    /// A reference is to nothing that the session has (`LBL-14`).
    #[error("Unknown variable '{id}'")]
    Unknown { id: String },
    /// The values are too large together.
    #[error("The variables in the arguments have more than {BYTES_MAX} bytes together.")]
    TooLarge,
}

/// Puts values into arguments.
pub(super) fn resolve(arguments: &CallArguments, store: &Store) -> Result<Resolved, Unresolved> {
    let mut value = match arguments {
        CallArguments::Value(value) if names_some(value) => value.clone(),
        CallArguments::Text(text) if is_worth_reading(text) => match parse_json(text) {
            Ok(value) => value,
            // It is no JSON, and no tool gets it.
            Err(_) => Value::String(text.clone()),
        },
        _ => return Ok(Resolved::default()),
    };
    let is_json = matches!(value, Value::Object(_) | Value::Array(_));
    let known = store.labels();
    let mut found = Found { store, known, label: Label::default(), bytes: 0, is_changed: false };
    found.resolve(&mut value)?;
    let arguments = (is_json && found.is_changed).then_some(CallArguments::Value(value));
    Ok(Resolved { arguments, label: found.label })
}

/// The label of the variables that arguments name.
pub(super) fn label(arguments: &str, store: &Store) -> Label {
    match resolve(&CallArguments::Text(arguments.to_owned()), store) {
        Ok(resolved) => resolved.label,
        // The call fails before a tool runs.
        Err(_) => Label::default(),
    }
}

struct Found<'s> {
    store: &'s Store,
    /// The labels of all variables; read once, for a text may name a million.
    known: HashMap<String, Label>,
    label: Label,
    bytes: usize,
    is_changed: bool,
}

impl Found<'_> {
    fn resolve(&mut self, value: &mut Value) -> Result<(), Unresolved> {
        match value {
            Value::String(text) if is_id(text) => {
                // A text that only looks like an id is none.
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
                    None => return Err(Unresolved::Unknown { id }),
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

    fn value(&mut self, id: &str) -> Result<Option<String>, Unresolved> {
        let Some(label) = self.known.get(id) else { return Ok(None) };
        let Some(value) = self.store.value(id) else { return Ok(None) };
        self.label.add(label);
        self.bytes = self.bytes.saturating_add(value.text.len());
        if self.bytes > BYTES_MAX {
            return Err(Unresolved::TooLarge);
        }
        self.is_changed = true;
        Ok(Some(value.text))
    }

    /// Counts the labels of variables that a text names.
    fn note(&mut self, text: &str) {
        for (start, _) in text.match_indices(ID_START) {
            let id = text.get(start..start.saturating_add(ID_START.len() + ID_DIGITS));
            if let Some(label) = id.and_then(|id| self.known.get(id)) {
                self.label.add(label);
            }
        }
    }
}

/// Whether a text can name a variable. Escapes may hide the name of one.
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

/// Whether a text is an id and nothing else.
pub(super) fn is_id(text: &str) -> bool {
    text.strip_prefix(ID_START).is_some_and(|digits| {
        digits.len() == ID_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}
