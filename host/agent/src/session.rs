//! Turns that belong together (`SES-1`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Turns that belong together: an id, the id that a service knows them by, and what is remembered
/// (`SES-1`).
///
/// Clones are the same session. One run at a time has the turn; another one waits for it.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    id: String,
    memory: Mutex<Memory>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Default, PartialEq)]
struct Memory {
    service_id: Option<String>,
    state: Map<String, Value>,
}

/// The JSON form (`SES-1`).
#[derive(Serialize, Deserialize)]
struct Record {
    #[serde(rename = "type", default)]
    record: RecordType,
    session_id: String,
    #[serde(default)]
    service_session_id: Option<String>,
    #[serde(default)]
    state: Map<String, Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecordType {
    #[default]
    Session,
}

impl Session {
    /// A session with a random id (a UUID).
    #[must_use]
    pub fn new() -> Self {
        Self::with_id(uuid::Uuid::new_v4().to_string())
    }

    /// A session with an id of one's own.
    pub fn with_id(id: impl Into<String>) -> Self {
        Self::remembering(id.into(), Memory::default())
    }

    fn remembering(id: String, memory: Memory) -> Self {
        Self { inner: Arc::new(Inner { id, memory: Mutex::new(memory), turn: Arc::default() }) }
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The id that the service knows the conversation by, if it keeps it.
    #[must_use]
    pub fn service_id(&self) -> Option<String> {
        self.memory().service_id.clone()
    }

    /// Sets the id that the service knows the conversation by.
    pub fn set_service_id(&self, id: Option<String>) {
        self.memory().service_id = id;
    }

    /// What a source remembers: `state[<source id>]` (`SES-2`); null if nothing.
    #[must_use]
    pub fn part(&self, source: &str) -> Value {
        self.memory().state.get(source).cloned().unwrap_or_default()
    }

    /// Sets what a source remembers; null is nothing.
    pub fn set_part(&self, source: &str, part: Value) {
        let mut memory = self.memory();
        if part.is_null() {
            memory.state.remove(source);
        } else {
            memory.state.insert(source.to_owned(), part);
        }
    }

    /// Waits until no other run has the turn.
    pub(crate) async fn take_turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.inner.turn).lock_owned().await
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Every change is one assignment: what a panicking thread left is whole.
        self.inner.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

/// Sessions are equal that have the same id and remember the same.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.inner, &other.inner) {
            return true;
        }
        // One lock at a time: two comparisons the other way round would wait for each other.
        let memory = self.memory().clone();
        self.inner.id == other.inner.id && memory == *other.memory()
    }
}

/// `{"type": "session", "session_id", "service_session_id", "state"}` (`SES-1`).
impl Serialize for Session {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Memory { service_id, state } = self.memory().clone();
        let record = RecordType::Session;
        Record { record, session_id: self.inner.id.clone(), service_session_id: service_id, state }
            .serialize(to)
    }
}

/// Another `type` is refused; none at all is taken for a session.
impl<'de> Deserialize<'de> for Session {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Record { session_id, service_session_id, state, .. } = Record::deserialize(from)?;
        Ok(Self::remembering(session_id, Memory { service_id: service_session_id, state }))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.inner.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_is_read_back_equal() {
        let session = Session::new();
        session.set_service_id(Some("svc".into()));
        session.set_part("history", json!({"messages": [{"n": 1.5}]}));
        let form = serde_json::to_value(&session).unwrap();
        assert_eq!(form["type"], "session");
        assert_eq!(form["service_session_id"], "svc");
        let read: Session = serde_json::from_value(form).unwrap();
        assert_eq!(read, session);
        read.set_part("history", Value::Null);
        assert_ne!(read, session);
    }

    #[test]
    fn ids_are_random_unless_they_are_given() {
        let (one, other) = (Session::new(), Session::new());
        assert_ne!(one.id(), other.id());
        assert_eq!(uuid::Uuid::parse_str(one.id()).unwrap().get_version_num(), 4);
        assert_eq!(Session::with_id("s").id(), "s");
    }

    #[test]
    fn what_is_no_session_is_refused() {
        let refused = [
            json!({"type": "message", "session_id": "s"}),
            json!({"type": "session"}),
            json!({"type": "session", "session_id": null}),
            json!({"type": "session", "session_id": "s", "state": []}),
            json!([]),
        ];
        for form in refused {
            assert!(serde_json::from_value::<Session>(form.clone()).is_err(), "{form}");
        }
    }
}
