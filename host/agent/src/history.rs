//! History of sessions: messages of earlier turns (`SES-4` to `SES-15`).
//!
//! [`History`] is a context provider: it adds the earlier messages of a session to each run, and
//! stores the run's new ones. A [`HistoryStore`] keeps them: the session itself
//! ([`History::in_session`]) or a file per session ([`FileHistory`]).

mod error;
mod file;
mod in_session;
mod provider;
mod record;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::{BoxError, Message, Session};

pub use error::HistoryError;
pub use file::{FileHistory, FileHistoryOptions};
pub use provider::{History, HistoryFlags, IN_SESSION};
pub(crate) use provider::{is_loaded, unmarked};

/// Storage for the messages of sessions.
///
/// A run calls the store once at its beginning and once at its end. Several sessions may use it
/// concurrently. One session has one run at a time, but another process may use the same session.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// Returns the messages of a session in the order in which they were appended, or none for an
    /// unknown session. `state` is the history's part of the session's state (`SES-2`).
    ///
    /// # Errors
    /// Any; the run ends before the model is called.
    async fn load(&self, session: &Session, state: &Value) -> Result<Vec<Message>, BoxError>;

    /// Appends messages, all of them or none. Never called without messages.
    ///
    /// # Errors
    /// Any; it becomes the result of the run.
    async fn append(
        &self,
        session: &Session,
        state: &mut Value,
        messages: &[Arc<Message>],
    ) -> Result<(), BoxError>;
}
