//! Values that remain between the programs of a session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_tool::CallContext;
use cofferdam_tool::label::Label;
use cofferdam_tool::output::parse_json;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cut::size;

/// Maximum number of stored values of a session.
const KEYS_MAX: usize = 64;
/// Maximum bytes of a stored value as JSON.
const VALUE_BYTES_MAX: usize = 256 * 1024;
/// Maximum bytes of all stored values of a session.
const STORED_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a key.
const KEY_BYTES_MAX: usize = 128;
/// Number of whole results that a session keeps.
const RESULTS_MAX: usize = 4;
/// Number of sessions whose values are kept.
const SESSIONS_MAX: usize = 64;
/// Prefix of the keys of whole results.
const RESULT_PREFIX: &str = "result_";

/// Owner of values: the caller of programs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Owner {
    /// Principal of an MCP request; empty for other callers.
    pub(crate) principal: String,
    /// Session; empty for calls without one.
    pub(crate) session: String,
}

impl Owner {
    /// Returns the owner of a call.
    pub(crate) fn of(context: &CallContext) -> Self {
        let principal = context.request.as_ref().map(|request| request.principal.clone());
        let session = context.session.clone();
        Self { principal: principal.unwrap_or_default(), session: session.unwrap_or_default() }
    }
}

/// A stored value. Runs share it.
#[derive(Debug, Clone, PartialEq)]
struct StoredValue {
    value: Arc<Value>,
    /// Bytes of the value as JSON.
    bytes: usize,
}

/// Values of one session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SessionValues {
    /// Combined label of everything that went into the values, if labels are in use.
    label: Option<Label>,
    stored: BTreeMap<String, StoredValue>,
    results: VecDeque<(String, Arc<Value>)>,
    /// Number of results that were kept.
    count: u64,
}

/// Values of a session in a ledger.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ValuesRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    /// Stored values as JSON text, by key.
    stored: BTreeMap<String, String>,
    /// Whole results as JSON text, with their keys.
    results: Vec<(String, String)>,
    count: u64,
}

/// Values of all sessions of a host. Those of the session that was used longest ago are dropped if
/// there are too many.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    sessions: Mutex<VecDeque<(Owner, SessionValues)>>,
}

impl Memory {
    /// Returns a copy of the values of a session.
    pub(crate) fn of(&self, owner: &Owner) -> SessionValues {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sessions.iter().find(|(other, _)| other == owner);
        found.map(|(_, values)| values.clone()).unwrap_or_default()
    }

    /// Replaces the values of a session.
    pub(crate) fn replace(&self, owner: Owner, values: SessionValues) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|(other, _)| *other != owner);
        sessions.push_back((owner, values));
        while sessions.len() > SESSIONS_MAX {
            sessions.pop_front();
        }
    }
}

impl SessionValues {
    /// Stores a value; null removes it.
    ///
    /// # Errors
    /// A message for the model if a limit is exceeded.
    pub(crate) fn store(&mut self, key: &str, value: Value) -> Result<(), String> {
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(format!(
                "expected a key of 1 to {KEY_BYTES_MAX} bytes, found {} bytes",
                key.len()
            ));
        }
        if key.starts_with(RESULT_PREFIX) {
            return Err(format!(
                "keys that start with `{RESULT_PREFIX}` are those of whole results"
            ));
        }
        if value.is_null() {
            self.stored.remove(key);
            return Ok(());
        }
        let bytes = size(&value);
        if bytes > VALUE_BYTES_MAX {
            return Err(format!(
                "the value has {bytes} bytes as JSON, and at most {VALUE_BYTES_MAX} can be stored"
            ));
        }
        let others = self.stored.iter().filter(|(other, _)| *other != key);
        let (count, stored) =
            others.fold((0, 0), |(count, bytes), (_, value)| (count + 1, bytes + value.bytes));
        if count >= KEYS_MAX {
            return Err(format!(
                "{KEYS_MAX} values are stored already; store null under a key to remove it"
            ));
        }
        if stored + bytes > STORED_BYTES_MAX {
            return Err(format!(
                "the stored values would have {} bytes, and at most {STORED_BYTES_MAX} can be \
                 stored; store null under a key to remove it",
                stored + bytes
            ));
        }
        self.stored.insert(key.to_owned(), StoredValue { value: Arc::new(value), bytes });
        Ok(())
    }

    /// Returns a stored value or a whole result; null if there is none.
    pub(crate) fn load(&self, key: &str) -> Value {
        let stored = self.stored.get(key).map(|stored| &stored.value);
        let result = || self.results.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        stored.or_else(result).map(|value| Value::clone(value)).unwrap_or_default()
    }

    /// Returns the combined label of the values, if labels are in use.
    pub(crate) fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    /// Adds the label of everything that a run had when it stored values.
    pub(crate) fn add_label(&mut self, label: Option<Label>) {
        if let Some(label) = label {
            self.label.get_or_insert_default().add(&label);
        }
    }

    /// Returns the bytes of all values as JSON.
    pub(crate) fn bytes(&self) -> usize {
        let stored = self.stored.values().map(|stored| stored.bytes);
        let results = self.results.iter().map(|(_, value)| size(&**value));
        stored.chain(results).fold(0, usize::saturating_add)
    }

    /// Returns the form in a ledger.
    pub(crate) fn record(&self) -> ValuesRecord {
        let stored = self.stored.iter();
        let results = self.results.iter();
        ValuesRecord {
            label: self.label.clone(),
            stored: stored.map(|(key, stored)| (key.clone(), stored.value.to_string())).collect(),
            results: results.map(|(key, value)| (key.clone(), value.to_string())).collect(),
            count: self.count,
        }
    }

    /// Returns the values of a ledger, or `None` if they are no JSON.
    pub(crate) fn of_record(record: ValuesRecord) -> Option<Self> {
        let stored = record.stored.into_iter().map(|(key, json)| {
            let value = StoredValue { bytes: json.len(), value: Arc::new(parse_json(&json).ok()?) };
            Some((key, value))
        });
        let results = record.results.into_iter();
        let results = results.map(|(key, json)| Some((key, Arc::new(parse_json(&json).ok()?))));
        Some(Self {
            label: record.label,
            stored: stored.collect::<Option<_>>()?,
            results: results.collect::<Option<_>>()?,
            count: record.count,
        })
    }

    /// Keeps a whole result and returns its key.
    pub(crate) fn keep(&mut self, result: Value) -> String {
        self.count += 1;
        let key = format!("{RESULT_PREFIX}{}", self.count);
        self.results.push_back((key.clone(), Arc::new(result)));
        while self.results.len() > RESULTS_MAX {
            self.results.pop_front();
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_of_stored_values_hold() {
        let mut values = SessionValues::default();
        values.store("a", json!([1])).unwrap();
        assert_eq!((values.load("a"), values.load("b")), (json!([1]), Value::Null));
        values.store("a", Value::Null).unwrap();
        assert_eq!(values.load("a"), Value::Null);
        assert!(values.store("big", "x".repeat(VALUE_BYTES_MAX).into()).is_err());
        assert!(values.store("", json!(1)).is_err() && values.store("result_1", json!(1)).is_err());
        for index in 0..KEYS_MAX {
            values.store(&format!("k{index}"), json!(index)).unwrap();
        }
        values.store("k0", json!("replaced")).unwrap();
        assert!(values.store("one_more", json!(1)).unwrap_err().starts_with("64 values"));
        let mut values = SessionValues::default();
        for index in 0..4 {
            values.store(&format!("k{index}"), "x".repeat(250_000).into()).unwrap();
        }
        assert!(values.store("k4", "x".repeat(100_000).into()).is_err());
    }

    #[test]
    fn the_last_whole_results_and_sessions_are_kept() {
        let mut values = SessionValues::default();
        let keys: Vec<_> = (0..6).map(|index| values.keep(json!(index))).collect();
        assert_eq!(keys.last().unwrap(), "result_6");
        assert_eq!((values.load("result_2"), values.load("result_3")), (Value::Null, json!(2)));
        let memory = Memory::default();
        let owner = |session: &str| Owner { session: session.to_owned(), ..Owner::default() };
        memory.replace(owner("first"), values.clone());
        assert_eq!(memory.of(&owner("first")), values);
        for index in 0..SESSIONS_MAX {
            memory.replace(owner(&index.to_string()), SessionValues::default());
        }
        assert_eq!(memory.of(&owner("first")), SessionValues::default());
    }
}
