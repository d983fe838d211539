//! What is remembered of earlier turns (`SES-4` to `SES-15`).
//!
//! [`History`] is a context provider: it adds the earlier messages of a session to each run, and
//! stores what the run brought. Where they are kept is a [`HistoryStore`]: in the session itself
//! ([`History::in_session`]) or in a file per session ([`FileHistory`]).

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

/// Where the messages of sessions are kept.
///
/// A store is asked once at the beginning of a run and once at its end, and by several sessions at
/// a time. One session has one run at a time; another process may work on the same session.
#[async_trait]
pub trait HistoryStore: Send + Sync {
    /// The messages of a session in the order in which they were appended; none for a session that
    /// is not known. `state` is the part of the session's state that belongs to the history
    /// (`SES-2`).
    ///
    /// # Errors
    /// Any; the run ends before a model is asked.
    async fn load(&self, session: &Session, state: &Value) -> Result<Vec<Message>, BoxError>;

    /// Appends messages, all of them or none. Not called without messages.
    ///
    /// # Errors
    /// Any; the run ends with it.
    async fn append(
        &self,
        session: &Session,
        state: &mut Value,
        messages: &[Arc<Message>],
    ) -> Result<(), BoxError>;
}
