//! Gateway side: finds the tools of workers and calls them.
//!
//! A gateway keeps no state but its running calls. Its inbox is one subscription; each call has a
//! number, and each message that expects a reply too, so that replies to earlier messages can be
//! distinguished.

mod call;
mod inbox;
mod inner;
mod keyed;
mod lines;
mod placement;
mod questions;
mod resumed;
mod returning;
mod shared;
mod source;
mod wait;

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use cofferdam_tool::ToolSource as _;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::call::{PendingCall, WorkerOffer};
use self::inbox::{Inbox, InboxEvent};
use self::lines::WaitingLines;
pub use self::resumed::ResumedCall;
use self::returning::AskingWorkers;
pub use self::source::RemoteSource;
use crate::bus::{Bus, BusError};
use crate::catalog::{self, SourceEntry};
use crate::frame;
use crate::keyed::{KeyedResults, MemoryResults, StoreUnavailable, value_entry};
use crate::message::{GatewayMessage, WorkerMessage};
use crate::subject::{NodeName, Subjects, Tenant};
use crate::{CallTiming, ClusterError};

/// Number of routes of all workers together after which further ones are ignored.
const ROUTES_MAX: usize = 10_000;

/// Number of sources that workers are asked to describe at the same time.
const DESCRIPTIONS_MAX: usize = 32;
/// Maximum time to find all tools, as a multiple of the time to wait for the catalogs of workers.
const DESCRIPTION_WAITS_MAX: u32 = 10;

/// Options of a [`Dispatcher`].
#[derive(Clone)]
pub struct DispatcherOptions {
    /// Tenant whose workers are called.
    pub tenant: Tenant,
    /// Name that no other gateway has had.
    pub name: NodeName,
    /// Waiting times.
    pub timing: CallTiming,
    /// Results of calls with idempotency keys.
    pub results: Arc<dyn KeyedResults>,
}

impl Default for DispatcherOptions {
    /// Returns options with a random name, and results in the memory of this gateway.
    fn default() -> Self {
        Self {
            tenant: Tenant::default(),
            name: NodeName::random(),
            timing: CallTiming::default(),
            results: Arc::new(MemoryResults::default()),
        }
    }
}

/// Version of a source that workers have.
#[derive(Clone)]
pub struct SourceVersion {
    /// The source in this version.
    pub source: Arc<RemoteSource>,
    /// Number of workers that have it.
    pub workers: usize,
}

/// Finds and calls the tools of workers.
pub struct Dispatcher {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    options: DispatcherOptions,
    inbox: Arc<Inbox>,
    calls: AtomicU64,
    asking_workers: AskingWorkers,
    /// Calls that wait for a worker.
    lines: WaitingLines,
    /// Number of workers by route, when they were listed last.
    workers: Mutex<BTreeMap<String, usize>>,
    /// Notified when a worker announces that its tools have changed.
    changed: Arc<Notify>,
    /// Sources in use by route, which workers have described.
    known: Mutex<BTreeMap<String, Weak<RemoteSource>>>,
    /// Ends the inbox with the dispatcher.
    _stop: DropGuard,
}

impl Dispatcher {
    /// Starts a gateway.
    ///
    /// # Errors
    /// If the bus cannot be subscribed to.
    pub async fn start(
        bus: Arc<dyn Bus>,
        options: DispatcherOptions,
    ) -> Result<Arc<Self>, ClusterError> {
        let subjects = Subjects::new(&options.tenant);
        let replies = bus.subscribe(&subjects.inboxes(&options.name), None).await?;
        let inbox = Arc::new(Inbox::default());
        let announcements = bus.subscribe(&subjects.all_gateways(), None).await?;
        let changed = Arc::new(Notify::new());
        let stop = CancellationToken::new();
        let receiving =
            inbox::receive(Arc::clone(&bus), replies, subjects.clone(), Arc::clone(&inbox));
        let (stopped, noticed) = (stop.clone(), Arc::clone(&changed));
        bus.spawn(Box::pin(async move {
            let noticing = inbox::receive_changes(announcements, &noticed);
            stopped.run_until_cancelled(async { tokio::join!(receiving, noticing) }).await;
        }));
        Ok(Arc::new(Self {
            bus,
            subjects,
            options,
            inbox,
            calls: AtomicU64::new(0),
            asking_workers: AskingWorkers::default(),
            lines: WaitingLines::default(),
            workers: Mutex::default(),
            changed,
            known: Mutex::default(),
            _stop: stop.drop_guard(),
        }))
    }

    /// Returns the sources of tools that workers have at present. Of several versions of a source,
    /// the one that most workers have is returned.
    ///
    /// # Errors
    /// [`ClusterError::NoWorkers`] if no worker answers.
    pub async fn discover(self: &Arc<Self>) -> Result<Vec<Arc<RemoteSource>>, ClusterError> {
        let mut by_name: BTreeMap<String, SourceVersion> = BTreeMap::new();
        for version in self.versions().await? {
            let others = by_name.get(version.source.name()).map_or(0, |other| other.workers);
            if version.workers > others {
                by_name.insert(version.source.name().to_owned(), version);
            }
        }
        Ok(by_name.into_values().map(|version| version.source).collect())
    }

    /// Returns all versions of all sources that workers have at present. Of more than workers can
    /// describe in ten times [`CallTiming::catalog_wait`], those of fewer workers are left out.
    ///
    /// # Errors
    /// Like [`discover`](Self::discover).
    pub async fn versions(self: &Arc<Self>) -> Result<Vec<SourceVersion>, ClusterError> {
        let until = Instant::now() + self.options.timing.catalog_wait * DESCRIPTION_WAITS_MAX;
        let mut listed: Vec<_> = self.list().await?.into_iter().collect();
        // If there are too many, those of most workers come first.
        listed.sort_by_key(|(_, workers)| Reverse(*workers));
        let describing = listed.into_iter().map(|(route, workers)| async move {
            let source = self.describe(&route).await?;
            Ok::<_, ClusterError>(source.map(|source| SourceVersion { source, workers }))
        });
        let mut described = stream::iter(describing).buffered(DESCRIPTIONS_MAX);
        let mut versions = Vec::new();
        loop {
            match tokio::time::timeout_at(until, described.next()).await {
                Ok(Some(version)) => versions.extend(version?),
                Ok(None) => break,
                Err(_) => {
                    tracing::warn!("workers have not described all of their sources in time");
                    break;
                }
            }
        }
        if versions.is_empty() {
            return Err(ClusterError::NoWorkers);
        }
        versions.sort_by(|version, other| version.source.version().cmp(other.source.version()));
        self.known.lock().retain(|_, source| source.strong_count() > 0);
        Ok(versions)
    }

    /// Waits until a worker announces other tools, or its end. Such a message can be lost, so
    /// callers also look for tools from time to time.
    pub async fn workers_changed(&self) {
        self.changed.notified().await;
    }

    /// Returns the number of workers that have each route.
    async fn list(self: &Arc<Self>) -> Result<BTreeMap<String, usize>, ClusterError> {
        let mut pending = self.pending(CancellationToken::new());
        pending.publish(&self.subjects.catalog(), &GatewayMessage::List {}, b"").await?;
        let mut workers_by_route = BTreeMap::new();
        let until = Instant::now() + self.options.timing.catalog_wait;
        while let Ok(Some(event)) = tokio::time::timeout_at(until, pending.next()).await {
            let body = match event {
                InboxEvent::Undeliverable(_) => return Err(ClusterError::NoWorkers),
                InboxEvent::Message(_, WorkerMessage::Routes {}, body) => body,
                InboxEvent::Message(..) => continue,
            };
            match catalog::read_routes(&body) {
                Ok(routes) => count_routes(&mut workers_by_route, routes),
                Err(error) => tracing::warn!(%error, "a worker sent invalid routes"),
            }
        }
        let mut workers = self.workers.lock();
        workers.clone_from(&workers_by_route);
        Ok(workers_by_route)
    }

    /// Returns the number of workers that had a route when they were listed last.
    fn workers(&self, route: &str) -> usize {
        let workers = self.workers.lock();
        workers.get(route).copied().unwrap_or_default()
    }

    /// Returns the source of a route; `None` if no worker describes it.
    async fn describe(
        self: &Arc<Self>,
        route: &str,
    ) -> Result<Option<Arc<RemoteSource>>, ClusterError> {
        if let Some(known) = self.known.lock().get(route).and_then(Weak::upgrade) {
            return Ok(Some(known));
        }
        let mut pending = self.pending(CancellationToken::new());
        pending.publish(&self.subjects.route(route), &GatewayMessage::Describe {}, b"").await?;
        let replied = tokio::time::timeout(self.options.timing.catalog_wait, pending.next()).await;
        let Ok(Some(InboxEvent::Message(_, WorkerMessage::Source {}, body))) = replied else {
            return Ok(None);
        };
        // The route is a digest of the entry, so that a worker describes no source but its own.
        match SourceEntry::read(&body).map(|entry| (entry.route() == route, entry)) {
            Ok((true, entry)) => {
                let source = Arc::new(RemoteSource::new(Arc::clone(self), route, entry));
                self.known.lock().insert(route.to_owned(), Arc::downgrade(&source));
                Ok(Some(source))
            }
            Ok((false, _)) => {
                tracing::warn!(route, "a worker described a source of another route");
                Ok(None)
            }
            Err(error) => {
                tracing::warn!(route, %error, "a worker sent an invalid description");
                Ok(None)
            }
        }
    }

    /// Returns a value that gateways share, from the store of results.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn read_shared(&self, name: &str) -> Result<Option<Bytes>, StoreUnavailable> {
        let entry = self.options.results.read(&value_entry(name)).await?;
        Ok(entry.map(|entry| entry.value).filter(|value| !value.is_empty()))
    }

    /// Writes a value that gateways share. An empty one removes it.
    ///
    /// # Errors
    /// If the store does not answer, or another gateway changes the value at the same time.
    pub async fn write_shared(&self, name: &str, value: Bytes) -> Result<(), StoreUnavailable> {
        let (results, name) = (&self.options.results, value_entry(name));
        let entry = results.read(&name).await?;
        let revision = entry.map(|entry| entry.revision);
        match results.write(&name, revision, value).await? {
            Some(_) => Ok(()),
            None => Err(StoreUnavailable(
                "another gateway changed the value at the same time; try again".to_owned(),
            )),
        }
    }

    fn pending(self: &Arc<Self>, cancellation: CancellationToken) -> PendingCall {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        PendingCall::new(Arc::clone(self), number, cancellation)
    }

    /// Tells a worker that no gateway waits for a call.
    async fn cancel(&self, worker: &NodeName, offer: u64) {
        let subject = self.subjects.worker(worker);
        let _ = self.publish(&subject, None, &GatewayMessage::Cancel { offer }, b"").await;
    }

    /// Tells a worker that it may forget the result of a call.
    async fn acknowledge(&self, offer: &WorkerOffer) {
        let subject = self.subjects.worker(&offer.worker);
        let message = GatewayMessage::Received { offer: offer.number };
        let _ = self.publish(&subject, None, &message, b"").await;
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

/// Counts the routes of one worker, up to a number of different routes.
fn count_routes(workers_by_route: &mut BTreeMap<String, usize>, routes: Vec<String>) {
    for route in routes.into_iter().collect::<BTreeSet<_>>() {
        let is_full = workers_by_route.len() >= ROUTES_MAX;
        match workers_by_route.entry(route) {
            Entry::Vacant(_) if is_full => {}
            entry => *entry.or_default() += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_counted_once_per_worker_and_up_to_a_limit() {
        let routes = |from: usize, to: usize| (from..to).map(|route| format!("{route:05}"));
        let mut counted = BTreeMap::new();
        count_routes(&mut counted, routes(0, ROUTES_MAX - 1).collect());
        count_routes(&mut counted, routes(0, ROUTES_MAX + 5).chain(routes(0, 1)).collect());
        assert_eq!(counted.len(), ROUTES_MAX);
        assert_eq!(counted.get("00000"), Some(&2));
    }
}
