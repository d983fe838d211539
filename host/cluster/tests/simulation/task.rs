//! A call that becomes a task: its client polls any gateway, and gateways take it over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_cluster::{Bus, Dispatcher};
use cofferdam_tool::handover::Handover;
use cofferdam_tool::{CallContext, Completion, Toolset};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::history::End;
use super::network::{Network, Random, SimulatedBus};
use super::scenario::{SharedHistory, end};

/// Session of all clients.
pub(crate) const SESSION: &str = "client";
/// Longest pause between two polls.
const POLL_MAX: Duration = Duration::from_millis(1500);
/// Time after which a client takes its first gateway for lost.
const FIRST_GATEWAY_WAIT: Duration = Duration::from_secs(20);
/// Time that a client polls.
const POLLING_MAX: Duration = Duration::from_secs(90);

/// Gateways by node, once they have started.
#[derive(Clone, Default)]
pub(crate) struct Gateways(Arc<Mutex<BTreeMap<u64, Gateway>>>);

type Gateway = (Arc<Dispatcher>, Arc<SimulatedBus>);

impl Gateways {
    pub(crate) fn add(&self, node: u64, dispatcher: Arc<Dispatcher>, bus: Arc<SimulatedBus>) {
        self.0.lock().unwrap().insert(node, (dispatcher, bus));
    }

    fn get(&self, node: u64) -> Option<Gateway> {
        self.0.lock().unwrap().get(&node).cloned()
    }

    fn nodes(&self) -> Vec<u64> {
        self.0.lock().unwrap().keys().copied().collect()
    }
}

/// Client of one call.
pub(crate) struct TaskClient {
    pub(crate) id: String,
    pub(crate) first: u64,
    pub(crate) gateways: Gateways,
    pub(crate) network: Arc<Network>,
    pub(crate) history: SharedHistory,
    pub(crate) random: Random,
}

/// Message of a gateway about a run of the call in it.
enum Polled {
    /// The call has ended, or moved to another gateway.
    Ended { node: u64, end: End, has_moved: bool },
    /// The store does not know the call.
    Missing,
    /// The store does not answer.
    Failed { node: u64 },
}

impl TaskClient {
    /// Makes the call and polls until it has ended. Runs outside of all nodes.
    pub(crate) async fn run(
        mut self,
        toolset: Toolset,
        tool: &'static str,
        arguments: String,
        context: CallContext,
    ) {
        let (sender, mut polled) = mpsc::unbounded_channel();
        let (shared, mut is_shared) = mpsc::unbounded_channel();
        let handover = Handover::new();
        let context = CallContext {
            session: Some(SESSION.to_owned()),
            handover: Some(Arc::clone(&handover)),
            ..context
        };
        let (_, bus) = self.gateways.get(self.first).unwrap();
        let (first, ended, moved) = (self.first, sender.clone(), Arc::clone(&handover));
        bus.spawn(Box::pin({
            let context = context.clone();
            async move {
                let completion = toolset.call(tool, Some(arguments.as_bytes()), &context).await;
                let end = end(completion.unwrap().outcome);
                let has_moved = moved.has_moved();
                let _ = ended.send(Polled::Ended { node: first, end, has_moved });
            }
        }));
        let (grace, id) = (self.random.time(Duration::from_secs(2)), self.id.clone());
        bus.spawn(Box::pin(async move {
            sleep(grace).await;
            let _ = shared.send(handover.request(id).await);
        }));
        let is_task = tokio::select! {
            biased;
            answer = timeout(FIRST_GATEWAY_WAIT, is_shared.recv()) => answer == Ok(Some(true)),
            Some(Polled::Ended { end, .. }) = polled.recv() => {
                return self.history.lock().unwrap().ended_as(&self.id, end);
            }
        };
        if is_task {
            self.history.lock().unwrap().shared(&self.id);
            self.poll(context, sender, polled).await;
        } else if let Ok(Some(Polled::Ended { end, .. })) =
            timeout(POLLING_MAX, polled.recv()).await
        {
            self.history.lock().unwrap().ended_as(&self.id, end);
        }
    }

    async fn poll(
        &mut self,
        context: CallContext,
        sender: mpsc::UnboundedSender<Polled>,
        mut polled: mpsc::UnboundedReceiver<Polled>,
    ) {
        let give_up = Instant::now() + POLLING_MAX;
        // Gateways that take themselves for the one that has the call.
        let mut having = BTreeSet::from([self.first]);
        while Instant::now() < give_up {
            let pause = self.random.time(POLL_MAX);
            match timeout(pause, polled.recv()).await {
                Ok(Some(Polled::Ended { node, has_moved: true, .. } | Polled::Failed { node })) => {
                    having.remove(&node);
                }
                Ok(Some(Polled::Ended { end, .. })) => {
                    return self.history.lock().unwrap().ended_as(&self.id, end);
                }
                Ok(Some(Polled::Missing)) => {
                    let end = End::Other("the task is lost".to_owned());
                    return self.history.lock().unwrap().ended_as(&self.id, end);
                }
                Ok(None) => return,
                Err(_) => {}
            }
            let nodes = self.gateways.nodes();
            let node = nodes[self.random.below(nodes.len() as u64) as usize];
            if !self.network.is_dead(node) && having.insert(node) {
                self.take_over(node, &context, &sender);
            }
        }
    }

    fn take_over(&self, node: u64, context: &CallContext, sender: &mpsc::UnboundedSender<Polled>) {
        let Some((dispatcher, bus)) = self.gateways.get(node) else { return };
        self.history.lock().unwrap().note(format_args!("{} is polled at {node}", self.id));
        let handover = Handover::new();
        let context = CallContext { handover: Some(Arc::clone(&handover)), ..context.clone() };
        let (id, sender) = (self.id.clone(), sender.clone());
        bus.spawn(Box::pin(async move {
            let answer = match dispatcher.resume(SESSION, &id).await {
                Ok(Some(call)) => {
                    let Completion { outcome, .. } = call.run(&context).await;
                    let has_moved = handover.has_moved();
                    Polled::Ended { node, end: end(outcome), has_moved }
                }
                Ok(None) => Polled::Missing,
                Err(_) => Polled::Failed { node },
            };
            let _ = sender.send(answer);
        }));
    }
}
