//! One call of a gateway: finds a worker that offers to run it, confirms the offer, and waits for
//! the result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::ToolName;
use cofferdam_tool::ask::Asker;
use cofferdam_tool::handover::{Handover, HandoverRequest};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::shared::SharedCall;
use super::{Dispatcher, InboxEvent};
use crate::DispatchError;
use crate::bus::{BusError, BusState};
use crate::message::{CallHeader, GatewayMessage, WorkerMessage, remaining_ms};
use crate::result;
use crate::subject::NodeName;

/// Number of times that a call of a repeatable tool is started again after its worker was lost.
const RESTARTS_MAX: u32 = 1;
/// Longest pause after workers were busy.
const BUSY_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Interval in which a call looks whether the bus is connected again.
const RECONNECTION_POLL: Duration = Duration::from_millis(50);

/// A call to make.
pub(super) struct RemoteCall<'c> {
    pub(super) route: &'c str,
    pub(super) header: CallHeader,
    pub(super) arguments: &'c [u8],
    pub(super) deadline: Option<Instant>,
    /// True if the tool is declared read-only or idempotent, or the call has an idempotency key.
    pub(super) is_repeatable: bool,
    /// True if the tool is declared read-only: the first worker that is asked runs the call.
    pub(super) is_read_only: bool,
    pub(super) client: CallClient<'c>,
}

/// Side of a call that waits for its result.
pub(super) struct CallClient<'c> {
    /// Receives progress reports and log messages.
    pub(super) reports: &'c (dyn Fn(WorkerMessage) + Send + Sync),
    /// Answers the questions of the call.
    pub(super) asker: Option<&'c Arc<dyn Asker>>,
    /// Learns when a call was taken over.
    pub(super) handover: Option<&'c Handover>,
}

/// Offer of a worker to run a call.
#[derive(Debug, Clone)]
pub(super) struct WorkerOffer {
    pub(super) number: u64,
    pub(super) worker: NodeName,
    /// Number of the message that started the call, if the offer needs no confirmation.
    pub(super) started: Option<u32>,
}

/// Requests to let other gateways continue a call.
pub(super) struct Handovers {
    pub(super) requests: mpsc::Receiver<HandoverRequest>,
    pub(super) session: String,
    pub(super) tool: ToolName,
}

/// Reply to the question for an offer.
enum PlacementReply {
    Offer(WorkerOffer),
    /// A worker declined the message of this number.
    Busy(u32),
    /// No worker has received the message of this number.
    NoWorker(u32),
    Silence,
    /// The bus has ended.
    Closed,
}

/// End of a confirmed offer.
pub(super) enum OfferEnd {
    Result(Bytes),
    /// The worker has declared that the call did not start and never will.
    NotStarted,
    /// The worker does not answer, or does not remember the call.
    WorkerLost,
    /// Another gateway has taken the call over.
    Moved,
}

/// A running call. Dropping it tells the worker to stop.
pub(super) struct PendingCall {
    dispatcher: Arc<Dispatcher>,
    number: u64,
    messages: u32,
    pub(super) replies: mpsc::Receiver<InboxEvent>,
    /// Numbers of the messages that needed no confirmation, also of those that were declined: a
    /// message that the bus doubles can be declined and accepted.
    unconfirmed: Vec<u32>,
    /// True if the last of them was not declined, so that its call may run.
    may_run: bool,
    /// Offer that was accepted last, until it has ended.
    pub(super) offer: Option<WorkerOffer>,
    /// Requests to let other gateways continue the call.
    pub(super) handovers: Option<Handovers>,
    /// Entry of the call for other gateways.
    pub(super) shared: Option<SharedCall>,
    /// True if another gateway has started the call.
    pub(super) is_taken_over: bool,
    /// Token that is canceled when the caller gives up.
    cancellation: CancellationToken,
}

impl PendingCall {
    pub(super) fn new(
        dispatcher: Arc<Dispatcher>,
        number: u64,
        cancellation: CancellationToken,
    ) -> Self {
        let replies = dispatcher.inbox.open(number);
        Self {
            dispatcher,
            number,
            messages: 0,
            replies,
            unconfirmed: Vec::new(),
            may_run: false,
            offer: None,
            handovers: None,
            shared: None,
            is_taken_over: false,
            cancellation,
        }
    }

    pub(super) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Returns the number of the call at this gateway.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Waits for the next reply; `None` if the bus has ended.
    pub(super) async fn next(&mut self) -> Option<InboxEvent> {
        self.replies.recv().await
    }

    /// Sends a message that expects replies. Returns its number.
    pub(super) async fn publish(
        &mut self,
        subject: &str,
        message: &GatewayMessage,
        body: &[u8],
    ) -> Result<u32, BusError> {
        self.messages = self.messages.wrapping_add(1);
        let dispatcher = &self.dispatcher;
        let reply = dispatcher.subjects.inbox(&dispatcher.options.name, self.number, self.messages);
        dispatcher.publish(subject, Some(&reply), message, body).await?;
        Ok(self.messages)
    }

    /// Runs the call. Returns the bytes of its result.
    ///
    /// # Errors
    /// If no worker started it, its outcome is unknown, or another gateway has taken it over.
    pub(super) async fn run(&mut self, call: &RemoteCall<'_>) -> Result<Bytes, DispatchError> {
        let result = self.run_on_workers(call).await;
        if let Err(error) = &result {
            self.end_shared(error);
        }
        result
    }

    async fn run_on_workers(&mut self, call: &RemoteCall<'_>) -> Result<Bytes, DispatchError> {
        let mut restarts = 0;
        let mut give_up = Instant::now() + self.dispatcher.options.timing.placement_wait_max;
        loop {
            let offer = match self.find_worker(call, give_up).await {
                // The lost worker may have run the call before.
                Err(_) if restarts > 0 || self.may_run => {
                    return Err(DispatchError::OutcomeUnknown);
                }
                placed => placed?,
            };
            self.offer = Some(offer.clone());
            let end = self.confirm(&offer, call).await?;
            self.offer = None;
            if let OfferEnd::WorkerLost = end {
                // If it comes back, its run would be one that no caller waits for.
                self.dispatcher.cancel(&offer.worker, offer.number).await;
            }
            match end {
                OfferEnd::Result(result) => return Ok(result),
                OfferEnd::Moved => return Err(DispatchError::Moved),
                OfferEnd::NotStarted if Instant::now() < give_up => {}
                OfferEnd::NotStarted if restarts == 0 && !self.may_run => {
                    return Err(DispatchError::NoAnswer);
                }
                OfferEnd::WorkerLost if call.is_repeatable && restarts < RESTARTS_MAX => {
                    restarts += 1;
                    give_up = Instant::now() + self.dispatcher.options.timing.placement_wait_max;
                }
                OfferEnd::NotStarted | OfferEnd::WorkerLost => {
                    return Err(DispatchError::OutcomeUnknown);
                }
            }
        }
    }

    /// Asks workers until one offers to run the call. Nothing runs before the offer is confirmed,
    /// so that asking again is always safe. The first worker that is asked to run a read-only call
    /// starts it with its offer.
    async fn find_worker(
        &mut self,
        call: &RemoteCall<'_>,
        give_up: Instant,
    ) -> Result<WorkerOffer, DispatchError> {
        let subject = self.dispatcher.subjects.route(call.route);
        let mut times_busy: u32 = 0;
        loop {
            self.wait_for_bus(give_up).await?;
            let is_unconfirmed = call.is_read_only && !self.may_run;
            let remaining_ms = is_unconfirmed.then(|| remaining_ms(call.deadline));
            let header = Box::new(call.header.clone());
            let message = GatewayMessage::Call { call: header, remaining_ms };
            let asked = self.publish(&subject, &message, call.arguments).await.map_err(not_sent)?;
            if is_unconfirmed {
                self.unconfirmed.push(asked);
                self.may_run = true;
            }
            let reply = self.reply(asked).await;
            if let PlacementReply::NoWorker(declined) | PlacementReply::Busy(declined) = reply {
                self.may_run &= self.unconfirmed.last() != Some(&declined);
            }
            match reply {
                PlacementReply::Offer(offer) => return Ok(offer),
                PlacementReply::NoWorker(_) => return Err(DispatchError::NoWorker),
                PlacementReply::Closed => return Err(closed()),
                PlacementReply::Busy(_) if Instant::now() >= give_up => {
                    return Err(DispatchError::Busy);
                }
                PlacementReply::Silence if Instant::now() >= give_up => {
                    return Err(DispatchError::NoAnswer);
                }
                PlacementReply::Busy(_) => {
                    times_busy += 1;
                    // The first answer may be that of the only busy worker.
                    if times_busy > 1 {
                        tokio::time::sleep(self.pause(times_busy)).await;
                    }
                }
                PlacementReply::Silence => {}
            }
        }
    }

    /// Waits until the bus is connected. What a bus takes before, it sends then, all at once.
    async fn wait_for_bus(&self, give_up: Instant) -> Result<(), DispatchError> {
        while self.dispatcher.bus.state() == BusState::Disconnected {
            if Instant::now() >= give_up {
                let cause = "the connection was lost and is not restored yet";
                return Err(DispatchError::Disconnected(cause.to_owned()));
            }
            tokio::time::sleep(RECONNECTION_POLL).await;
        }
        Ok(())
    }

    /// Waits for the reply to the message `asked`. An offer that answers an earlier one is as good.
    async fn reply(&mut self, asked: u32) -> PlacementReply {
        let until = Instant::now() + self.dispatcher.options.timing.accept_wait;
        loop {
            let Ok(event) = tokio::time::timeout_at(until, self.next()).await else {
                return PlacementReply::Silence;
            };
            match event {
                None => return PlacementReply::Closed,
                Some(InboxEvent::Undeliverable(number)) if number == asked => {
                    return PlacementReply::NoWorker(number);
                }
                Some(InboxEvent::Message(
                    replied,
                    WorkerMessage::Accepted { offer, worker },
                    _,
                )) => {
                    let Ok(worker) = NodeName::new(worker) else { continue };
                    let started = self.unconfirmed.contains(&replied).then_some(replied);
                    return PlacementReply::Offer(WorkerOffer { number: offer, worker, started });
                }
                Some(InboxEvent::Message(replied, WorkerMessage::Busy {}, _)) => {
                    return PlacementReply::Busy(replied);
                }
                Some(_) => {}
            }
        }
    }

    pub(super) async fn tell(
        &mut self,
        offer: &WorkerOffer,
        message: &GatewayMessage,
    ) -> Result<u32, BusError> {
        let subject = self.dispatcher.subjects.worker(&offer.worker);
        self.publish(&subject, message, b"").await
    }

    /// Returns the pause after a number of busy workers: doubled each time, and different for each
    /// call, so that waiting calls do not come back together.
    fn pause(&self, times: u32) -> Duration {
        let pause =
            self.dispatcher.options.timing.busy_pause * 2_u32.saturating_pow(times.min(16) - 2);
        let pause = pause.min(BUSY_PAUSE_MAX);
        let share = u32::try_from(self.number.wrapping_mul(0x9E37_79B9) % 512).unwrap_or_default();
        pause / 2 + pause * share / 1024
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.dispatcher.inbox.close(self.number);
        let Some(offer) = self.offer.take() else { return };
        let shared = self.shared.take();
        // A call that other gateways can continue ends only if its caller gives up.
        if shared.is_some() && !self.cancellation.is_cancelled() {
            return;
        }
        let dispatcher = Arc::clone(&self.dispatcher);
        self.dispatcher.bus.spawn(Box::pin(async move {
            dispatcher.cancel(&offer.worker, offer.number).await;
            if let Some(shared) = shared {
                shared.end(&result::canceled()).await;
            }
        }));
    }
}

fn closed() -> DispatchError {
    DispatchError::Disconnected("the connection was closed".to_owned())
}

fn not_sent(error: BusError) -> DispatchError {
    match error {
        BusError::TooLarge { bytes, bytes_max } => DispatchError::CallTooLarge { bytes, bytes_max },
        BusError::Disconnected(cause) => DispatchError::Disconnected(cause),
    }
}
