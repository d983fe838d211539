//! Context provider that stores and loads messages (`SES-5`).

use std::sync::Arc;

use async_trait::async_trait;

use super::in_session::InSession;
use super::{FileHistory, HistoryStore};
use crate::compaction::{RestoredHistory, is_compaction_record, restore};
use crate::{AfterRun, BeforeRun, BoxError, ContextProvider, Message};

/// Source id of a history in the session.
pub const IN_SESSION: &str = "in_memory";
/// Default source id of a history in files.
const IN_FILES: &str = "file_history";
/// Key in [`Message::additional_properties`] that marks messages loaded by a history.
const LOADED: &str = "is_history";

/// Stores and loads the messages of sessions. Without a session it does nothing (`SES-4`).
///
/// No history stores messages again that it or another one has loaded.
pub struct History {
    source_id: String,
    flags: HistoryFlags,
    store: Arc<dyn HistoryStore>,
}

/// Flags of a [`History`] (`SES-5`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryFlags {
    /// True if earlier messages are added to each run.
    pub load_messages: bool,
    /// True if the caller's messages are stored.
    pub store_inputs: bool,
    /// True if the messages of the model and the tools are stored.
    pub store_outputs: bool,
    /// True if messages that other context providers add are stored. Later runs then contain them
    /// twice, from their provider and from the history.
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
    /// Creates a history with a custom store.
    pub fn new(source_id: impl Into<String>, store: impl HistoryStore + 'static) -> Self {
        Self { source_id: source_id.into(), flags: HistoryFlags::default(), store: Arc::new(store) }
    }

    /// Creates a history in the session itself. A run gets one if no other provider loads messages
    /// (`SES-4`).
    #[must_use]
    pub fn in_session() -> Self {
        Self::new(IN_SESSION, InSession)
    }

    /// Creates the default history of a run, under a source id that no other provider has.
    pub(crate) fn beside(others: &[Arc<dyn ContextProvider>]) -> Self {
        let is_free = |id: &String| others.iter().all(|other| other.source_id() != id);
        let more = (2..).map(|number: u32| format!("{IN_SESSION}_{number}"));
        let id = std::iter::once(IN_SESSION.to_owned()).chain(more).find(is_free);
        Self::in_session().with_source_id(id.unwrap_or_default())
    }

    /// Creates a history in one file per session.
    #[must_use]
    pub fn in_files(files: FileHistory) -> Self {
        Self::new(IN_FILES, files)
    }

    /// Sets the source id, which has to be unique within an agent.
    #[must_use]
    pub fn with_source_id(mut self, source_id: impl Into<String>) -> Self {
        self.source_id = source_id.into();
        self
    }

    /// Sets the flags.
    #[must_use]
    pub fn with_flags(mut self, flags: HistoryFlags) -> Self {
        self.flags = flags;
        self
    }

    /// Returns the messages of a run to store: those of other providers, then the caller's, then
    /// those of the model and the tools. A compaction of the run is recorded where it happened.
    fn to_store(&self, run: &AfterRun<'_>) -> Vec<Arc<Message>> {
        let HistoryFlags { store_inputs, store_outputs, store_context_messages, .. } = self.flags;
        let responses = run.response.messages.as_slice();
        let (before, after) = match run.compaction {
            Some(compaction) => responses.split_at(compaction.responses.min(responses.len())),
            None => (responses, &[][..]),
        };
        let parts = [
            (store_context_messages, run.context),
            (store_inputs, run.input),
            (store_outputs, before),
        ];
        let stored =
            parts.into_iter().filter(|(is_stored, _)| *is_stored).flat_map(|(_, part)| part);
        let mut stored: Vec<_> = stored.filter(|message| !is_loaded(message)).cloned().collect();
        stored.extend(self.compaction_record(run, stored.len()));
        stored.extend(after.iter().filter(|_| store_outputs).cloned());
        stored
    }

    /// Returns the record of the run's compaction (`SES-21`). There is none if the history does not
    /// have the whole conversation.
    fn compaction_record(&self, run: &AfterRun<'_>, stored: usize) -> Option<Arc<Message>> {
        let HistoryFlags { load_messages, store_inputs, store_outputs, .. } = self.flags;
        if !(load_messages && store_inputs && store_outputs) {
            return None;
        }
        let mut loaded = run.loaded.iter();
        let (_, loaded) = loaded.find(|(source_id, _)| *source_id == self.source_id)?;
        let record = run.compaction?.record(&self.source_id, loaded.saturating_add(stored))?;
        Some(Arc::new(record))
    }
}

/// Returns whether a history has loaded this message.
pub(crate) fn is_loaded(message: &Message) -> bool {
    message.additional_properties.contains_key(LOADED)
}

/// Returns a loaded message as it was stored.
pub(crate) fn unmarked(message: &Message) -> Message {
    let mut message = message.clone();
    message.additional_properties.remove(LOADED);
    message.without_source()
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
        let lines = self.store.load(session, run.state).await?;
        run.added.loaded.push((self.source_id.clone(), lines.len()));
        let RestoredHistory { messages, replaced } = restore(lines);
        run.added.replaced.extend(replaced.into_iter().map(Arc::new));
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
        let is_record = |message: &Arc<Message>| is_compaction_record(message);
        match self.store.append(session, run.state, &messages).await {
            // The record of a compaction may be too large for the store. The messages matter more.
            Err(error) if messages.iter().any(is_record) => {
                tracing::warn!(%error, "the compaction of a run was not stored");
                let messages: Vec<_> =
                    messages.into_iter().filter(|message| !is_record(message)).collect();
                self.store.append(session, run.state, &messages).await
            }
            appended => appended,
        }
    }
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("History").field("source_id", &self.source_id).finish_non_exhaustive()
    }
}
