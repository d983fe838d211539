//! Sessions, which connect turns of a conversation (`SES-1`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Connects turns of a conversation: an id, the id that a service uses, and state (`SES-1`).
///
/// Clones share the session. Only one run at a time may use it; others wait.
#[derive(Clone)]
pub struct Session {
    inner: Arc<SessionState>,
}

struct SessionState {
    id: String,
    memory: Mutex<Memory>,
    /// Number of writes to `memory`, counted while it is locked.
    changes: AtomicU64,
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Clone, Default, PartialEq)]
struct Memory {
    service_id: Option<String>,
    state: Map<String, Value>,
}

/// JSON form of a session (`SES-1`).
#[derive(Serialize, Deserialize)]
struct SessionRecord {
    #[serde(rename = "type", default)]
    record: SessionRecordType,
    session_id: String,
    #[serde(default)]
    service_session_id: Option<String>,
    #[serde(default)]
    state: Map<String, Value>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SessionRecordType {
    #[default]
    Session,
}

impl Session {
    /// Creates a session with a random id (a UUID).
    #[must_use]
    pub fn new() -> Self {
        Self::with_id(uuid::Uuid::new_v4().to_string())
    }

    /// Creates a session with this id.
    pub fn with_id(id: impl Into<String>) -> Self {
        Self::remembering(id.into(), Memory::default())
    }

    fn remembering(id: String, memory: Memory) -> Self {
        let (memory, changes) = (Mutex::new(memory), AtomicU64::default());
        Self { inner: Arc::new(SessionState { id, memory, changes, turn: Arc::default() }) }
    }

    /// Locks the memory for a write.
    fn write(&self) -> MutexGuard<'_, Memory> {
        let memory = self.inner.memory.lock();
        self.inner.changes.fetch_add(1, Ordering::Relaxed);
        memory
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// Returns how many times the service's id or the state has been written since the session was
    /// created or restored. If the number is the same as before, nothing has changed.
    #[must_use]
    pub fn change_count(&self) -> u64 {
        self.inner.changes.load(Ordering::Relaxed)
    }

    /// Returns the service's id of the conversation, if the service keeps it.
    #[must_use]
    pub fn service_id(&self) -> Option<String> {
        self.inner.memory.lock().service_id.clone()
    }

    /// Sets the service's id of the conversation.
    pub fn set_service_id(&self, id: Option<String>) {
        self.write().service_id = id;
    }

    /// Returns a source's part of the state, `state[<source id>]` (`SES-2`), or null if there is
    /// none.
    #[must_use]
    pub fn part(&self, source: &str) -> Value {
        self.inner.memory.lock().state.get(source).cloned().unwrap_or_default()
    }

    /// Sets a source's part of the state; null removes it.
    pub fn set_part(&self, source: &str, part: Value) {
        let mut memory = self.write();
        if part.is_null() {
            memory.state.remove(source);
        } else {
            memory.state.insert(source.to_owned(), part);
        }
    }

    /// Changes a source's part of the state in one step: no other change comes between reading and
    /// writing. The part is null if there is none, and null removes it. `update` must not use the
    /// session.
    pub fn update_part<T>(&self, source: &str, update: impl FnOnce(&mut Value) -> T) -> T {
        let mut memory = self.write();
        let part = memory.state.entry(source).or_insert(Value::Null);
        let updated = update(part);
        if part.is_null() {
            memory.state.remove(source);
        }
        updated
    }

    /// Waits until no other run uses the session.
    pub(crate) async fn take_turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.inner.turn).lock_owned().await
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

/// Compares the ids and the state.
impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        if Arc::ptr_eq(&self.inner, &other.inner) {
            return true;
        }
        // Locks one at a time, so that two opposite comparisons cannot deadlock.
        let memory = self.inner.memory.lock().clone();
        self.inner.id == other.inner.id && memory == *other.inner.memory.lock()
    }
}

/// Serializes as `{"type": "session", "session_id", "service_session_id", "state"}` (`SES-1`).
impl Serialize for Session {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Memory { service_id, state } = self.inner.memory.lock().clone();
        let record = SessionRecordType::Session;
        SessionRecord {
            record,
            session_id: self.inner.id.clone(),
            service_session_id: service_id,
            state,
        }
        .serialize(to)
    }
}

/// Rejects any other `type`; a missing one counts as `session`.
impl<'de> Deserialize<'de> for Session {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let SessionRecord { session_id, service_session_id, state, .. } =
            SessionRecord::deserialize(from)?;
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
    fn concurrent_updates_of_a_part_are_all_kept() {
        let session = Session::new();
        let add = |value: &mut Value| *value = json!(value.as_u64().unwrap_or_default() + 1);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| session.update_part("count", add)));
            }
        });
        assert_eq!(session.part("count"), 400);
        session.update_part("count", |value| *value = Value::Null);
        assert_eq!(session, Session::with_id(session.id()));
    }

    #[test]
    fn every_write_is_counted_and_no_read() {
        let session = Session::new();
        session.set_service_id(Some("svc".into()));
        session.set_part("a", json!(1));
        session.update_part("a", |value| *value = json!(2));
        assert_eq!(session.change_count(), 3);
        let copy = session.clone();
        assert_eq!((copy.part("a"), copy.service_id()), (json!(2), Some("svc".into())));
        let restored: Session =
            serde_json::from_value(serde_json::to_value(&session).unwrap()).unwrap();
        assert_eq!((copy.change_count(), restored.change_count()), (3, 0));
        assert_eq!(restored, session);
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
