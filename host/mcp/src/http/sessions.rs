//! Sessions of the handshake era and whose they are.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::Mutex;

/// Most sessions.
const SESSIONS_MAX: usize = 1000;
/// Most sessions of one principal.
const PER_PRINCIPAL_MAX: usize = SESSIONS_MAX / 4;
/// The header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// The owners of sessions.
pub(super) struct Sessions {
    sessions: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Arc<str>>>,
}

/// The session that a request or an answer names.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

impl Sessions {
    pub(super) fn new(sessions: Arc<LocalSessionManager>) -> Self {
        Self { sessions, owners: Mutex::default() }
    }

    /// Returns whether a session that a request names may be used by the principal. One that nobody
    /// has is the SDK's to refuse.
    pub(super) async fn may_use(&self, id: &str, principal: &str) -> bool {
        self.owners.lock().await.get(id).is_none_or(|owner| **owner == *principal)
    }

    /// Gives a session that was just opened to a principal, or closes it: then false, the principal
    /// or the server has too many.
    pub(super) async fn open(&self, id: &str, principal: &str) -> bool {
        let mut owners = self.owners.lock().await;
        {
            let sessions = self.sessions.sessions.read().await;
            owners.retain(|id, _| sessions.contains_key(id.as_str()));
        }
        let own = owners.values().filter(|owner| ***owner == *principal).count();
        if own < PER_PRINCIPAL_MAX && owners.len() < SESSIONS_MAX {
            owners.insert(id.to_owned(), principal.into());
            return true;
        }
        drop(owners);
        let _ = self.sessions.close_session(&Arc::from(id)).await;
        false
    }
}
