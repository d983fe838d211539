//! Sessions that several servers share: a request may go to another server than the one before.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{
    SessionState, SessionStore, SessionStoreError,
};
use serde::{Deserialize, Serialize};

use crate::server::Principal;

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

/// Sessions in a shared store, as the SDK reads and writes them for the principal of a request.
pub(super) struct StoredSessions {
    store: Arc<dyn SharedSessions>,
}

#[derive(Serialize, Deserialize)]
struct StoredSession {
    /// Principal that the session belongs to.
    owner: String,
    state: SessionState,
}

impl StoredSessions {
    pub(super) fn new(store: Arc<dyn SharedSessions>) -> Self {
        Self { store }
    }

    /// Returns the owner of a session; `None` if there is no such session.
    pub(super) async fn owner(&self, id: &str) -> Result<Option<String>, String> {
        Ok(self.read(id).await?.map(|session| session.owner))
    }

    async fn read(&self, id: &str) -> Result<Option<StoredSession>, String> {
        let Some(value) = self.store.read(id).await? else { return Ok(None) };
        serde_json::from_slice(&value).map(Some).map_err(|error| error.to_string())
    }
}

#[async_trait]
impl SessionStore for StoredSessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let session = self.read(id).await?;
        let principal = Principal::of_request();
        let is_own = |session: &StoredSession| {
            principal.is_some_and(|principal| session.owner == principal.name())
        };
        Ok(session.filter(is_own).map(|session| session.state))
    }

    /// Stores a session that was opened. Only this server has a session that is not stored.
    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let Some(owner) = Principal::of_request() else { return Ok(()) };
        let session = StoredSession { owner: owner.name().to_owned(), state: state.clone() };
        let value = serde_json::to_vec(&session)?;
        if value.len() > SESSION_BYTES_MAX {
            tracing::warn!(bytes = value.len(), "a session is too large for other servers");
            return Ok(());
        }
        Ok(self.store.write(id, Some(value)).await?)
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        Ok(self.store.write(id, None).await?)
    }
}
