//! Simulated bus with faults.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_cluster::bus::{Bus, BusError, BusMessage, BusState, Subscription};
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::scenario::Faults;

/// Usual delay of a message.
const DELAY_MAX: Duration = Duration::from_millis(2);
/// Longest time for which a bus takes a dead node for alive.
const NOTICED_MAX: Duration = Duration::from_secs(3);

/// Generator of random numbers (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % bound.max(1)
    }

    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    pub(crate) fn time(&mut self, max: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(max.as_micros()).unwrap()))
    }
}

pub(crate) struct Network {
    faults: Faults,
    state: Mutex<NetworkState>,
}

struct NetworkState {
    random: Random,
    subscriptions: BTreeMap<u64, Entry>,
    /// Subscriptions of exactly one subject.
    exact: BTreeMap<String, BTreeSet<u64>>,
    /// Subscriptions of all subjects with a prefix.
    prefixes: BTreeSet<u64>,
    next: u64,
    nodes: BTreeMap<u64, Node>,
    /// Number of messages that were sent.
    sent: u64,
}

struct Entry {
    node: u64,
    pattern: String,
    group: Option<String>,
    sender: mpsc::UnboundedSender<BusMessage>,
}

#[derive(Default)]
struct Node {
    is_dead: bool,
    is_paused: bool,
    /// Messages that wait for the connection, while it is lost.
    waiting: Option<Vec<WaitingMessage>>,
    paused: Vec<Waker>,
    /// Number of messages after which the node dies.
    messages_left: Option<u64>,
}

struct WaitingMessage {
    subject: String,
    reply: Option<String>,
    payload: Bytes,
}

impl Network {
    pub(crate) fn new(seed: u64, faults: Faults) -> Arc<Self> {
        let state = NetworkState {
            random: Random(seed),
            subscriptions: BTreeMap::new(),
            exact: BTreeMap::new(),
            prefixes: BTreeSet::new(),
            next: 0,
            nodes: BTreeMap::new(),
            sent: 0,
        };
        Arc::new(Self { faults, state: Mutex::new(state) })
    }

    /// Connects a new node.
    pub(crate) fn connect(self: &Arc<Self>, node: u64) -> Arc<SimulatedBus> {
        self.lock().nodes.insert(node, Node::default());
        Arc::new(SimulatedBus { network: Arc::clone(self), node })
    }

    fn lock(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap()
    }

    pub(crate) fn is_dead(&self, node: u64) -> bool {
        self.lock().nodes[&node].is_dead
    }

    /// Lets a node die after it has sent some more messages.
    pub(crate) fn kill_after(&self, node: u64, messages: u64) {
        self.lock().nodes.get_mut(&node).unwrap().messages_left = Some(messages);
    }

    /// Ends a node without a trace: its tasks stop, and the bus notices later.
    pub(crate) fn kill(self: &Arc<Self>, node: u64) {
        let noticed = {
            let mut state = self.lock();
            state.nodes.get_mut(&node).unwrap().is_dead = true;
            state.random.time(NOTICED_MAX)
        };
        let network = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(noticed).await;
            let mut state = network.lock();
            let of_node = state.subscriptions.iter().filter(|(_, entry)| entry.node == node);
            let numbers: Vec<u64> = of_node.map(|(number, _)| *number).collect();
            numbers.into_iter().for_each(|number| state.unsubscribe(number));
        });
    }

    /// Ends the connection of a node: messages to it are lost, or have no subscription, and messages
    /// of it wait.
    pub(crate) fn cut(&self, node: u64) {
        self.lock().nodes.get_mut(&node).unwrap().waiting.get_or_insert_default();
    }

    /// Restores the connection of a node.
    pub(crate) fn reconnect(self: &Arc<Self>, node: u64) {
        let waiting = self.lock().nodes.get_mut(&node).unwrap().waiting.take();
        for WaitingMessage { subject, reply, payload } in waiting.into_iter().flatten() {
            self.send(node, &subject, reply.as_deref(), payload);
        }
    }

    fn is_cut(&self, node: u64) -> bool {
        self.lock().nodes[&node].waiting.is_some()
    }

    /// Returns the number of messages that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.lock().sent
    }

    pub(crate) fn pause(&self, node: u64) {
        self.lock().nodes.get_mut(&node).unwrap().is_paused = true;
    }

    pub(crate) fn resume(&self, node: u64) {
        let paused = {
            let mut state = self.lock();
            let node = state.nodes.get_mut(&node).unwrap();
            node.is_paused = false;
            std::mem::take(&mut node.paused)
        };
        paused.into_iter().for_each(Waker::wake);
    }

    fn send(self: &Arc<Self>, node: u64, subject: &str, reply: Option<&str>, payload: Bytes) {
        let mut deliveries = Vec::new();
        let mut dies = false;
        {
            let mut state = self.lock();
            let sender = state.nodes.get_mut(&node).unwrap();
            if sender.is_dead {
                return;
            }
            if let Some(waiting) = &mut sender.waiting {
                let (subject, reply) = (subject.to_owned(), reply.map(str::to_owned));
                return waiting.push(WaitingMessage { subject, reply, payload });
            }
            match &mut sender.messages_left {
                Some(0) => dies = true,
                Some(left) => *left -= 1,
                None => {}
            }
            state.sent += 1;
            let message = |subject: &str, is_undeliverable: bool| BusMessage {
                subject: subject.to_owned(),
                reply: reply.filter(|_| !is_undeliverable).map(str::to_owned),
                payload: if is_undeliverable { Bytes::new() } else { payload.clone() },
                is_undeliverable,
            };
            let mut found: Vec<_> =
                state.route(subject).into_iter().map(|to| (to, message(subject, false))).collect();
            if found.is_empty()
                && let Some(reply) = reply
            {
                found =
                    state.route(reply).into_iter().map(|to| (to, message(reply, true))).collect();
            }
            for (to, message) in found {
                for delay in state.delays(&self.faults) {
                    deliveries.push((to, message.clone(), delay));
                }
            }
        }
        for (to, message, delay) in deliveries {
            let network = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let state = network.lock();
                let entry = state.subscriptions.get(&to);
                if let Some(entry) = entry.filter(|entry| state.is_connected(entry)) {
                    let _ = entry.sender.send(message);
                }
            });
        }
        if dies {
            self.kill(node);
        }
    }
}

impl NetworkState {
    fn subscribe(&mut self, entry: Entry) -> u64 {
        let number = self.next;
        self.next += 1;
        match entry.pattern.ends_with('>') {
            true => self.prefixes.insert(number),
            false => self.exact.entry(entry.pattern.clone()).or_default().insert(number),
        };
        self.subscriptions.insert(number, entry);
        number
    }

    fn unsubscribe(&mut self, number: u64) {
        let Some(entry) = self.subscriptions.remove(&number) else { return };
        self.prefixes.remove(&number);
        if let Some(numbers) = self.exact.get_mut(&entry.pattern) {
            numbers.remove(&number);
        }
    }

    /// Returns the subscriptions that get a message: all without a group, and one of each group.
    fn route(&mut self, subject: &str) -> Vec<u64> {
        let mut found = Vec::new();
        let mut groups: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let has_prefix = |number: &&u64| {
            let pattern = self.subscriptions[*number].pattern.trim_end_matches('>');
            subject.starts_with(pattern)
        };
        let exact = self.exact.get(subject).into_iter().flatten();
        for number in exact.chain(self.prefixes.iter().filter(has_prefix)) {
            let entry = &self.subscriptions[number];
            match &entry.group {
                _ if !self.is_connected(entry) => {}
                Some(group) => groups.entry(group).or_default().push(*number),
                None => found.push(*number),
            }
        }
        for members in groups.into_values() {
            let chosen = self.random.below(members.len() as u64);
            found.push(members[chosen as usize]);
        }
        found
    }

    fn is_connected(&self, entry: &Entry) -> bool {
        self.nodes[&entry.node].waiting.is_none()
    }

    /// Returns the delay of each delivery of a message: none if it is lost.
    fn delays(&mut self, faults: &Faults) -> Vec<Duration> {
        if self.random.percent(faults.lost) {
            return Vec::new();
        }
        let copies = if self.random.percent(faults.doubled) { 2 } else { 1 };
        let mut delay = || {
            let max = if self.random.percent(faults.late) { faults.late_max } else { DELAY_MAX };
            self.random.time(max)
        };
        (0..copies).map(|_| delay()).collect()
    }
}

/// Connection of a node.
pub(crate) struct SimulatedBus {
    network: Arc<Network>,
    node: u64,
}

#[async_trait]
impl Bus for SimulatedBus {
    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        payload: Bytes,
    ) -> Result<(), BusError> {
        self.network.send(self.node, subject, reply, payload);
        Ok(())
    }

    async fn subscribe(
        &self,
        subject: &str,
        group: Option<&str>,
    ) -> Result<Box<dyn Subscription>, BusError> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let entry = Entry {
            node: self.node,
            pattern: subject.to_owned(),
            group: group.map(str::to_owned),
            sender,
        };
        let number = self.network.lock().subscribe(entry);
        let network = Arc::clone(&self.network);
        Ok(Box::new(SimulatedSubscription { network, number, receiver }))
    }

    async fn flush(&self) -> Result<(), BusError> {
        while self.network.is_cut(self.node) {
            tokio::time::sleep(DELAY_MAX).await;
        }
        Ok(())
    }

    fn message_bytes_max(&self) -> usize {
        1024 * 1024
    }

    fn state(&self) -> BusState {
        match self.network.is_dead(self.node) || self.network.is_cut(self.node) {
            true => BusState::Disconnected,
            false => BusState::Connected,
        }
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if !self.network.is_dead(self.node) {
            let network = Arc::clone(&self.network);
            tokio::spawn(NodeTask { network, node: self.node, task });
        }
    }
}

struct SimulatedSubscription {
    network: Arc<Network>,
    number: u64,
    receiver: mpsc::UnboundedReceiver<BusMessage>,
}

#[async_trait]
impl Subscription for SimulatedSubscription {
    async fn next(&mut self) -> Option<BusMessage> {
        self.receiver.recv().await
    }

    async fn close(&mut self) {
        self.network.lock().unsubscribe(self.number);
    }
}

impl Drop for SimulatedSubscription {
    fn drop(&mut self) {
        self.network.lock().unsubscribe(self.number);
    }
}

/// Task that pauses and ends with its node.
struct NodeTask {
    network: Arc<Network>,
    node: u64,
    task: BoxFuture<'static, ()>,
}

impl Future for NodeTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        {
            let mut state = self.network.lock();
            let node = state.nodes.get_mut(&self.node).unwrap();
            if node.is_dead {
                return Poll::Ready(());
            }
            if node.is_paused {
                node.paused.push(context.waker().clone());
                return Poll::Pending;
            }
        }
        self.task.as_mut().poll(context)
    }
}
