//! Values that remain between the programs of a session.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use cofferdam_tool::CallContext;
use cofferdam_tool::cut::size;
use cofferdam_tool::label::Label;
use cofferdam_tool::output::parse_json;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// Values of a session as a run sees them, with what the run has changed.
#[derive(Debug, Default)]
pub(crate) struct RunValues {
    /// Values of the session before the run.
    first: SessionValues,
    values: SessionValues,
    /// Keys that the run has stored, and those of `first` that it has removed.
    changed: BTreeSet<String>,
}

/// What remains of the changes of a run.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AppliedChanges {
    /// Key of the whole result.
    pub(crate) result: Option<String>,
    /// Reason why the values that the run has stored were dropped.
    pub(crate) refusal: Option<String>,
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
        let sessions = self.sessions.lock();
        let found = sessions.iter().find(|(other, _)| other == owner);
        found.map(|(_, values)| values.clone()).unwrap_or_default()
    }

    /// Applies what a run has changed to the current values of a session, and keeps its whole
    /// result, if there is one. Other runs may have changed the values since the run began.
    pub(crate) fn apply(
        &self,
        owner: Owner,
        changes: &RunValues,
        result: Option<Value>,
    ) -> AppliedChanges {
        let mut sessions = self.sessions.lock();
        let position = sessions.iter().position(|(other, _)| *other == owner);
        let current = position.and_then(|position| sessions.remove(position));
        // A session that another process has begun has its values in the ledger of the run only.
        let mut values = current.map_or_else(|| changes.first.clone(), |(_, values)| values);
        let refusal = values.merge(changes).err();
        let result = result.map(|result| values.keep(result));
        sessions.push_back((owner, values));
        while sessions.len() > SESSIONS_MAX {
            sessions.pop_front();
        }
        AppliedChanges { result, refusal }
    }
}

impl RunValues {
    /// Returns the values of a run that begins with those of the session.
    pub(crate) fn new(first: SessionValues) -> Self {
        Self { values: first.clone(), first, changed: BTreeSet::new() }
    }

    /// Returns the values of the session before the run.
    pub(crate) fn first(&self) -> &SessionValues {
        &self.first
    }

    /// Stores a value; null removes it.
    ///
    /// # Errors
    /// A message for the model if a limit is exceeded.
    pub(crate) fn store(&mut self, key: &str, value: Value) -> Result<(), String> {
        self.values.store(key, value)?;
        let exists = |values: &SessionValues| values.stored.contains_key(key);
        if exists(&self.first) || exists(&self.values) {
            self.changed.insert(key.to_owned());
        } else {
            self.changed.remove(key);
        }
        Ok(())
    }

    /// Returns a stored value or a whole result; null if there is none.
    pub(crate) fn load(&self, key: &str) -> Value {
        self.values.load(key)
    }

    /// Returns the combined label of the values, if labels are in use.
    pub(crate) fn label(&self) -> Option<&Label> {
        self.values.label.as_ref()
    }

    /// Adds the label of everything that the run had when it stored values.
    pub(crate) fn add_label(&mut self, label: Option<Label>) {
        self.values.add_label(label.as_ref());
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
                "keys that start with `{RESULT_PREFIX}` are reserved for whole results; choose \
                 another key"
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

    /// Changes the stored values as a run has.
    ///
    /// # Errors
    /// A message for the model if a limit is exceeded. Then no stored value is changed.
    fn merge(&mut self, changes: &RunValues) -> Result<(), String> {
        self.add_label(changes.label());
        self.count = self.count.max(changes.first.count);
        let mut merged = self.stored.clone();
        for key in &changes.changed {
            match changes.values.stored.get(key) {
                Some(stored) => merged.insert(key.clone(), stored.clone()),
                None => merged.remove(key),
            };
        }
        let bytes: usize = merged.values().map(|stored| stored.bytes).sum();
        if merged.len() > KEYS_MAX || bytes > STORED_BYTES_MAX {
            return Err(format!(
                "there would be {} stored values with {bytes} bytes, and at most {KEYS_MAX} with \
                 {STORED_BYTES_MAX} bytes can be stored",
                merged.len()
            ));
        }
        self.stored = merged;
        Ok(())
    }

    /// Returns a stored value or a whole result; null if there is none.
    fn load(&self, key: &str) -> Value {
        let stored = self.stored.get(key).map(|stored| &stored.value);
        let result = || self.results.iter().find(|(name, _)| name == key).map(|(_, value)| value);
        stored.or_else(result).map(|value| Value::clone(value)).unwrap_or_default()
    }

    /// Adds the label of everything that a run had when it stored values.
    pub(crate) fn add_label(&mut self, label: Option<&Label>) {
        if let Some(label) = label {
            self.label.get_or_insert_default().add(label);
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
        memory.apply(owner("first"), &RunValues::new(values.clone()), None);
        assert_eq!(memory.of(&owner("first")), values);
        for index in 0..SESSIONS_MAX {
            memory.apply(owner(&index.to_string()), &RunValues::default(), None);
        }
        assert_eq!(memory.of(&owner("first")), SessionValues::default());
    }

    #[test]
    fn changes_of_runs_at_the_same_time_are_merged() {
        let memory = Memory::default();
        let owner = Owner::default();
        let apply = |run: &RunValues, result| memory.apply(owner.clone(), run, result);
        let begin = || RunValues::new(memory.of(&owner));
        let mut before = begin();
        before.store("removed", json!(0)).unwrap();
        before.store("both", json!(0)).unwrap();
        apply(&before, None);
        let (mut one, mut other) = (begin(), begin());
        one.store("one", json!(1)).unwrap();
        one.store("both", json!(1)).unwrap();
        one.store("removed", Value::Null).unwrap();
        other.store("other", json!(2)).unwrap();
        other.store("both", json!(2)).unwrap();
        // A key that the run has added and removed is not its own to remove.
        other.store("one", json!(2)).unwrap();
        other.store("one", Value::Null).unwrap();
        let key = |applied: AppliedChanges| applied.result;
        assert_eq!(key(apply(&one, Some(json!("r1")))).as_deref(), Some("result_1"));
        assert_eq!(other.load("both"), json!(2), "a run sees its own values only");
        assert_eq!(key(apply(&other, Some(json!("r2")))).as_deref(), Some("result_2"));
        let values = begin();
        let loaded = ["one", "other", "both", "removed", "result_1", "result_2"];
        let loaded = loaded.map(|key| values.load(key));
        assert_eq!(loaded, [json!(1), json!(2), json!(2), Value::Null, json!("r1"), json!("r2")]);
    }

    #[test]
    fn limits_hold_for_the_merged_values() {
        let memory = Memory::default();
        let owner = Owner::default();
        let runs = ["a", "b"].map(|prefix| {
            let mut run = RunValues::new(memory.of(&owner));
            for index in 0..40 {
                run.store(&format!("{prefix}{index}"), json!(index)).unwrap();
            }
            run
        });
        assert_eq!(memory.apply(owner.clone(), &runs[0], None), AppliedChanges::default());
        let applied = memory.apply(owner.clone(), &runs[1], Some(json!("whole")));
        assert_eq!(applied.result.as_deref(), Some("result_1"));
        let refusal = applied.refusal.unwrap();
        assert!(refusal.starts_with("there would be 80 stored values"), "{refusal}");
        let values = RunValues::new(memory.of(&owner));
        assert_eq!((values.load("a39"), values.load("b0")), (json!(39), Value::Null));
    }

    #[test]
    fn a_session_of_another_process_goes_on_with_the_values_of_the_ledger() {
        let mut first = SessionValues::default();
        first.store("k", json!(1)).unwrap();
        first.keep(json!("one"));
        let (memory, owner) = (Memory::default(), Owner::default());
        let run = RunValues::new(first);
        let applied = memory.apply(owner.clone(), &run, Some(json!("two")));
        assert_eq!(applied.result.as_deref(), Some("result_2"));
        assert_eq!(memory.of(&owner).load("k"), json!(1));
        // Values that another program has changed meanwhile stay, and no number is used twice.
        let (memory, mut other) = (Memory::default(), RunValues::default());
        other.store("k", json!(2)).unwrap();
        memory.apply(owner.clone(), &other, None);
        let applied = memory.apply(owner.clone(), &run, Some(json!("two")));
        assert_eq!(applied.result.as_deref(), Some("result_2"));
        assert_eq!(memory.of(&owner).load("k"), json!(2));
    }
}
