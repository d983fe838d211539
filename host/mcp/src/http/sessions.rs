//! Sessions of the session-based revisions.
//!
//! A session belongs to the principal that opened it; to others it does not exist. It ends when its
//! client says so, when it has been idle for five minutes (no request, no running call and no open
//! stream), and with the server.
//!
//! Calls never wait for a client that does not read: the events of each stream are kept, up to a
//! limit, and its readers take them. A client whose connection broke gets the rest of a stream with
//! `Last-Event-ID`, for a number of finished calls as well (`session.rs`).

mod events;
mod session;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::{
    RestoreOutcome, ServerSseMessage, SessionId, SessionManager,
};

use self::session::Session;
pub(super) use self::session::SessionTransport;
use self::stream::EventId;
use super::shared_sessions::StoredSessions;
use crate::server::Principal;

/// Maximum number of sessions.
const SESSIONS_MAX: usize = 1000;
/// Maximum number of sessions of one principal.
const PER_PRINCIPAL_MAX: usize = SESSIONS_MAX / 4;
/// Header that names a session.
const SESSION_ID: &str = "mcp-session-id";

/// Open sessions, as the SDK opens and uses them.
pub(super) struct Sessions {
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    /// Sessions that other servers know as well.
    stored: Option<Arc<StoredSessions>>,
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

/// Error of a message that a session does not take.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("there is no such session")]
    Unknown,
    #[error("too many sessions")]
    TooMany,
    #[error("the system provides no random numbers")]
    NoRandomNumbers,
    #[error("the request id {0} is in use")]
    DuplicateId(RequestId),
    #[error("there is no such event")]
    UnknownEvent,
}

/// Returns the session that a request or a response names.
pub(super) fn session_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_ID)?.to_str().ok()
}

impl Sessions {
    pub(super) fn new(stored: Option<Arc<StoredSessions>>) -> Self {
        Self { open: Mutex::default(), stored }
    }

    /// Checks what the SDK cannot find out about a session that a request names. It answers 404
    /// itself for a session that is unknown here, except for the request to end it.
    pub(super) async fn check(
        &self,
        id: &str,
        principal: &str,
        method: &Method,
    ) -> Result<(), SessionRefusal> {
        if self.open.lock().get(id).is_some_and(|session| *session.owner == *principal) {
            return Ok(());
        }
        let owner = match &self.stored {
            Some(stored) => stored.owner(id).await.map_err(|error| {
                tracing::warn!(%error, "the store of sessions does not answer");
                SessionRefusal::Unavailable
            })?,
            None => None,
        };
        match owner {
            Some(owner) if owner == principal && self.is_full(principal) => {
                Err(SessionRefusal::TooMany)
            }
            Some(owner) if owner == principal => Ok(()),
            _ if method == Method::DELETE => Err(SessionRefusal::Unknown),
            _ => Ok(()),
        }
    }

    /// Returns whether a principal can open no more sessions.
    pub(super) fn is_full(&self, principal: &str) -> bool {
        is_full(&self.open.lock(), principal)
    }

    /// Returns an open session of the principal that the current request is answered for.
    fn own(&self, id: &SessionId) -> Result<Arc<Session>, SessionError> {
        let principal = Principal::of_request().ok_or(SessionError::Unknown)?;
        let session = self.open.lock().get(id).cloned();
        session
            .filter(|session| *session.owner == *principal.name() && !session.is_closed())
            .ok_or(SessionError::Unknown)
    }

    fn insert(&self, id: SessionId) -> Result<SessionTransport, SessionError> {
        let principal = Principal::of_request().ok_or(SessionError::Unknown)?;
        let mut open = self.open.lock();
        if is_full(&open, principal.name()) {
            return Err(SessionError::TooMany);
        }
        let (session, transport) = Session::open(principal.name().into());
        open.insert(id, session);
        Ok(transport)
    }
}

fn is_full(open: &HashMap<SessionId, Arc<Session>>, principal: &str) -> bool {
    let own = open.values().filter(|session| *session.owner == *principal).count();
    own >= PER_PRINCIPAL_MAX || open.len() >= SESSIONS_MAX
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, SessionTransport), SessionError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| SessionError::NoRandomNumbers)?;
        let id: SessionId = data_encoding::HEXLOWER.encode(&id).into();
        let transport = self.insert(Arc::clone(&id))?;
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        self.own(id)?.initialize(message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.own(id).is_ok())
    }

    /// Ends a session for its client, or for the SDK once its handler has ended.
    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        let principal = Principal::of_request();
        let mut open = self.open.lock();
        // A handler that has ended closed its session. Another one may have its id since.
        let may_close = |session: &Arc<Session>| match principal {
            Some(principal) => *session.owner == *principal.name(),
            None => session.is_closed(),
        };
        if open.get(id).is_some_and(may_close)
            && let Some(session) = open.remove(id)
        {
            session.close();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        match self.own(id)?.call(message).await {
            Ok(stream) => Ok(stream.left_stream()),
            Err(SessionError::DuplicateId(id)) => {
                let error = ErrorData::invalid_request("the id of the request is in use", None);
                let error = ServerJsonRpcMessage::error(error, Some(id));
                let event = ServerSseMessage::from_message(error);
                Ok(futures_util::stream::iter([event]).right_stream())
            }
            Err(error) => Err(error),
        }
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        self.own(id)?.accept(message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        self.own(id)?.listen().ok_or(SessionError::Unknown)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let last = EventId::parse(&last_event_id).ok_or(SessionError::UnknownEvent)?;
        self.own(id)?.resume(last).ok_or(SessionError::UnknownEvent)
    }

    async fn restore_session(
        &self,
        id: SessionId,
    ) -> Result<RestoreOutcome<SessionTransport>, SessionError> {
        if self.open.lock().get(&id).is_some_and(|session| !session.is_closed()) {
            return Ok(RestoreOutcome::AlreadyPresent);
        }
        self.insert(id).map(RestoreOutcome::Restored)
    }
}
