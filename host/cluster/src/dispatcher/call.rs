//! One call of a gateway: finds a worker that offers to run it, confirms the offer, and waits for
//! the result.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::ToolName;
use cofferdam_tool::ask::Asker;
use cofferdam_tool::handover::{Handover, HandoverRequest};
use cofferdam_tool::invoke::Progress;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::inner::InnerCallPolicy;
use super::lines::LineTurn;
use super::returning::ReturningCall;
use super::shared::SharedCall;
use super::{Dispatcher, InboxEvent};
use crate::DispatchError;
use crate::bus::BusError;
use crate::message::{CallHeader, GatewayMessage, WorkerMessage};
use crate::result;
use crate::subject::NodeName;

/// Number of times that a call of a repeatable tool is started again after its worker was lost.
const RESTARTS_MAX: u32 = 1;

/// A call to make.
pub(super) struct RemoteCall<'c> {
    pub(super) request: &'c CallRequest,
    pub(super) arguments: &'c [u8],
    pub(super) deadline: Option<Instant>,
    pub(super) client: CallClient<'c>,
}

/// A call without its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallRequest {
    pub(super) route: String,
    pub(super) header: CallHeader,
    /// True if the tool is declared read-only or idempotent, or the call has an idempotency key.
    pub(super) is_repeatable: bool,
    /// True if the tool is declared read-only: the first worker that is asked runs the call.
    pub(super) is_read_only: bool,
}

/// Side of a call that waits for its result.
pub(super) struct CallClient<'c> {
    /// Receives progress reports and log messages.
    pub(super) reports: &'c (dyn Fn(WorkerMessage) + Send + Sync),
    /// Answers the questions of the call.
    pub(super) asker: Option<&'c Arc<dyn Asker>>,
    /// Decides about the calls that the call makes of other tools.
    pub(super) inner_calls: Option<InnerCallPolicy<'c>>,
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

/// Waits for the next request to let other gateways continue a call.
pub(super) async fn next_handover(handovers: &mut Option<Handovers>) -> Option<HandoverRequest> {
    handovers.as_mut()?.requests.recv().await
}

impl CallClient<'_> {
    /// Reports the status of a task.
    pub(super) fn report_status(&self, status: &str) {
        let message = Some(status.to_owned());
        (self.reports)(WorkerMessage::progress(0, Progress { done: 0.0, total: None, message }));
    }
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
    /// Number of the message that needs no confirmation. There is one for each call, because a
    /// message that the bus doubles can be declined and accepted.
    pub(super) unconfirmed: Option<u32>,
    /// True if it was not declined, so that its call may run.
    pub(super) may_run: bool,
    /// Offer that was accepted last, until it has ended.
    pub(super) offer: Option<WorkerOffer>,
    /// Number of the offer whose worker was lost. A message that the bus doubles can repeat it.
    pub(super) lost: Option<u64>,
    /// Requests to let other gateways continue the call.
    pub(super) handovers: Option<Handovers>,
    /// Entry of the call for other gateways.
    pub(super) shared: Option<SharedCall>,
    /// Time until which a shared call waits for a worker, unless one has started it.
    pub(super) waits_until: Option<Instant>,
    /// True if another gateway has started the call.
    pub(super) is_taken_over: bool,
    /// The call as its client makes it again after a question.
    returning: Option<ReturningCall>,
    /// Worker that is asked first, because it has asked the question that is answered now.
    pub(super) asking_worker: Option<NodeName>,
    /// Turn to ask workers, from the time at which they were busy until one has started the call.
    pub(super) turn: Option<LineTurn>,
    /// Number of the first message whose offer is still valid: they expire while a call waits.
    pub(super) offers_from: u32,
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
            unconfirmed: None,
            may_run: false,
            offer: None,
            lost: None,
            handovers: None,
            shared: None,
            waits_until: None,
            is_taken_over: false,
            returning: None,
            asking_worker: None,
            turn: None,
            offers_from: 0,
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

    /// Lets a call with answers return to the worker that has asked the questions.
    pub(super) fn return_to_worker(&mut self, call: Option<ReturningCall>) {
        self.asking_worker = call.and_then(|call| self.dispatcher.asking_workers.take(call));
        self.returning = call;
    }

    /// Declines offers to run the call that have been made so far.
    pub(super) fn forget_offers(&mut self) {
        self.offers_from = self.messages.wrapping_add(1);
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
                Err(DispatchError::Moved) => return Err(DispatchError::Moved),
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
                self.waits_until = None;
                // If it comes back, its run would be one that no caller waits for.
                self.dispatcher.cancel(&offer.worker, offer.number).await;
                self.lost = Some(offer.number);
            }
            match end {
                OfferEnd::Result(result) => return Ok(result),
                OfferEnd::Moved => return Err(DispatchError::Moved),
                OfferEnd::NotStarted if Instant::now() < self.waits_until.unwrap_or(give_up) => {
                    self.wait_again(call).await?;
                }
                OfferEnd::NotStarted if restarts == 0 && !self.may_run => {
                    return Err(DispatchError::NoAnswer);
                }
                OfferEnd::WorkerLost if call.request.is_repeatable && restarts < RESTARTS_MAX => {
                    restarts += 1;
                    give_up = Instant::now() + self.dispatcher.options.timing.placement_wait_max;
                }
                OfferEnd::NotStarted | OfferEnd::WorkerLost => {
                    return Err(DispatchError::OutcomeUnknown);
                }
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
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        self.dispatcher.inbox.close(self.number);
        let (offer, shared) = (self.offer.take(), self.shared.take());
        if let (Some(offer), Some(call)) = (&offer, self.returning.take()) {
            self.dispatcher.asking_workers.add(call, offer.worker.clone());
        }
        let has_ended = offer.is_none() && shared.is_none();
        // A call that other gateways can continue ends only if its caller gives up.
        if has_ended || (shared.is_some() && !self.cancellation.is_cancelled()) {
            return;
        }
        let dispatcher = Arc::clone(&self.dispatcher);
        self.dispatcher.bus.spawn(Box::pin(async move {
            if let Some(offer) = offer {
                dispatcher.cancel(&offer.worker, offer.number).await;
            }
            if let Some(shared) = shared {
                shared.end(&result::canceled()).await;
            }
        }));
    }
}
