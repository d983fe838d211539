//! Sessions that several servers share: a request may go to another server than the one before.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{
    SessionState, SessionStore, SessionStoreError,
};
use serde::{Deserialize, Serialize};

/// Maximum size of a stored session in bytes. Clients send their name and capabilities.
const SESSION_BYTES_MAX: usize = 64 * 1024;

/// Store that several servers share.
#[async_trait]
pub trait SharedSessions: Send + Sync {
    /// Returns a value.
    ///
    /// # Errors
    /// A message for the operator if the store does not answer.
    async fn read(&self, id: &str) -> Result<Option<Vec<u8>>, String>;

    /// Writes a value, or removes it.
    ///
    /// # Errors
    /// A message for the operator if the store does not answer.
    async fn write(&self, id: &str, value: Option<Vec<u8>>) -> Result<(), String>;
}

/// Sessions in a shared store, as the SDK reads and writes them.
pub(super) struct StoredSessions {
    store: Arc<dyn SharedSessions>,
    /// Sessions that the SDK has opened and whose owner is not known yet.
    opened: Mutex<HashMap<String, SessionState>>,
}

#[derive(Serialize, Deserialize)]
struct StoredSession {
    /// Principal that the session belongs to.
    owner: String,
    state: SessionState,
}

impl StoredSessions {
    pub(super) fn new(store: Arc<dyn SharedSessions>) -> Self {
        Self { store, opened: Mutex::default() }
    }

    /// Returns the owner of a session; `None` if there is no such session.
    pub(super) async fn owner(&self, id: &str) -> Result<Option<String>, String> {
        Ok(self.read(id).await?.map(|session| session.owner))
    }

    /// Stores a session that was opened. A session that is not stored belongs to this server alone.
    pub(super) async fn open(&self, id: &str, owner: &str) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        let Some(state) = opened else { return };
        let session = StoredSession { owner: owner.to_owned(), state };
        let value = serde_json::to_vec(&session).unwrap_or_default();
        if value.len() > SESSION_BYTES_MAX {
            tracing::warn!(bytes = value.len(), "a session is too large for other servers");
        } else if let Err(error) = self.store.write(id, Some(value)).await {
            tracing::warn!(%error, "a session was not stored for other servers");
        }
    }

    /// Forgets a session that was opened and closed again.
    pub(super) fn forget(&self, id: &str) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    async fn read(&self, id: &str) -> Result<Option<StoredSession>, String> {
        let Some(value) = self.store.read(id).await? else { return Ok(None) };
        serde_json::from_slice(&value).map(Some).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl SessionStore for StoredSessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.read(id).await?.map(|session| session.state))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.insert(id.to_owned(), state.clone());
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        Ok(self.store.write(id, None).await?)
    }
}
