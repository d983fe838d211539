//! A started call, until its result is there.

use std::sync::Arc;

use cofferdam_tool::ask::AskError;
use cofferdam_tool::handover::HandoverRequest;
use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::InboxEvent;
use super::call::{
    CallClient, Handovers, OfferEnd, PendingCall, RemoteCall, WorkerOffer, next_handover,
};
use super::questions::AskedQuestions;
use super::shared::SharedCall;
use crate::bus::BusError;
use crate::message::{GatewayMessage, WorkerMessage, remaining_ms};
use crate::result::{self, ResultParts};
use crate::subject::NodeName;
use crate::{CallTiming, DispatchError, question};

impl PendingCall {
    /// Confirms an offer, unless its worker runs the call without, and waits for its end.
    pub(super) async fn confirm(
        &mut self,
        offer: &WorkerOffer,
        call: &RemoteCall<'_>,
    ) -> Result<OfferEnd, DispatchError> {
        // A shared call must still belong to this gateway.
        let is_stored = match &mut self.shared {
            None => false,
            Some(shared) => match shared.started(offer).await {
                Ok(true) => {
                    if self.waits_until.is_some() {
                        call.client.report_status("a worker runs the call");
                    }
                    true
                }
                Ok(false) => {
                    self.dispatcher().cancel(&offer.worker, offer.number).await;
                    return Ok(OfferEnd::Moved);
                }
                // Another gateway could start a call that waits as well.
                Err(_) if self.waits_until.is_some() => {
                    self.dispatcher().cancel(&offer.worker, offer.number).await;
                    tokio::time::sleep(self.dispatcher().options.timing.claim_poll).await;
                    return Ok(OfferEnd::NotStarted);
                }
                Err(error) => {
                    tracing::warn!(%error, "the new worker of a task was not stored");
                    false
                }
            },
        };
        let started = match offer.started {
            Some(number) => number,
            None => {
                let remaining_ms = remaining_ms(call.deadline);
                let start = GatewayMessage::Start { offer: offer.number, remaining_ms };
                match self.tell(offer, &start).await {
                    Ok(number) => number,
                    Err(_) => return Ok(OfferEnd::WorkerLost),
                }
            }
        };
        if is_stored {
            let _ = self.attach(offer).await;
        } else {
            self.turn = None;
        }
        self.wait(offer, started, &call.client).await
    }

    /// Waits for the end of a call that the message `started` has started, or that this gateway has
    /// taken over with it.
    pub(super) async fn wait(
        &mut self,
        offer: &WorkerOffer,
        started: u32,
        client: &CallClient<'_>,
    ) -> Result<OfferEnd, DispatchError> {
        let timing = self.dispatcher().options.timing;
        let mut parts = ResultParts::default();
        let mut questions = AskedQuestions::new(client.asker, client.inner_calls);
        let mut silence = Silence::new(timing);
        loop {
            let event = tokio::select! {
                biased;
                event = tokio::time::timeout_at(silence.until, self.replies.recv()) => event,
                Some((number, answer)) = questions.answered() => {
                    self.answer(offer, number, &answer).await;
                    continue;
                }
                Some(request) = next_handover(&mut self.handovers), if self.shared.is_none() => {
                    self.share(offer, request).await;
                    continue;
                }
            };
            let Ok(event) = event else {
                if !silence.ask() {
                    return Ok(OfferEnd::WorkerLost);
                }
                // A bus that is not connected at the moment counts as an unanswered question.
                let _ = match self.is_taken_over {
                    true => self.attach(offer).await,
                    false => self.tell(offer, &GatewayMessage::Ask { offer: offer.number }).await,
                };
                continue;
            };
            let (message, body) = match event {
                None => return Ok(OfferEnd::WorkerLost),
                // The worker has ended before it received the confirmation. One whose call was
                // taken over may be connecting again.
                Some(InboxEvent::Undeliverable(number))
                    if number == started && !self.is_taken_over =>
                {
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
                // A late reply to an earlier message is not about this start of the call.
                Some(InboxEvent::Message(replied, ..)) if replied < started => continue,
                Some(InboxEvent::Message(_, message, body)) => (message, body),
            };
            if message.offer() != Some(offer.number) {
                continue;
            }
            silence.end();
            if !matches!(message, WorkerMessage::NotStarted { .. }) {
                self.turn = None;
            }
            match (message, body) {
                (WorkerMessage::Result { part, parts: count, bytes, .. }, body) => {
                    let added = parts.add((part, count), bytes, body);
                    if let Some(result) = added.map_err(DispatchError::InvalidResult)? {
                        self.received(offer, &result).await;
                        return Ok(OfferEnd::Result(result));
                    }
                }
                (WorkerMessage::Question { question, .. }, body) => {
                    if let Some(answer) = questions.receive(question, &body) {
                        self.answer(offer, question, &answer).await;
                    }
                }
                (WorkerMessage::NotStarted { .. }, _) => return Ok(OfferEnd::NotStarted),
                (WorkerMessage::Unknown { .. }, _) => return Ok(OfferEnd::WorkerLost),
                (WorkerMessage::Moved { .. }, _) => return Ok(OfferEnd::Moved),
                (WorkerMessage::Alive { .. }, _) => {
                    // Asks what has come before, so that the client knows it when it is attached.
                    if let Some(Some((number, answer))) = questions.answered().now_or_never() {
                        self.answer(offer, number, &answer).await;
                    }
                    if let Some(handover) = client.handover {
                        handover.set_attached();
                    }
                }
                (message, _) => (client.reports)(message),
            }
        }
    }

    /// Lets other gateways continue the call.
    async fn share(&mut self, offer: &WorkerOffer, request: HandoverRequest) {
        let Some(Handovers { session, tool, .. }) = &self.handovers else { return };
        let dispatcher = Arc::clone(self.dispatcher());
        match SharedCall::create(dispatcher, (session, &request.id), tool, offer).await {
            Ok(shared) => self.shared = shared,
            Err(error) => tracing::warn!(%error, "a task was not stored for other gateways"),
        }
        let is_shared = self.shared.is_some() && self.attach(offer).await.is_ok();
        let _ = request.done.send(is_shared);
    }

    /// Attaches this gateway to the worker of a shared call. Returns the number of the message.
    pub(super) async fn attach(&mut self, offer: &WorkerOffer) -> Result<u32, BusError> {
        let revision = self.shared.as_ref().map_or(0, SharedCall::revision);
        self.tell(offer, &GatewayMessage::Attach { offer: offer.number, revision }).await
    }

    /// Lets the worker forget a result. That of a shared call is stored first.
    async fn received(&mut self, offer: &WorkerOffer, result: &bytes::Bytes) {
        let (dispatcher, offer) = (Arc::clone(self.dispatcher()), offer.clone());
        let Some(shared) = self.shared.take() else {
            return dispatcher.acknowledge(&offer).await;
        };
        let result = result.clone();
        self.dispatcher().bus.spawn(Box::pin(async move {
            if shared.end(&result).await {
                dispatcher.acknowledge(&offer).await;
            }
        }));
    }

    /// Stores the end of a shared call that has no result.
    pub(super) fn end_shared(&mut self, error: &DispatchError) {
        let Some(shared) = self.shared.take() else { return };
        // Its end is stored by the gateway that has it.
        if *error == DispatchError::Moved {
            return;
        }
        let end = result::failed(error.clone());
        self.dispatcher().bus.spawn(Box::pin(async move {
            shared.end(&end).await;
        }));
    }

    /// Gives back a second offer, which would otherwise occupy a permit until it expires.
    async fn decline_other(&self, offer: &WorkerOffer, number: u64, worker: String) {
        let Ok(worker) = NodeName::new(worker) else { return };
        if (number, &worker) != (offer.number, &offer.worker) {
            self.dispatcher().cancel(&worker, number).await;
        }
    }

    /// Sends the answer to a question. If it is lost, the worker asks again. An answer that does
    /// not fit into a message becomes a failure.
    async fn answer(&self, offer: &WorkerOffer, question: u32, answer: &[u8]) {
        let message = GatewayMessage::Answer { offer: offer.number, question };
        let subject = self.dispatcher().subjects.worker(&offer.worker);
        let sent = self.dispatcher().publish(&subject, None, &message, answer).await;
        if let Err(error @ BusError::TooLarge { .. }) = sent {
            let failure = question::encode_answer(Err(AskError::Failed(error.to_string())));
            let _ = self.dispatcher().publish(&subject, None, &message, &failure).await;
        }
    }
}

/// Time in which a worker has to be heard. Messages of other workers do not count: one that was
/// lost before may be back.
struct Silence {
    timing: CallTiming,
    until: Instant,
    /// Number of questions that the worker has not answered.
    asks: u32,
}

impl Silence {
    fn new(timing: CallTiming) -> Self {
        Self { timing, until: Instant::now() + timing.silence_max, asks: 0 }
    }

    fn end(&mut self) {
        *self = Self::new(self.timing);
    }

    /// Returns whether the worker is to be asked once more.
    fn ask(&mut self) -> bool {
        self.until = Instant::now() + self.timing.ask_wait;
        self.asks += 1;
        self.asks <= self.timing.asks_max
    }
}
