//! The context's label and the hidden values of one session (`LBL-7`, `LBL-8`, `LBL-14`).
//!
//! Both are kept in the session's state, each value in a part of its own, so that they last as long
//! as the session does and are saved with it. They are bounded: when there are too many values, or
//! they are too large together, the oldest are forgotten. A value that is too large by itself is
//! not kept at all. Neither is ever shown instead.

use cofferdam_agent::{Data, Session};
use data_encoding::HEXLOWER;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use cofferdam_tool::label::Label;
use cofferdam_tool::{Content, Output};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The part of a session's state that holds the context's label and the list of variables.
const PART: &str = "labels";
/// The parts that hold the values begin like this.
const VALUE_PART: &str = "label_variable:";
/// Most variables of one session: more than a model refers to in one task.
const VARIABLES_MAX: usize = 256;
/// Longest value in bytes; as much as four of the largest files that are read at once.
pub(super) const VALUE_BYTES_MAX: usize = 4 << 20;
/// All values of one session together, in bytes as they are written. A session that is kept stays
/// small enough to be read.
const BYTES_MAX: usize = 8 << 20;

/// A value that no model sees.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct HiddenValue {
    /// The text of the result (`RES-16`).
    pub(super) text: String,
    /// Parts of it that are no text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) items: Vec<Data>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    pub(super) value: HiddenValue,
    pub(super) label: Label,
}

/// Error of storing a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotKept {
    #[error(
        "The result is untrusted, and too large to be hidden: it has more than {VALUE_BYTES_MAX} \
         bytes."
    )]
    TooLarge,
    #[error("The result is untrusted and could not be hidden.")]
    NoRandomness,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct VariableState {
    #[serde(default)]
    context: Label,
    /// The oldest first.
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
    /// Calls of one batch may end at the same time.
    turn: Mutex<()>,
}

/// The label that the context of a session has; the default where nothing is known of it.
#[must_use]
pub fn context_of(session: &Session) -> Label {
    state(session).context
}

/// Combines a label into that of a session's context, for messages that come from outside of its
/// calls.
pub fn taint(session: &Session, label: &Label) {
    if *label != Label::default() {
        Store::new(session.clone()).taint(label);
    }
}

fn state(session: &Session) -> VariableState {
    match session.part(PART) {
        Value::Null => VariableState::default(),
        // What cannot be read was not written here.
        other => serde_json::from_value(other).unwrap_or_else(|_| VariableState {
            context: Label::untrusted(),
            ..VariableState::default()
        }),
    }
}

impl Store {
    pub(super) fn new(session: Session) -> Self {
        Self { session, turn: Mutex::default() }
    }

    pub(super) fn context(&self) -> Label {
        context_of(&self.session)
    }

    /// Combines a label into the context's (`LBL-8`).
    pub(super) fn taint(&self, label: &Label) {
        self.change(|state| state.context.add(label));
    }

    /// Keeps a value and gives the id that stands for it.
    pub(super) fn hide(&self, value: &HiddenValue, label: &Label) -> Result<String, NotKept> {
        if value.bytes() > VALUE_BYTES_MAX {
            return Err(NotKept::TooLarge);
        }
        let id = fresh_id().map_err(|_| NotKept::NoRandomness)?;
        let written = serde_json::to_value(value).map_err(|_| NotKept::NoRandomness)?;
        let bytes = written.to_string().len();
        if bytes > BYTES_MAX {
            return Err(NotKept::TooLarge);
        }
        self.change(|state| {
            let mut all: usize = state.variables.iter().map(|entry| entry.bytes).sum();
            while state.variables.len() >= VARIABLES_MAX || all.saturating_add(bytes) > BYTES_MAX {
                let Some(oldest) = (!state.variables.is_empty()).then(|| state.variables.remove(0))
                else {
                    break;
                };
                all = all.saturating_sub(oldest.bytes);
                self.session.set_part(&part(&oldest.id), Value::Null);
            }
            self.session.set_part(&part(&id), written);
            state.variables.push(VariableEntry { id: id.clone(), bytes, label: label.clone() });
        });
        Ok(id)
    }

    /// The variable of this id, if the session has it.
    pub(super) fn variable(&self, id: &str) -> Option<Variable> {
        let label = self.labels().remove(id)?;
        Some(Variable { value: self.value(id)?, label })
    }

    /// The value of a variable.
    pub(super) fn value(&self, id: &str) -> Option<HiddenValue> {
        serde_json::from_value(self.session.part(&part(id))).ok()
    }

    /// The labels of all variables by their ids.
    pub(super) fn labels(&self) -> HashMap<String, Label> {
        let variables = state(&self.session).variables;
        variables.into_iter().map(|entry| (entry.id, entry.label)).collect()
    }

    fn change(&self, change: impl FnOnce(&mut VariableState)) {
        // The state is read and written as a whole: what a panicking thread left is whole.
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = state(&self.session);
        change(&mut state);
        // Texts, numbers and JSON: this cannot fail, and if it did the next reader would find
        // nothing it can trust.
        let written = serde_json::to_value(state).unwrap_or(Value::Bool(false));
        self.session.set_part(PART, written);
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

    /// The value as a tool would have returned it.
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

/// `var_` and 64 random bits in hexadecimal digits (`LBL-7`).
fn fresh_id() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{}{}", super::arguments::ID_START, HEXLOWER.encode(&bytes)))
}
