//! Records of compactions in a history (`SES-21`, `SES-22`).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::without_reasoning;
use crate::history::{is_loaded, unmarked};
use crate::{Message, Role};

/// Key in [`Message::additional_properties`] of a record.
const COMPACTION: &str = "compaction";
/// Version of the form of records.
const VERSION: u64 = 1;

/// Conversation after the last compaction of a run.
#[derive(Debug, Clone)]
pub(crate) struct CompactionSnapshot {
    /// Number of messages that the response of the run had.
    pub(crate) responses: usize,
    /// Messages of the conversation.
    pub(crate) messages: Vec<Arc<Message>>,
}

/// Messages of a history, with the last compaction applied.
pub(crate) struct RestoredHistory {
    /// Messages to show to the model.
    pub(crate) messages: Vec<Message>,
    /// Messages that the compaction has replaced.
    pub(crate) replaced: Vec<Message>,
}

#[derive(Serialize, Deserialize)]
struct Record {
    version: u64,
    /// Number of lines of the history before the record.
    replaces: usize,
    /// Messages that replace those lines.
    messages: Vec<Message>,
}

impl CompactionSnapshot {
    /// Returns the record for the history with this source id, if the record is going to follow
    /// `replaces` messages. Returns `None` if it cannot be serialized.
    pub(crate) fn record(&self, source_id: &str, replaces: usize) -> Option<Message> {
        let is_own = |message: &&Arc<Message>| match message.source() {
            Some(source) => is_loaded(message) && source == source_id,
            None => true,
        };
        let messages = self.messages.iter().filter(is_own).map(|message| unmarked(message));
        let record = Record { version: VERSION, replaces, messages: messages.collect() };
        // Without contents, because earlier versions do not show such a message to the model.
        let mut message = Message::new(Role::System, Vec::new());
        let value = serde_json::to_value(record).ok()?;
        message.additional_properties.insert(COMPACTION.to_owned(), value);
        Some(message)
    }
}

/// Returns whether a message of a history is the record of a compaction, which is not part of the
/// conversation (`SES-21`).
#[must_use]
pub fn is_compaction_record(message: &Message) -> bool {
    message.contents.is_empty() && message.additional_properties.contains_key(COMPACTION)
}

/// Applies the last valid compaction of a history (`SES-22`).
pub(crate) fn restore(mut lines: Vec<Message>) -> RestoredHistory {
    let mut is_refused = false;
    let mut found = None;
    for (index, line) in lines.iter().enumerate().rev() {
        if !is_compaction_record(line) {
            continue;
        }
        match read(line, index) {
            Some(messages) => {
                found = Some((index, messages));
                break;
            }
            None => is_refused = true,
        }
    }
    let (mut messages, mut replaced) = (Vec::new(), Vec::new());
    if let Some((index, shown)) = found {
        let rest = lines.split_off(index);
        replaced = std::mem::replace(&mut lines, rest);
        messages = shown;
    }
    messages.extend(lines);
    messages.retain(|message| !is_compaction_record(message));
    replaced.retain(|message| !is_compaction_record(message));
    if is_refused {
        tracing::warn!("the history has a record of a compaction that does not fit; it is ignored");
        // Turns after the record followed other messages, so their reasoning does not count.
        let rest = messages.into_iter().filter_map(|message| without_reasoning(Arc::new(message)));
        messages = rest.map(Arc::unwrap_or_clone).collect();
    }
    RestoredHistory { messages, replaced }
}

/// Returns the messages of a record, if it belongs at this index.
fn read(line: &Message, index: usize) -> Option<Vec<Message>> {
    let value: &Value = line.additional_properties.get(COMPACTION)?;
    let record = Record::deserialize(value).ok()?;
    (record.version == VERSION && record.replaces == index).then_some(record.messages)
}
