//! Sessions of the session-based revisions, and their owners.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::Mutex;

/// Maximum number of sessions.
const SESSIONS_MAX: usize = 1000;
/// Maximum number of sessions of one principal.
const PER_PRINCIPAL_MAX: usize = SESSIONS_MAX / 4;
/// Header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// Owners of sessions.
pub(super) struct Sessions {
    sessions: Arc<LocalSessionManager>,
    owners: Mutex<HashMap<String, Arc<str>>>,
}

/// Returns the session that a request or a response names.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

impl Sessions {
    pub(super) fn new(sessions: Arc<LocalSessionManager>) -> Self {
        Self { sessions, owners: Mutex::default() }
    }

    /// Returns whether the principal may use a session that a request names. A session without an
    /// owner is left to the SDK to reject.
    pub(super) async fn may_use(&self, id: &str, principal: &str) -> bool {
        self.owners.lock().await.get(id).is_none_or(|owner| **owner == *principal)
    }

    /// Assigns a newly opened session to a principal. If the principal or the server has too many
    /// sessions, closes it and returns false.
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
