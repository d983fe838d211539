//! Sessions of the session-based revisions, and their owners.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::sync::Mutex;
use tokio_util::task::AbortOnDropHandle;

use super::shared_sessions::StoredSessions;

/// Maximum number of sessions.
const SESSIONS_MAX: usize = 1000;
/// Maximum number of sessions of one principal.
const PER_PRINCIPAL_MAX: usize = SESSIONS_MAX / 4;
/// Interval in which the use of a session is noted. A session ends after five idle minutes.
const KEEP_INTERVAL: Duration = Duration::from_mins(1);
/// Header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// Owners of sessions.
pub(super) struct Sessions {
    sessions: Arc<LocalSessionManager>,
    /// Sessions that other servers know as well.
    stored: Option<Arc<StoredSessions>>,
    owners: Mutex<HashMap<String, Arc<str>>>,
}

/// Reason for which a request cannot use a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionRefusal {
    /// There is no such session, or it belongs to another principal.
    Unknown,
    /// The principal or the server has too many sessions.
    TooMany,
    /// The store of sessions does not answer.
    Unavailable,
}

/// Returns the session that a request or a response names.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

impl Sessions {
    pub(super) fn new(
        sessions: Arc<LocalSessionManager>,
        stored: Option<Arc<StoredSessions>>,
    ) -> Self {
        Self { sessions, stored, owners: Mutex::default() }
    }

    /// Checks that the principal may use a session that a request names. A session that only the
    /// SDK could know is left to it to reject.
    pub(super) async fn check(&self, id: &str, principal: &str) -> Result<(), SessionRefusal> {
        if let Some(owner) = self.owners.lock().await.get(id) {
            return if **owner == *principal { Ok(()) } else { Err(SessionRefusal::Unknown) };
        }
        let Some(stored) = &self.stored else { return Ok(()) };
        match stored.owner(id).await {
            Ok(Some(owner)) if owner == principal => self.admit(id, principal).await,
            Ok(Some(_)) => Err(SessionRefusal::Unknown),
            Ok(None) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the store of sessions does not answer");
                Err(SessionRefusal::Unavailable)
            }
        }
    }

    /// Assigns a newly opened session to a principal, and stores it for other servers. A session
    /// that cannot be assigned is closed.
    pub(super) async fn open(&self, id: &str, principal: &str) -> Result<(), SessionRefusal> {
        let admitted = self.admit(id, principal).await;
        if admitted.is_err() {
            let _ = self.sessions.close_session(&Arc::from(id)).await;
        }
        match &self.stored {
            Some(stored) if admitted.is_ok() => stored.open(id, principal).await,
            Some(stored) => stored.forget(id),
            None => {}
        }
        admitted
    }

    /// Keeps a session from expiring as idle, until the result is dropped: a session with an open
    /// stream, or with a call whose answer is awaited, is in use.
    pub(super) fn keep(&self, id: &str) -> AbortOnDropHandle<()> {
        let (sessions, id) = (Arc::clone(&self.sessions), id.to_owned());
        AbortOnDropHandle::new(tokio::spawn(async move {
            loop {
                tokio::time::sleep(KEEP_INTERVAL).await;
                let Some(session) = sessions.sessions.read().await.get(id.as_str()).cloned() else {
                    return;
                };
                // Any event counts as use. No stream has this number.
                let _ = session.close_request_wise_channel(u64::MAX).await;
            }
        }))
    }

    /// Assigns a session to a principal.
    async fn admit(&self, id: &str, principal: &str) -> Result<(), SessionRefusal> {
        let mut owners = self.owners.lock().await;
        {
            let sessions = self.sessions.sessions.read().await;
            owners.retain(|id, _| sessions.contains_key(id.as_str()));
        }
        let own = owners.values().filter(|owner| ***owner == *principal).count();
        if own >= PER_PRINCIPAL_MAX || owners.len() >= SESSIONS_MAX {
            return Err(SessionRefusal::TooMany);
        }
        owners.insert(id.to_owned(), principal.into());
        Ok(())
    }
}
