//! Bus within the process that delivers each message at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_cluster::Bus;
use cofferdam_cluster::bus::{BusError, BusMessage, BusState, Subscription};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Maximum size of a message.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Sender of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Gateway,
    Worker,
    Input,
}

#[derive(Default)]
pub(super) struct Network(Mutex<State>);

#[derive(Default)]
struct State {
    subscriptions: BTreeMap<u64, Entry>,
    next: u64,
    /// True while messages of the gateway are lost.
    is_held: bool,
    /// Number of messages that confirm an offer.
    confirmed: usize,
    tasks: Vec<JoinHandle<()>>,
}

struct Entry {
    pattern: String,
    group: Option<String>,
    sender: mpsc::UnboundedSender<BusMessage>,
}

struct Connection {
    network: Arc<Network>,
    node: Node,
}

struct Messages {
    network: Arc<Network>,
    number: u64,
    receiver: mpsc::UnboundedReceiver<BusMessage>,
}

impl Network {
    pub(super) fn connect(self: &Arc<Self>, node: Node) -> Arc<dyn Bus> {
        Arc::new(Connection { network: Arc::clone(self), node })
    }

    /// Loses the messages of the gateway, or delivers them again.
    pub(super) fn hold(&self, is_held: bool) {
        self.lock().is_held = is_held;
    }

    /// Returns the number of messages so far that confirm an offer.
    pub(super) fn confirmed(&self) -> usize {
        self.lock().confirmed
    }

    /// Checks that no task has panicked.
    pub(super) async fn check_tasks(&self) {
        let tasks = std::mem::take(&mut self.lock().tasks);
        for task in tasks.into_iter().filter(JoinHandle::is_finished) {
            task.await.expect("a task of a gateway or worker panics");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Delivers a message. Returns false if there is no subscription.
    fn deliver(&self, message: &BusMessage) -> bool {
        let mut groups = Vec::new();
        let mut is_delivered = false;
        for entry in self.subscriptions.values() {
            let is_match = match entry.pattern.strip_suffix('>') {
                Some(prefix) => message.subject.starts_with(prefix),
                None => message.subject == entry.pattern,
            };
            if is_match && !entry.group.as_ref().is_some_and(|group| groups.contains(&group)) {
                groups.extend(&entry.group);
                is_delivered |= entry.sender.send(message.clone()).is_ok();
            }
        }
        is_delivered
    }
}

#[async_trait]
impl Bus for Connection {
    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        payload: Bytes,
    ) -> Result<(), BusError> {
        let bytes = payload.len();
        if bytes > MESSAGE_BYTES_MAX {
            return Err(BusError::TooLarge { bytes, bytes_max: MESSAGE_BYTES_MAX });
        }
        let mut state = self.network.lock();
        if state.is_held && self.node == Node::Gateway {
            return Ok(());
        }
        let is_start = |part: &[u8]| part == br#""start""#;
        state.confirmed += usize::from(payload.windows(br#""start""#.len()).any(is_start));
        let message = BusMessage {
            subject: subject.to_owned(),
            reply: reply.map(str::to_owned),
            payload,
            is_undeliverable: false,
        };
        if let (false, Some(reply)) = (state.deliver(&message), reply) {
            let subject = reply.to_owned();
            let payload = Bytes::new();
            state.deliver(&BusMessage { subject, reply: None, payload, is_undeliverable: true });
        }
        Ok(())
    }

    async fn subscribe(
        &self,
        subject: &str,
        group: Option<&str>,
    ) -> Result<Box<dyn Subscription>, BusError> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = self.network.lock();
        let number = state.next;
        state.next += 1;
        let (pattern, group) = (subject.to_owned(), group.map(str::to_owned));
        state.subscriptions.insert(number, Entry { pattern, group, sender });
        Ok(Box::new(Messages { network: Arc::clone(&self.network), number, receiver }))
    }

    async fn flush(&self) -> Result<(), BusError> {
        Ok(())
    }

    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn state(&self) -> BusState {
        BusState::Connected
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.network.lock().tasks.push(tokio::spawn(task));
    }
}

#[async_trait]
impl Subscription for Messages {
    async fn next(&mut self) -> Option<BusMessage> {
        self.receiver.recv().await
    }

    async fn close(&mut self) {
        self.network.lock().subscriptions.remove(&self.number);
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.network.lock().subscriptions.remove(&self.number);
    }
}
