//! One call of a gateway: finds a worker that offers to run it, confirms the offer, and waits for
//! the result.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::ask::Asker;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::questions::AskedQuestions;
use super::{Dispatcher, InboxEvent};
use crate::DispatchError;
use crate::bus::BusError;
use crate::message::{CallHeader, GatewayMessage, WorkerMessage, remaining_ms};
use crate::result::ResultParts;
use crate::subject::NodeName;

/// Number of times that a call of a repeatable tool is started again after its worker was lost.
const RESTARTS_MAX: u32 = 1;
/// Longest pause after workers were busy.
const BUSY_PAUSE_MAX: Duration = Duration::from_millis(500);

/// A call to make.
pub(super) struct RemoteCall<'c> {
    pub(super) route: &'c str,
    pub(super) header: CallHeader,
    pub(super) arguments: &'c [u8],
    pub(super) deadline: Option<Instant>,
    /// True if the tool is declared read-only or idempotent, or the call has an idempotency key.
    pub(super) is_repeatable: bool,
    /// Receives progress reports and log messages.
    pub(super) reports: &'c (dyn Fn(WorkerMessage) + Send + Sync),
    /// Answers the questions of the call.
    pub(super) asker: Option<&'c Arc<dyn Asker>>,
}

/// Offer of a worker to run a call.
#[derive(Debug, Clone)]
struct WorkerOffer {
    number: u64,
    worker: NodeName,
}

/// Reply to the question for an offer.
enum PlacementReply {
    Offer(WorkerOffer),
    Busy,
    /// No worker has the tool.
    NoWorker,
    Silence,
    /// The bus has ended.
    Closed,
}

/// End of a confirmed offer.
enum OfferEnd {
    Result(Bytes),
    /// The worker has declared that the call did not start and never will.
    NotStarted,
    /// The worker does not answer, or does not remember the call.
    WorkerLost,
}

/// A running call. Dropping it tells the worker to stop.
pub(super) struct PendingCall {
    dispatcher: Arc<Dispatcher>,
    number: u64,
    messages: u32,
    replies: mpsc::Receiver<InboxEvent>,
    /// Offer that was accepted last, until it has ended.
    offer: Option<WorkerOffer>,
}

impl PendingCall {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, number: u64) -> Self {
        let replies = dispatcher.inbox.open(number);
        Self { dispatcher, number, messages: 0, replies, offer: None }
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
    /// If no worker started it, or its outcome is unknown.
    pub(super) async fn run(&mut self, call: &RemoteCall<'_>) -> Result<Bytes, DispatchError> {
        let mut restarts = 0;
        let mut give_up = Instant::now() + self.dispatcher.options.timing.placement_wait_max;
        loop {
            let offer = match self.find_worker(call, give_up).await {
                // The lost worker may have run the call before.
                Err(_) if restarts > 0 => return Err(DispatchError::OutcomeUnknown),
                placed => placed?,
            };
            self.offer = Some(offer.clone());
            let end = self.confirm(&offer, call).await?;
            self.offer = None;
            match end {
                OfferEnd::Result(result) => return Ok(result),
                OfferEnd::NotStarted if Instant::now() < give_up => {}
                OfferEnd::NotStarted if restarts == 0 => return Err(DispatchError::NoAnswer),
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
    /// so that asking again is always safe.
    async fn find_worker(
        &mut self,
        call: &RemoteCall<'_>,
        give_up: Instant,
    ) -> Result<WorkerOffer, DispatchError> {
        let subject = self.dispatcher.subjects.route(call.route);
        let message = GatewayMessage::Call { call: Box::new(call.header.clone()) };
        let mut times_busy: u32 = 0;
        loop {
            let asked = self.publish(&subject, &message, call.arguments).await.map_err(not_sent)?;
            match self.reply(asked).await {
                PlacementReply::Offer(offer) => return Ok(offer),
                PlacementReply::NoWorker => return Err(DispatchError::NoWorker),
                PlacementReply::Closed => return Err(closed()),
                PlacementReply::Busy if Instant::now() >= give_up => {
                    return Err(DispatchError::Busy);
                }
                PlacementReply::Silence if Instant::now() >= give_up => {
                    return Err(DispatchError::NoAnswer);
                }
                PlacementReply::Busy => {
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
                    return PlacementReply::NoWorker;
                }
                Some(InboxEvent::Message(_, WorkerMessage::Accepted { offer, worker }, _)) => {
                    let Ok(worker) = NodeName::new(worker) else { continue };
                    return PlacementReply::Offer(WorkerOffer { number: offer, worker });
                }
                Some(InboxEvent::Message(_, WorkerMessage::Busy {}, _)) => {
                    return PlacementReply::Busy;
                }
                Some(_) => {}
            }
        }
    }

    /// Confirms an offer and waits for its end.
    async fn confirm(
        &mut self,
        offer: &WorkerOffer,
        call: &RemoteCall<'_>,
    ) -> Result<OfferEnd, DispatchError> {
        let timing = self.dispatcher.options.timing;
        let start = GatewayMessage::Start {
            offer: offer.number,
            remaining_ms: remaining_ms(call.deadline),
        };
        let Ok(started) = self.tell(offer, &start).await else { return Ok(OfferEnd::WorkerLost) };
        let mut parts = ResultParts::default();
        let mut questions = AskedQuestions::new(call.asker);
        let mut asks = 0;
        loop {
            let wait = if asks == 0 { timing.silence_max } else { timing.ask_wait };
            let event = tokio::select! {
                biased;
                event = tokio::time::timeout(wait, self.next()) => event,
                Some((number, answer)) = questions.answered() => {
                    self.answer(offer, number, &answer).await;
                    continue;
                }
            };
            let Ok(event) = event else {
                if asks >= timing.asks_max {
                    return Ok(OfferEnd::WorkerLost);
                }
                asks += 1;
                // A bus that is not connected at the moment counts as an unanswered question.
                let _ = self.tell(offer, &GatewayMessage::Ask { offer: offer.number }).await;
                continue;
            };
            let message = match event {
                None => return Ok(OfferEnd::WorkerLost),
                // The worker has ended before it received the confirmation.
                Some(InboxEvent::Undeliverable(number)) if number == started => {
                    return Ok(OfferEnd::NotStarted);
                }
                Some(InboxEvent::Undeliverable(_)) => continue,
                Some(InboxEvent::Message(
                    _,
                    WorkerMessage::Accepted { offer: other, worker },
                    _,
                )) => {
                    self.decline_other(offer, other, worker).await;
                    continue;
                }
                // Workers number their offers independently. A late reply to an earlier message may
                // be that of another worker about its offer of the same number.
                Some(InboxEvent::Message(replied, ..)) if replied < started => continue,
                Some(InboxEvent::Message(_, message, body)) => (message, body),
            };
            match message {
                (message, _) if message.offer() != Some(offer.number) => {}
                (WorkerMessage::Result { part, parts: count, bytes, .. }, body) => {
                    let added = parts.add((part, count), bytes, body);
                    if let Some(result) = added.map_err(DispatchError::InvalidResult)? {
                        self.acknowledge(offer).await;
                        return Ok(OfferEnd::Result(result));
                    }
                    asks = 0;
                }
                (WorkerMessage::Question { question, .. }, body) => {
                    asks = 0;
                    if let Some(answer) = questions.receive(question, &body) {
                        self.answer(offer, question, &answer).await;
                    }
                }
                (WorkerMessage::NotStarted { .. }, _) => return Ok(OfferEnd::NotStarted),
                (WorkerMessage::Unknown { .. }, _) => return Ok(OfferEnd::WorkerLost),
                (message, _) => {
                    asks = 0;
                    (call.reports)(message);
                }
            }
        }
    }

    async fn tell(
        &mut self,
        offer: &WorkerOffer,
        message: &GatewayMessage,
    ) -> Result<u32, BusError> {
        let subject = self.dispatcher.subjects.worker(&offer.worker);
        self.publish(&subject, message, b"").await
    }

    /// Gives back a second offer, which would otherwise occupy a permit until it expires.
    async fn decline_other(&self, offer: &WorkerOffer, number: u64, worker: String) {
        let Ok(worker) = NodeName::new(worker) else { return };
        if (number, &worker) == (offer.number, &offer.worker) {
            return;
        }
        let subject = self.dispatcher.subjects.worker(&worker);
        let cancel = GatewayMessage::Cancel { offer: number };
        let _ = self.dispatcher.publish(&subject, None, &cancel, b"").await;
    }

    /// Sends the answer to a question. If it is lost, the worker asks again.
    async fn answer(&self, offer: &WorkerOffer, question: u32, answer: &[u8]) {
        let subject = self.dispatcher.subjects.worker(&offer.worker);
        let message = GatewayMessage::Answer { offer: offer.number, question };
        let _ = self.dispatcher.publish(&subject, None, &message, answer).await;
    }

    async fn acknowledge(&self, offer: &WorkerOffer) {
        let subject = self.dispatcher.subjects.worker(&offer.worker);
        let message = GatewayMessage::Received { offer: offer.number };
        let _ = self.dispatcher.publish(&subject, None, &message, b"").await;
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
        let dispatcher = Arc::clone(&self.dispatcher);
        self.dispatcher.bus.spawn(Box::pin(async move {
            let subject = dispatcher.subjects.worker(&offer.worker);
            let cancel = GatewayMessage::Cancel { offer: offer.number };
            let _ = dispatcher.publish(&subject, None, &cancel, b"").await;
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
