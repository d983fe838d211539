//! Batches of messages on a line. The responses to the requests of a batch are sent together.

use std::collections::{HashSet, VecDeque};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, NumberOrString as RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::value::RawValue;

/// The only revision that has batches.
pub(crate) const REVISION: &str = "2025-03-26";
/// Maximum number of messages in a batch.
pub(crate) const MESSAGES_MAX: usize = 64;

/// Batches of one connection.
#[derive(Default)]
pub(super) struct Batches {
    /// Messages of the most recent batch that have not been taken yet.
    unread: VecDeque<Vec<u8>>,
    /// True if the most recently taken message belongs to the most recent batch.
    is_reading: bool,
    open: Vec<Batch>,
}

/// Batch with unanswered requests.
#[derive(Default)]
struct Batch {
    is_read: bool,
    waiting: HashSet<RequestId>,
    answers: Vec<TxJsonRpcMessage<RoleServer>>,
}

/// Returns whether a line contains a batch.
pub(super) fn is_batch(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'[')
}

impl Batches {
    /// Splits a batch. Returns false if the line is not a batch, or has too many messages.
    pub(super) fn read(&mut self, line: &[u8]) -> bool {
        let Ok(messages) = serde_json::from_slice::<Vec<&RawValue>>(line) else { return false };
        if messages.is_empty() || messages.len() > MESSAGES_MAX {
            return false;
        }
        // Readers here expect each message on its own line. Line breaks outside of JSON strings are
        // insignificant and can become spaces.
        let line = |message: &&RawValue| message.get().replace(['\n', '\r'], " ").into_bytes();
        self.unread =
            messages.iter().map(line).map(|line| [line, b"\n".to_vec()].concat()).collect();
        self.open.push(Batch::default());
        true
    }

    /// Takes the next message of the most recent batch.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        let next = self.unread.pop_front();
        self.is_reading = next.is_some();
        next
    }

    /// Records the message that was read, or `None` for a batch entry that is not a valid message.
    /// Returns the responses of a batch that this completes.
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
        // A canceled request is not answered.
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

    /// Adds the error of an invalid message to the batch that it is in. Returns it if it is in
    /// none.
    pub(super) fn refuse(
        &mut self,
        error: TxJsonRpcMessage<RoleServer>,
    ) -> Option<TxJsonRpcMessage<RoleServer>> {
        match self.open.last_mut().filter(|_| self.is_reading) {
            Some(batch) => {
                batch.answers.push(error);
                None
            }
            None => Some(error),
        }
    }

    /// Collects the response to a request of a batch, and returns all responses of the batch with
    /// the last one. Returns any other message as the error.
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
