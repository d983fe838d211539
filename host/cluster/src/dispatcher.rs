//! Gateway side: finds the tools of workers and calls them.
//!
//! A gateway keeps no state but its running calls. Its inbox is one subscription; each call has a
//! number, and each message that expects a reply too, so that replies to earlier messages are told
//! apart.

mod call;
mod inbox;
mod source;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use cofferdam_tool::ToolSource;
use tokio::time::Instant;

use self::call::PendingCall;
use self::inbox::{Inbox, InboxEvent};
use self::source::RemoteSource;
use crate::bus::{Bus, BusError};
use crate::catalog::SourceEntry;
use crate::frame;
use crate::message::{GatewayMessage, WorkerMessage};
use crate::subject::{NodeName, Subjects, Tenant};
use crate::{CallTiming, ClusterError};

/// Maximum number of sources of all workers together.
const SOURCES_MAX: usize = 10_000;

/// Finds and calls the tools of workers.
pub struct Dispatcher {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    name: NodeName,
    timing: CallTiming,
    inbox: Arc<Inbox>,
    calls: AtomicU64,
}

/// One version of a source.
struct VersionFound {
    route: String,
    entry: SourceEntry,
    /// Number of workers that have it.
    workers: usize,
}

impl Dispatcher {
    /// Starts a gateway with a random name.
    ///
    /// # Errors
    /// If the bus cannot be subscribed to.
    pub async fn start(bus: Arc<dyn Bus>, tenant: Tenant) -> Result<Arc<Self>, ClusterError> {
        Self::start_as(bus, tenant, NodeName::random(), CallTiming::default()).await
    }

    /// Starts a gateway with a name that no other gateway has had, and its own waiting times.
    ///
    /// # Errors
    /// If the bus cannot be subscribed to.
    pub async fn start_as(
        bus: Arc<dyn Bus>,
        tenant: Tenant,
        name: NodeName,
        timing: CallTiming,
    ) -> Result<Arc<Self>, ClusterError> {
        let subjects = Subjects::new(&tenant);
        let replies = bus.subscribe(&subjects.inboxes(&name), None).await?;
        let inbox = Arc::new(Inbox::default());
        bus.spawn(Box::pin(inbox::receive(replies, subjects.clone(), Arc::clone(&inbox))));
        Ok(Arc::new(Self { bus, subjects, name, timing, inbox, calls: AtomicU64::new(0) }))
    }

    /// Returns a source for each source of tools that workers have at present. Of two versions of a
    /// source, the one that more workers have is returned.
    ///
    /// # Errors
    /// [`ClusterError::NoWorkers`] if no worker answers.
    pub async fn discover(self: &Arc<Self>) -> Result<Vec<Arc<dyn ToolSource>>, ClusterError> {
        let mut pending = self.pending();
        pending.publish(&self.subjects.catalog(), &GatewayMessage::List {}, b"").await?;
        let mut found: BTreeMap<String, (SourceEntry, usize)> = BTreeMap::new();
        let until = Instant::now() + self.timing.catalog_wait;
        while let Ok(Some(event)) = tokio::time::timeout_at(until, pending.next()).await {
            let InboxEvent::Message(_, WorkerMessage::Source { .. }, body) = event else {
                return Err(ClusterError::NoWorkers);
            };
            match SourceEntry::read(&body) {
                Ok(entry) if found.len() < SOURCES_MAX => {
                    found.entry(entry.route()).or_insert((entry, 0)).1 += 1;
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a worker sent an invalid catalog"),
            }
        }
        if found.is_empty() {
            return Err(ClusterError::NoWorkers);
        }
        Ok(self.sources(found))
    }

    fn sources(
        self: &Arc<Self>,
        found: BTreeMap<String, (SourceEntry, usize)>,
    ) -> Vec<Arc<dyn ToolSource>> {
        let mut by_name: BTreeMap<String, VersionFound> = BTreeMap::new();
        for (route, (entry, workers)) in found {
            let others = by_name.get(&entry.name).map_or(0, |other| other.workers);
            if workers > others {
                by_name.insert(entry.name.clone(), VersionFound { route, entry, workers });
            }
        }
        let source = |found: VersionFound| {
            let source = RemoteSource::new(Arc::clone(self), &found.route, found.entry);
            Arc::new(source) as Arc<dyn ToolSource>
        };
        by_name.into_values().map(source).collect()
    }

    fn pending(self: &Arc<Self>) -> PendingCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        PendingCall::new(Arc::clone(self), number)
    }

    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        message: &GatewayMessage,
        body: &[u8],
    ) -> Result<(), BusError> {
        let frame: Bytes = frame::encode(message, body);
        let (bytes, bytes_max) = (frame.len(), self.bus.message_bytes_max());
        if bytes > bytes_max {
            return Err(BusError::TooLarge { bytes, bytes_max });
        }
        self.bus.publish(subject, reply, frame).await
    }
}
