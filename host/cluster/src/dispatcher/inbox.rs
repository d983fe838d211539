//! Distributes replies to the running calls of a gateway.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

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
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(call, sender);
        receiver
    }

    pub(super) fn close(&self, call: u64) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&call);
    }

    fn sender(&self, call: u64) -> Option<mpsc::Sender<InboxEvent>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned()
    }

    /// Passes a reply on. Returns an offer for a call that has ended.
    fn deliver(&self, subjects: &Subjects, message: &BusMessage) -> Option<UnusedOffer> {
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
            (None, InboxEvent::Message(_, WorkerMessage::Accepted { offer, worker }, _)) => {
                Some(UnusedOffer { worker: NodeName::new(worker).ok()?, offer })
            }
            (None, _) => None,
        }
    }
}

/// Offer for a call that has ended. It occupies a permit of the worker, which may even run it.
struct UnusedOffer {
    worker: NodeName,
    offer: u64,
}

/// Receives replies until the bus ends. Then all calls end as well.
pub(super) async fn receive(
    bus: Arc<dyn Bus>,
    mut replies: Box<dyn Subscription>,
    subjects: Subjects,
    inbox: Arc<Inbox>,
) {
    while let Some(message) = replies.next().await {
        if let Some(UnusedOffer { worker, offer }) = inbox.deliver(&subjects, &message) {
            let cancel = frame::encode(&GatewayMessage::Cancel { offer }, b"");
            let _ = bus.publish(&subjects.worker(&worker), None, cancel).await;
        }
    }
    inbox.calls.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
