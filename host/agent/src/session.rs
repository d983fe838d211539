//! Turns that belong together (`SES-1`).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

/// Turns that belong together: an id, the id that a service knows them by, and what is remembered (`SES-1`).
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

impl Session {
    /// A session with an id of one's own.
    pub fn with_id(id: impl Into<String>) -> Self {
        let turn = Arc::default();
        Self { inner: Arc::new(Inner { id: id.into(), memory: Mutex::default(), turn }) }
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

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.inner.id).finish_non_exhaustive()
    }
}
