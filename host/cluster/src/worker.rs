//! Worker side: offers the tools of a toolset and runs the calls that gateways confirm.
//!
//! A worker never queues a call: it offers to run it at once, or it is busy. An offer that is not
//! confirmed expires. Everything that a call may do is decided here, by the toolset; what a gateway
//! sends names a tool and its arguments.

mod call;
mod callers;
mod inner;
mod monitor;
mod questions;
mod table;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::{ToolName, Toolset};
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::call::StartedCall;
use self::callers::Callers;
pub use self::monitor::{WorkerMonitor, WorkerStatus};
use self::questions::OpenQuestions;
use self::table::{Attachment, CallTable, OfferStatus, OpenOffer};
use crate::bus::{Bus, BusMessage, Subscription};
use crate::catalog::{self, SourceEntry};
use crate::frame::{self, HEADER_BYTES_MAX};
use crate::message::{CallHeader, GatewayMessage, WorkerMessage};
use crate::subject::{NodeName, Subjects, Tenant};
use crate::{CallTiming, ClusterError, result};

/// Queue group of the workers with one route.
const GROUP: &str = "workers";
/// Interval in which a draining worker looks whether its calls have ended and their results were
/// received.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum time to wait for the bus to take messages whose loss costs only time.
const FLUSH_WAIT_MAX: Duration = Duration::from_millis(500);
/// Number of times that a worker looks for expired offers in the life of one.
const EXPIRIES_PER_LIFE: u32 = 4;

/// Options of a [`Worker`].
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Tenant whose gateways see the tools.
    pub tenant: Tenant,
    /// Name that no other worker has had.
    pub name: NodeName,
    /// Maximum number of concurrent calls. To further calls, the worker is busy.
    pub calls_max: usize,
    /// Maximum number of concurrent calls of one caller. To further calls of this caller, the
    /// worker is busy, which leaves permits to others. Gateways name the callers.
    pub caller_calls_max: usize,
    /// Waiting times.
    pub timing: CallTiming,
}

impl Default for WorkerOptions {
    /// Returns options with a random name and as many calls as a server runs at the same time.
    fn default() -> Self {
        Self {
            tenant: Tenant::default(),
            name: NodeName::random(),
            calls_max: 64,
            caller_calls_max: usize::MAX,
            timing: CallTiming::default(),
        }
    }
}

/// A running worker. Clones are the same worker. Dropping it does not end it; [`Worker::drain`]
/// does.
#[derive(Clone)]
pub struct Worker {
    state: Arc<WorkerState>,
    stops: Arc<Stops>,
}

/// End the subscriptions of a worker.
struct Stops {
    /// Ends those for new calls, and `listing`.
    offering: CancellationToken,
    /// Ends that for the question which routes the worker has.
    listing: CancellationToken,
    /// End those for calls of one route each.
    routes: BTreeMap<String, CancellationToken>,
    /// Ends those for messages to this worker.
    all: CancellationToken,
}

impl Stops {
    fn new(catalog: &BTreeMap<String, SourceEntry>) -> Self {
        let offering = CancellationToken::new();
        let routes = catalog.keys().map(|route| (route.clone(), offering.child_token())).collect();
        let (listing, all) = (offering.child_token(), CancellationToken::new());
        Self { offering, listing, routes, all }
    }
}

struct WorkerState {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    options: WorkerOptions,
    toolset: Toolset,
    /// Sources by route.
    catalog: BTreeMap<String, SourceEntry>,
    permits: WorkerPermits,
    calls: CallTable,
    /// True once gateways should no longer list the tools of the worker.
    is_unlisted: AtomicBool,
}

/// Permits for calls, which a worker shares with its successors.
#[derive(Clone)]
struct WorkerPermits {
    calls: Arc<Semaphore>,
    callers: Arc<Callers>,
}

impl Worker {
    /// Starts a worker. When this returns, gateways can call its tools.
    ///
    /// # Errors
    /// If there are no tools, their definitions are too large, or the bus cannot be subscribed to.
    pub async fn start(
        bus: Arc<dyn Bus>,
        toolset: Toolset,
        options: WorkerOptions,
    ) -> Result<Self, ClusterError> {
        let permits = WorkerPermits {
            calls: Arc::new(Semaphore::new(options.calls_max)),
            callers: Callers::new(options.caller_calls_max),
        };
        Self::start_with(bus, toolset, options, permits).await
    }

    /// Starts a worker with other tools. It has another name, and the same permits: both together
    /// run no more calls than one. [`hand_over`](Self::hand_over) then moves new calls to it.
    ///
    /// # Errors
    /// Like [`Worker::start`].
    pub async fn start_successor(&self, toolset: Toolset) -> Result<Self, ClusterError> {
        let options = WorkerOptions { name: NodeName::random(), ..self.state.options.clone() };
        let permits = self.state.permits.clone();
        Self::start_with(Arc::clone(&self.state.bus), toolset, options, permits).await
    }

    async fn start_with(
        bus: Arc<dyn Bus>,
        toolset: Toolset,
        options: WorkerOptions,
        permits: WorkerPermits,
    ) -> Result<Self, ClusterError> {
        let sources = catalog::sources(&toolset);
        let catalog: BTreeMap<_, _> =
            sources.into_iter().map(|entry| (entry.route(), entry)).collect();
        if catalog.is_empty() {
            return Err(ClusterError::NoTools);
        }
        let bytes_max = bus.message_bytes_max();
        for entry in catalog.values() {
            let bytes = entry.to_bytes().len() + HEADER_BYTES_MAX;
            if bytes > bytes_max {
                let name = entry.name.clone();
                return Err(ClusterError::SourceTooLarge { name, bytes, bytes_max });
            }
        }
        let state = Arc::new(WorkerState {
            subjects: Subjects::new(&options.tenant),
            permits,
            calls: CallTable::new(
                &options.name,
                options.timing.retention,
                options.timing.unattended_max,
            ),
            is_unlisted: AtomicBool::new(false),
            bus,
            options,
            toolset,
            catalog,
        });
        let stops = Arc::new(Stops::new(&state.catalog));
        let worker = Self { state, stops };
        // A worker that does not start, or whose start is canceled, does not offer anything.
        let half_started =
            [&worker.stops.offering, &worker.stops.all].map(|stop| stop.clone().drop_guard());
        worker.subscribe().await?;
        worker.expire_offers();
        worker.state.announce().await;
        for stop in half_started {
            stop.disarm();
        }
        Ok(worker)
    }

    /// Returns the name of the worker.
    #[must_use]
    pub fn name(&self) -> &NodeName {
        &self.state.options.name
    }

    /// Returns the number of calls that run or are about to.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.state.calls.active()
    }

    /// Leaves new calls to `successor`. Gateways no longer list the tools of this worker, and calls
    /// of sources that are the same in `successor`, or that it does not have, are not taken any
    /// more. Calls of a version that `successor` has replaced are, because gateways still know that
    /// version. Returns whether there is such a version.
    #[must_use]
    pub fn hand_over(&self, successor: &Self) -> bool {
        self.unlist();
        let others = &successor.state.catalog;
        for (route, stop) in &self.stops.routes {
            let own = self.state.catalog.get(route).map(|entry| &entry.name);
            let is_there = others.values().any(|entry| Some(&entry.name) == own);
            if others.contains_key(route) || !is_there {
                stop.cancel();
            }
        }
        let state = Arc::clone(&self.state);
        self.state.bus.spawn(Box::pin(async move { state.announce().await }));
        self.stops.routes.values().any(|stop| !stop.is_cancelled())
    }

    fn unlist(&self) {
        self.state.is_unlisted.store(true, Ordering::Relaxed);
        self.stops.listing.cancel();
    }

    /// Tells gateways to look for other workers with its tools, or for other versions of them, and
    /// still takes calls until they have.
    async fn leave(&self) {
        if self.state.is_unlisted.load(Ordering::Relaxed) {
            return;
        }
        self.unlist();
        self.state.announce().await;
        tokio::time::sleep(self.state.options.timing.leave_wait).await;
    }

    /// Takes no more calls, and waits until those that run have ended. Gateways send calls that
    /// arrive meanwhile to other workers.
    pub async fn finish_calls(&self) {
        self.state.calls.close();
        self.stops.offering.cancel();
        while self.state.calls.active() > 0 {
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    }

    /// Waits until gateways have acknowledged all results.
    async fn finish_results(&self) {
        while self.state.calls.has_results() {
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    }

    /// Leaves new calls to other workers, waits at most `wait_max` for those that run, and ends
    /// when gateways have received all results, or some seconds later. It still takes calls for
    /// [`CallTiming::leave_wait`], unless it was handed over before.
    pub async fn drain(self, wait_max: Duration) {
        self.leave().await;
        if tokio::time::timeout(wait_max, self.finish_calls()).await.is_err() {
            tracing::warn!(calls = self.state.calls.active(), "calls are canceled");
            self.state.calls.cancel_all();
        }
        // Canceled calls end in a moment, with a result.
        tokio::time::sleep(DRAIN_INTERVAL).await;
        // A gateway asks for a result that was lost on the way, or that went to another gateway.
        let wait_max = self.state.options.timing.lost_after();
        let _ = tokio::time::timeout(wait_max, self.finish_results()).await;
        // A bus that is not connected must not keep the worker from its end.
        let _ = tokio::time::timeout(FLUSH_WAIT_MAX, self.state.bus.flush()).await;
        self.stops.all.cancel();
    }

    /// Subscribes to messages for this worker first, so that a call that it offers to run can be
    /// confirmed.
    async fn subscribe(&self) -> Result<(), ClusterError> {
        let state = &self.state;
        let own = state.bus.subscribe(&state.subjects.worker(&state.options.name), None).await?;
        self.receive(own, &self.stops.all);
        let unheard = state.subjects.all_unheard(&state.options.name);
        self.receive(state.bus.subscribe(&unheard, None).await?, &self.stops.all);
        for (route, stop) in &self.stops.routes {
            let calls = state.subjects.route(route);
            let calls = state.bus.subscribe(&calls, Some(GROUP)).await?;
            self.receive(calls, stop);
        }
        let catalog = state.bus.subscribe(&state.subjects.catalog(), None).await?;
        self.receive(catalog, &self.stops.listing);
        Ok(())
    }

    /// Withdraws offers that no gateway has confirmed, until the worker ends.
    fn expire_offers(&self) {
        let (state, stop) = (Arc::clone(&self.state), self.stops.all.clone());
        let offer_life = state.options.timing.offer_life;
        self.state.bus.spawn(Box::pin(async move {
            let expiring = async {
                loop {
                    tokio::time::sleep(offer_life / EXPIRIES_PER_LIFE).await;
                    state.calls.withdraw_old(offer_life);
                }
            };
            stop.run_until_cancelled(expiring).await;
        }));
    }

    /// Handles messages until the subscription ends. After `stop`, it is closed, and what was
    /// delivered before is still handled.
    fn receive(&self, mut messages: Box<dyn Subscription>, stop: &CancellationToken) {
        let (state, stop) = (Arc::clone(&self.state), stop.clone());
        self.state.bus.spawn(Box::pin(async move {
            loop {
                let message = tokio::select! {
                    biased;
                    message = messages.next() => message,
                    () = stop.cancelled() => break,
                };
                match message {
                    Some(message) => state.handle(message).await,
                    None => return,
                }
            }
            messages.close().await;
            while let Some(message) = messages.next().await {
                state.handle(message).await;
            }
        }));
    }
}

impl WorkerState {
    /// Handles one message. One that is not of the protocol, or wants its replies elsewhere than in
    /// the inbox of a gateway, is dropped.
    async fn handle(self: &Arc<Self>, message: BusMessage) {
        if message.is_undeliverable {
            if let Some((_, offer)) = self.subjects.parse_unheard(&message.subject) {
                self.calls.unheard(offer);
            }
            return;
        }
        let reply = message.reply.filter(|reply| self.subjects.is_inbox(reply));
        let (header, body) = match frame::decode(&message.payload) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "a gateway sent an invalid message");
                return;
            }
        };
        match (header, reply) {
            (GatewayMessage::Call { call, remaining_ms }, Some(reply)) => {
                // Whatever a gateway says, a tool that writes needs a confirmation.
                let remaining_ms = remaining_ms.filter(|_| self.is_read_only(&call.tool));
                let Some(offer) = self.open_offer(*call, body, remaining_ms.is_none()) else {
                    return self.send(&reply, &WorkerMessage::Busy {}, b"").await;
                };
                match remaining_ms.map(Duration::from_millis) {
                    Some(remaining) => self.start(offer, remaining, reply).await,
                    None => self.send_offer(offer, &reply).await,
                }
            }
            (GatewayMessage::Start { offer, remaining_ms }, Some(reply)) => {
                self.start(offer, Duration::from_millis(remaining_ms), reply).await;
            }
            (GatewayMessage::Ask { offer }, Some(reply)) => {
                self.answer(self.calls.ask(offer, &reply), offer, &reply).await;
            }
            (GatewayMessage::Attach { offer, revision }, Some(reply)) => {
                self.attach(offer, revision, &reply).await;
            }
            (GatewayMessage::List {}, Some(reply)) => self.list(&reply).await,
            (GatewayMessage::Describe {}, Some(reply)) => {
                self.describe(&message.subject, &reply).await;
            }
            (GatewayMessage::Answer { offer, question }, _) => {
                self.calls.answer(offer, question, body);
            }
            (GatewayMessage::Cancel { offer }, _) => self.calls.cancel(offer),
            (GatewayMessage::Abandoned { offer }, Some(reply)) => {
                self.calls.abandoned(offer, &reply);
            }
            (GatewayMessage::Received { offer }, _) => self.calls.forget(offer),
            (_, None) => tracing::warn!("a gateway sent a message without an inbox"),
        }
    }

    /// Opens an offer to run a call if the worker and the caller have a permit left, and the worker
    /// is not about to end. Returns its number.
    fn open_offer(&self, call: CallHeader, arguments: Bytes, is_sent: bool) -> Option<u64> {
        let permit = Arc::clone(&self.permits.calls).try_acquire_owned().ok()?;
        let caller = call.session.as_deref().unwrap_or_default();
        let permits = (permit, self.permits.callers.take(caller)?);
        self.calls.open(OpenOffer { call, arguments, permits, is_sent })
    }

    async fn send_offer(&self, offer: u64, reply: &str) {
        let accepted = WorkerMessage::Accepted { offer, worker: self.options.name.to_string() };
        self.send(reply, &accepted, b"").await;
    }

    fn is_read_only(&self, tool: &ToolName) -> bool {
        let tool = self.toolset.definition(tool.as_str());
        tool.is_ok_and(|tool| tool.annotations.read_only == Some(true))
    }

    /// Runs the call of an offer that is still open.
    async fn start(self: &Arc<Self>, offer: u64, remaining: Duration, reply: String) {
        match self.calls.start(offer, &reply) {
            Ok((open, active)) => {
                let state = Arc::clone(self);
                let call = StartedCall { offer, active, remaining, is_offer_sent: open.is_sent };
                self.bus.spawn(Box::pin(async move { call.run(&state, *open).await }));
            }
            Err(status) => self.answer(status, offer, &reply).await,
        }
    }

    /// Lets another gateway have a call. The one that had it learns that.
    async fn attach(&self, offer: u64, revision: u64, reply: &str) {
        let Attachment { status, previous, questions } = self.calls.attach(offer, revision, reply);
        if let Some(previous) = previous {
            self.send(&previous, &WorkerMessage::Moved { offer }, b"").await;
        }
        // The new gateway knows all questions when it has the state.
        if let Some(questions) = questions {
            self.send_questions(offer, &questions, reply).await;
        }
        self.answer(status, offer, reply).await;
    }

    /// Sends the questions of a call that have no answer.
    async fn send_questions(&self, offer: u64, questions: &OpenQuestions, reply: &str) {
        for number in questions.numbers() {
            call::send_question(self, (offer, number), questions, reply).await;
        }
    }

    async fn answer(&self, status: OfferStatus, offer: u64, reply: &str) {
        match status {
            OfferStatus::NotStarted => {
                self.send(reply, &WorkerMessage::NotStarted { offer }, b"").await;
            }
            OfferStatus::Running => self.send(reply, &WorkerMessage::Alive { offer }, b"").await,
            OfferStatus::Ended(result) => self.send_result(offer, &result, reply).await,
            OfferStatus::Moved => self.send(reply, &WorkerMessage::Moved { offer }, b"").await,
            OfferStatus::Unknown => {
                self.send(reply, &WorkerMessage::Unknown { offer }, b"").await;
            }
        }
    }

    async fn list(&self, reply: &str) {
        if self.is_unlisted.load(Ordering::Relaxed) {
            return;
        }
        let routes: Vec<&String> = self.catalog.keys().collect();
        let routes = serde_json::to_vec(&routes).unwrap_or_default();
        self.send(reply, &WorkerMessage::Routes {}, &routes).await;
    }

    /// Tells gateways to look for tools. If one does not receive this, because the bus is not
    /// connected for example, it looks at its next interval.
    async fn announce(&self) {
        let announcing = async {
            self.send(&self.subjects.all_gateways(), &WorkerMessage::Changed {}, b"").await;
            let _ = self.bus.flush().await;
        };
        let _ = tokio::time::timeout(FLUSH_WAIT_MAX, announcing).await;
    }

    /// Describes the source whose route `subject` ends with.
    async fn describe(&self, subject: &str, reply: &str) {
        let route = subject.rsplit('.').next().unwrap_or_default();
        if let Some(entry) = self.catalog.get(route) {
            self.send(reply, &WorkerMessage::Source {}, &entry.to_bytes()).await;
        }
    }

    async fn send_result(&self, offer: u64, result: &Bytes, reply: &str) {
        for frame in result::split(offer, result, self.bus.message_bytes_max()) {
            self.publish(reply, None, frame).await;
        }
    }

    async fn send(&self, reply: &str, header: &impl Serialize, body: &[u8]) {
        self.publish(reply, None, frame::encode(header, body)).await;
    }

    /// Sends a heartbeat. If no gateway receives it, the call table learns that.
    async fn send_alive(&self, reply: &str, offer: u64) {
        let unheard = self.subjects.unheard(&self.options.name, offer);
        let frame = frame::encode(&WorkerMessage::Alive { offer }, b"");
        self.publish(reply, Some(&unheard), frame).await;
    }

    /// Sends a reply. A gateway asks again for one that is lost.
    async fn publish(&self, reply: &str, unheard: Option<&str>, frame: Bytes) {
        if let Err(error) = self.bus.publish(reply, unheard, frame).await {
            tracing::warn!(%error, "a reply was not sent");
        }
    }
}
