//! Ways of the host's messages: those about a call that blocks its thread go to that thread, all
//! others to the thread of the package that reads messages.

use std::collections::HashMap;

use async_trait::async_trait;
use cofferdam::pipe::{CallResult, HostMessage, MessageSender};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Maximum number of messages that wait. Requests and results wait for room, reports do not.
const QUEUED_MAX: usize = 256;

/// Message for the program.
pub(crate) enum ProgramMessage {
    /// Any but a result.
    Other(Value),
    /// Result of a call, with its number.
    Result(u64, CallResult),
    /// Nothing more comes.
    End,
}

/// Queues of messages.
pub(crate) struct Router {
    reader: Sender<ProgramMessage>,
    calls: Mutex<HashMap<u64, Sender<ProgramMessage>>>,
}

impl Router {
    /// Returns a router, and the messages that belong to no call that blocks.
    pub(crate) fn new() -> (Self, Receiver<ProgramMessage>) {
        let (reader, messages) = channel(QUEUED_MAX);
        (Self { reader, calls: Mutex::default() }, messages)
    }

    /// Returns the messages about a call, other than its result.
    pub(crate) fn open(&self, call: u64) -> Receiver<ProgramMessage> {
        let (sender, messages) = channel(QUEUED_MAX);
        self.calls.lock().insert(call, sender);
        messages
    }

    /// Ends the messages about a call.
    pub(crate) fn close(&self, call: u64) {
        self.calls.lock().remove(&call);
    }

    /// Passes a message to the thread that reads.
    pub(crate) async fn read(&self, message: ProgramMessage) {
        let _ = self.reader.send(message).await;
    }

    fn queue(&self, message: &HostMessage<'_>) -> Sender<ProgramMessage> {
        let call = match message {
            HostMessage::Invoke { call, .. } => *call,
            HostMessage::Approve { call, .. } | HostMessage::Ask { call, .. } => Some(*call),
            HostMessage::Progress { id, .. } | HostMessage::Log { id, .. } => Some(*id),
            _ => None,
        };
        let calls = self.calls.lock();
        call.and_then(|call| calls.get(&call)).unwrap_or(&self.reader).clone()
    }
}

#[async_trait]
impl MessageSender for Router {
    async fn send(&self, message: &HostMessage<'_>) {
        if let Ok(value) = serde_json::to_value(message) {
            let _ = self.queue(message).send(ProgramMessage::Other(value)).await;
        }
    }

    fn offer(&self, message: &HostMessage<'_>) {
        if let Ok(value) = serde_json::to_value(message) {
            let _ = self.queue(message).try_send(ProgramMessage::Other(value));
        }
    }
}
