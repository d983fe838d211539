//! Distributes replies to the running calls of a gateway.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::bus::{Bus, BusMessage, Subscription};
use crate::frame;
use crate::message::{GatewayMessage, WorkerMessage};
use crate::subject::{NodeName, Subjects};

/// Maximum number of messages that wait for one call. A call that receives more loses some: it asks
/// for a lost result again.
const WAITING_MAX: usize = 256;

/// Reply to a call.
#[derive(Debug)]
pub(super) enum InboxEvent {
    /// Reply to the message of this number, with its body.
    Message(u32, WorkerMessage, Bytes),
    /// The message of this number had no subscription.
    Undeliverable(u32),
}

/// Running calls by number.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    calls: Mutex<BTreeMap<u64, mpsc::Sender<InboxEvent>>>,
}

impl Inbox {
    pub(super) fn open(&self, call: u64) -> mpsc::Receiver<InboxEvent> {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        self.calls.lock().insert(call, sender);
        receiver
    }

    pub(super) fn close(&self, call: u64) {
        self.calls.lock().remove(&call);
    }

    fn sender(&self, call: u64) -> Option<mpsc::Sender<InboxEvent>> {
        self.calls.lock().get(&call).cloned()
    }

    /// Passes a reply on. Returns the answer to one for a call that has ended.
    fn deliver(&self, subjects: &Subjects, message: &BusMessage) -> Option<LateAnswer> {
        let (call, number) = subjects.parse_inbox(&message.subject)?;
        let sender = self.sender(call);
        let event = if message.is_undeliverable {
            InboxEvent::Undeliverable(number)
        } else {
            match frame::decode(&message.payload) {
                Ok((header, body)) => InboxEvent::Message(number, header, body),
                Err(error) => {
                    tracing::warn!(%error, "a worker sent an invalid message");
                    return None;
                }
            }
        };
        match (sender, event) {
            (Some(sender), event) => {
                if sender.try_send(event).is_err() {
                    tracing::debug!("a call receives messages faster than it reads them");
                }
                None
            }
            // The offer occupies a permit of the worker, which may even run the call.
            (None, InboxEvent::Message(_, WorkerMessage::Accepted { offer, worker }, _)) => {
                let worker = NodeName::new(worker).ok()?;
                Some(LateAnswer { worker, reply: None, message: GatewayMessage::Cancel { offer } })
            }
            // The worker was lost and is back, and did not receive that the call is canceled.
            (None, InboxEvent::Message(_, WorkerMessage::Alive { offer }, _)) => {
                let (worker, number) = subjects.parse_unheard(message.reply.as_deref()?)?;
                (number == offer).then(|| LateAnswer {
                    worker,
                    reply: Some(message.subject.clone()),
                    message: GatewayMessage::Abandoned { offer },
                })
            }
            (None, _) => None,
        }
    }
}

/// Answer to a worker whose call has ended at this gateway.
struct LateAnswer {
    worker: NodeName,
    /// Subject for replies, which names the call.
    reply: Option<String>,
    message: GatewayMessage,
}

/// Receives announcements of workers until the bus ends, and passes them on.
pub(super) async fn receive_changes(mut announcements: Box<dyn Subscription>, changed: &Notify) {
    while let Some(message) = announcements.next().await {
        if let Ok((WorkerMessage::Changed {}, _)) = frame::decode(&message.payload) {
            changed.notify_one();
        }
    }
}

/// Receives replies until the bus ends. Then all calls end as well.
pub(super) async fn receive(
    bus: Arc<dyn Bus>,
    mut replies: Box<dyn Subscription>,
    subjects: Subjects,
    inbox: Arc<Inbox>,
) {
    while let Some(message) = replies.next().await {
        if let Some(LateAnswer { worker, reply, message }) = inbox.deliver(&subjects, &message) {
            let (subject, answer) = (subjects.worker(&worker), frame::encode(&message, b""));
            let _ = bus.publish(&subject, reply.as_deref(), answer).await;
        }
    }
    inbox.calls.lock().clear();
}
