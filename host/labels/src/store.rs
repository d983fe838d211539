//! The context's label and the hidden values of one session (`LBL-7`, `LBL-8`, `LBL-14`).
//!
//! Both are stored in the session's state, each value in a separate part, so that they last as long
//! as the session and are saved with it. They are bounded: if there are too many values, or they
//! are too large in total, the oldest are deleted. A value that is too large by itself is not
//! stored. Neither is ever shown to the model instead.

use cofferdam_agent::{Data, Session};
use data_encoding::HEXLOWER;
use std::collections::HashMap;

use cofferdam_tool::label::Label;
use cofferdam_tool::{Content, Output};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Part of a session's state with the context's label and the list of variables.
const PART: &str = "labels";
/// Prefix of the parts that hold the values.
const VALUE_PART: &str = "label_variable:";
/// Maximum number of variables of one session: more than a model refers to in one task.
const VARIABLES_MAX: usize = 256;
/// Maximum size of a value in bytes: four of the largest files that a tool reads at once.
pub(super) const VALUE_BYTES_MAX: usize = 4 << 20;
/// Maximum size of all values of one session, in bytes as JSON. It keeps a saved session small
/// enough to be read. A single value can be larger if it consists of characters that JSON escapes.
const BYTES_MAX: usize = 8 << 20;

/// Value that is hidden from the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HiddenValue {
    /// Text form of the result (`RES-16`).
    pub(super) text: String,
    /// Parts of the result that are not text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<Data>,
}

/// A hidden value and its label.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    pub(super) value: HiddenValue,
    pub(super) label: Label,
}

/// Error of storing a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum StoreError {
    #[error(
        "The result is untrusted, and too large to be hidden: it has more than {VALUE_BYTES_MAX} \
         bytes."
    )]
    TooLarge,
    #[error(
        "The result is untrusted, and too large to be hidden: it has more than {BYTES_MAX} bytes \
         as JSON."
    )]
    TooLargeAsJson,
    #[error("The result is untrusted and could not be hidden.")]
    Failed,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct VariableState {
    #[serde(default)]
    context: Label,
    /// Variables, oldest first.
    #[serde(default)]
    variables: Vec<VariableEntry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct VariableEntry {
    id: String,
    bytes: usize,
    label: Label,
}

/// Labels and variables of one session, or of one run without a session.
pub(super) struct Store {
    session: Session,
}

/// Returns the label of a session's context, or the default label if nothing is recorded.
#[must_use]
pub fn context_of(session: &Session) -> Label {
    state(session).context
}

/// Returns whether a session was led with a label policy. Without one, what its labels forbid is
/// not checked any more.
#[must_use]
pub fn is_labelled(session: &Session) -> bool {
    !session.part(PART).is_null()
}

/// Combines a label into the label of a session's context, for messages that do not come from the
/// session's calls.
pub fn taint(session: &Session, label: &Label) {
    if *label != Label::default() {
        Store::new(session.clone()).taint(label);
    }
}

fn state(session: &Session) -> VariableState {
    read(session.part(PART))
}

fn read(part: Value) -> VariableState {
    match part {
        Value::Null => VariableState::default(),
        // An unreadable state was not written by this module, so the label is unknown.
        other => serde_json::from_value(other).unwrap_or_else(|_| VariableState {
            context: Label::unknown(),
            ..VariableState::default()
        }),
    }
}

impl Store {
    pub(super) fn new(session: Session) -> Self {
        Self { session }
    }

    pub(super) fn context(&self) -> Label {
        context_of(&self.session)
    }

    /// Notes that the session is led with a label policy.
    pub(super) fn mark(&self) {
        if !is_labelled(&self.session) {
            self.change(|_| {});
        }
    }

    /// Combines a label into the context's (`LBL-8`).
    pub(super) fn taint(&self, label: &Label) {
        self.change(|state| state.context.add(label));
    }

    /// Stores a value and returns the id of its variable.
    pub(super) fn hide(&self, value: &HiddenValue, label: &Label) -> Result<String, StoreError> {
        if value.bytes() > VALUE_BYTES_MAX {
            return Err(StoreError::TooLarge);
        }
        let id = fresh_id().map_err(|_| StoreError::Failed)?;
        let written = serde_json::to_value(value).map_err(|_| StoreError::Failed)?;
        let bytes = written.to_string().len();
        if bytes > BYTES_MAX {
            return Err(StoreError::TooLargeAsJson);
        }
        // The value is in the session before its entry is, and until its entry is removed.
        self.session.set_part(&part(&id), written);
        let entry = VariableEntry { id: id.clone(), bytes, label: label.clone() };
        for deleted in self.change(|state| state.add(entry)) {
            self.session.set_part(&part(&deleted.id), Value::Null);
        }
        Ok(id)
    }

    /// Returns the variable with this id, if the session has it.
    pub(super) fn variable(&self, id: &str) -> Option<Variable> {
        let label = self.labels().remove(id)?;
        Some(Variable { value: self.value(id)?, label })
    }

    /// Returns the value of a variable.
    pub(super) fn value(&self, id: &str) -> Option<HiddenValue> {
        serde_json::from_value(self.session.part(&part(id))).ok()
    }

    /// Returns the labels of all variables by id.
    pub(super) fn labels(&self) -> HashMap<String, Label> {
        let variables = state(&self.session).variables;
        variables.into_iter().map(|entry| (entry.id, entry.label)).collect()
    }

    /// Changes the state in one step: calls of one batch, and of other runs, may end at the same
    /// time.
    fn change<T>(&self, change: impl FnOnce(&mut VariableState) -> T) -> T {
        self.session.update_part(PART, |part| {
            // Neither a panic nor a failure to serialize is expected. After one, later readers find
            // `false`, and treat the context as untrusted.
            let mut state = read(std::mem::replace(part, Value::Bool(false)));
            let changed = change(&mut state);
            if let Ok(written) = serde_json::to_value(state) {
                *part = written;
            }
            changed
        })
    }
}

impl VariableState {
    /// Adds a variable. Removes and returns the oldest ones for which there is no room any more.
    fn add(&mut self, entry: VariableEntry) -> Vec<VariableEntry> {
        let mut deleted = Vec::new();
        while !self.variables.is_empty() && !self.has_room(entry.bytes) {
            deleted.push(self.variables.remove(0));
        }
        self.variables.push(entry);
        deleted
    }

    fn has_room(&self, bytes: usize) -> bool {
        let all = self.variables.iter().map(|entry| entry.bytes);
        self.variables.len() < VARIABLES_MAX && all.fold(bytes, usize::saturating_add) <= BYTES_MAX
    }
}

impl HiddenValue {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), items: Vec::new() }
    }

    fn bytes(&self) -> usize {
        let items =
            self.items.iter().map(|item| item.data.len().saturating_add(item.media_type.len()));
        items.fold(self.text.len(), usize::saturating_add)
    }

    /// Returns the value in the form in which a tool would have returned it.
    pub(super) fn into_output(self) -> Output {
        use base64::Engine as _;
        let blob = |item: Data| {
            let data = base64::engine::general_purpose::STANDARD.decode(&item.data).ok()?;
            Some(Content::Blob { media_type: item.media_type, data })
        };
        let items = self.items.into_iter().filter_map(blob);
        Output::from_contents(std::iter::once(Content::Text(self.text)).chain(items).collect())
    }
}

fn part(id: &str) -> String {
    format!("{VALUE_PART}{id}")
}

/// Returns `var_` and 64 random bits in hexadecimal digits (`LBL-7`).
fn fresh_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{}{}", super::arguments::ID_START, HEXLOWER.encode(&bytes)))
}

#[cfg(test)]
mod tests;
