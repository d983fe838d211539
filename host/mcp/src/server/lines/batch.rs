//! Batches of messages on a line: their requests are answered together.

use std::collections::{HashSet, VecDeque};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, NumberOrString as RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::value::RawValue;

/// The one revision that has batches.
pub(crate) const REVISION: &str = "2025-03-26";
/// Most messages of a batch.
pub(crate) const MESSAGES_MAX: usize = 64;

/// The batches of one connection.
#[derive(Default)]
pub(super) struct Batches {
    /// Messages of the batch that was read last and are still to be taken.
    unread: VecDeque<Vec<u8>>,
    /// True if the message that was taken last belongs to the last batch.
    is_reading: bool,
    open: Vec<Batch>,
}

/// A batch with requests that wait for their answers.
#[derive(Default)]
struct Batch {
    is_read: bool,
    waiting: HashSet<RequestId>,
    answers: Vec<TxJsonRpcMessage<RoleServer>>,
}

/// Returns whether a line holds a batch.
pub(super) fn is_batch(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'[')
}

impl Batches {
    /// Takes a batch apart. False if the line is none, or one of too many messages.
    pub(super) fn read(&mut self, line: &[u8]) -> bool {
        let Ok(messages) = serde_json::from_slice::<Vec<&RawValue>>(line) else { return false };
        if messages.is_empty() || messages.len() > MESSAGES_MAX {
            return false;
        }
        // A message on a line of its own, as every reader here expects it: outside of texts an end
        // of a line is a space.
        let line = |message: &&RawValue| message.get().replace(['\n', '\r'], " ").into_bytes();
        self.unread =
            messages.iter().map(line).map(|line| [line, b"\n".to_vec()].concat()).collect();
        self.open.push(Batch::default());
        true
    }

    /// The next message of the batch that was read last.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let next = self.unread.pop_front();
        self.is_reading = next.is_some();
        next
    }

    /// Notes a message that was read, or that there was none in what was taken. Gives the answers
    /// of a batch that is complete with it.
    pub(super) fn note(
        &mut self,
        message: Option<&RxJsonRpcMessage<RoleServer>>,
    ) -> Option<Vec<TxJsonRpcMessage<RoleServer>>> {
        let is_read = self.unread.is_empty();
        if let Some(batch) = self.open.last_mut().filter(|_| self.is_reading) {
            if let Some(ClientJsonRpcMessage::Request(request)) = message {
                batch.waiting.insert(request.id.clone());
            }
            batch.is_read = is_read;
        }
        self.is_reading &= !is_read;
        // A request that is given up is not answered.
        if let Some(ClientJsonRpcMessage::Notification(notification)) = message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(id) = &cancelled.params.request_id
        {
            self.open.iter_mut().for_each(|batch| {
                batch.waiting.remove(id);
            });
        }
        self.take_complete()
    }

    /// Takes an answer to a request of a batch: gives all of the batch with the last one. Anything
    /// else comes back.
    pub(super) fn collect(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> Result<Option<Vec<TxJsonRpcMessage<RoleServer>>>, Box<TxJsonRpcMessage<RoleServer>>> {
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        let batch = id.and_then(|id| {
            self.open.iter_mut().find_map(|batch| batch.waiting.remove(id).then_some(batch))
        });
        let Some(batch) = batch else { return Err(Box::new(message)) };
        batch.answers.push(message);
        Ok(self.take_complete())
    }

    fn take_complete(&mut self) -> Option<Vec<TxJsonRpcMessage<RoleServer>>> {
        let complete =
            self.open.iter().position(|batch| batch.is_read && batch.waiting.is_empty())?;
        let answers = self.open.swap_remove(complete).answers;
        (!answers.is_empty()).then_some(answers)
    }
}
