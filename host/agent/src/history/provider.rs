//! What of a run is remembered, and what a model sees of it again (`SES-5`).

use std::sync::Arc;

use async_trait::async_trait;

use super::in_session::InSession;
use super::{FileHistory, HistoryStore};
use crate::{AfterRun, BeforeRun, BoxError, ContextProvider, Message};

/// The source id of a history that is kept in the session.
pub const IN_SESSION: &str = "in_memory";
/// The source id of a history that is kept in files, unless another one is given.
const IN_FILES: &str = "file_history";
/// Marks messages that some history has loaded, in [`Message::additional_properties`].
const LOADED: &str = "is_history";

/// Remembers the turns of sessions. Without a session nothing is remembered (`SES-4`).
///
/// Messages that a history has loaded are not stored again, by it or by another one.
pub struct History {
    source_id: String,
    flags: HistoryFlags,
    store: Arc<dyn HistoryStore>,
}

/// What a history does (`SES-5`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryFlags {
    /// Whether earlier messages are added to each run.
    pub load_messages: bool,
    /// Whether the messages of the caller are stored.
    pub store_inputs: bool,
    /// Whether the messages of model and tools are stored.
    pub store_outputs: bool,
    /// Whether the messages that other context providers add are stored. They are added to later
    /// runs once more then, by their provider and by the history.
    pub store_context_messages: bool,
}

impl Default for HistoryFlags {
    fn default() -> Self {
        Self {
            load_messages: true,
            store_inputs: true,
            store_outputs: true,
            store_context_messages: false,
        }
    }
}

impl History {
    /// A history over a store of one's own.
    pub fn new(source_id: impl Into<String>, store: impl HistoryStore + 'static) -> Self {
        Self { source_id: source_id.into(), flags: HistoryFlags::default(), store: Arc::new(store) }
    }

    /// A history in the session itself: the one that a run gets when no other is there to load
    /// messages (`SES-4`).
    #[must_use]
    pub fn in_session() -> Self {
        Self::new(IN_SESSION, InSession)
    }

    /// The history in the session that a run gets by itself, under a source id that none of its
    /// providers has.
    pub(crate) fn beside(others: &[Arc<dyn ContextProvider>]) -> Self {
        let is_free = |id: &String| others.iter().all(|other| other.source_id() != id);
        let more = (2..).map(|number: u32| format!("{IN_SESSION}_{number}"));
        let id = std::iter::once(IN_SESSION.to_owned()).chain(more).find(is_free);
        Self::in_session().with_source_id(id.unwrap_or_default())
    }

    /// A history in a file per session.
    #[must_use]
    pub fn in_files(files: FileHistory) -> Self {
        Self::new(IN_FILES, files)
    }

    /// The same history under another source id; two of one agent have different ones.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<String>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// The same history with other flags.
    #[must_use]
    pub fn with_flags(mut self, flags: HistoryFlags) -> Self {
        self.flags = flags;
        self
    }

    /// What is stored of a run: messages of other providers, then those of the caller, then those
    /// of model and tools.
    fn to_store(&self, run: &AfterRun<'_>) -> Vec<Arc<Message>> {
        let HistoryFlags { store_inputs, store_outputs, store_context_messages, .. } = self.flags;
        let parts = [
            (store_context_messages, run.context),
            (store_inputs, run.input),
            (store_outputs, run.response.messages.as_slice()),
        ];
        let stored =
            parts.into_iter().filter(|(is_stored, _)| *is_stored).flat_map(|(_, part)| part);
        stored.filter(|message| !is_loaded(message)).cloned().collect()
    }
}

fn is_loaded(message: &Message) -> bool {
    message.additional_properties.contains_key(LOADED)
}

#[async_trait]
impl ContextProvider for History {
    fn source_id(&self) -> &str {
        &self.source_id
    }

    fn loads_history(&self) -> bool {
        self.flags.load_messages
    }

    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        let Some(session) = run.session.filter(|_| self.flags.load_messages) else { return Ok(()) };
        let messages = self.store.load(session, run.state).await?;
        run.add_messages(messages.into_iter().map(|mut message| {
            message.additional_properties.insert(LOADED.to_owned(), true.into());
            message
        }));
        Ok(())
    }

    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        let Some(session) = run.session else { return Ok(()) };
        let messages = self.to_store(run);
        if messages.is_empty() {
            return Ok(());
        }
        self.store.append(session, run.state, &messages).await
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("source_id", &self.source_id).finish_non_exhaustive()
    }
}
