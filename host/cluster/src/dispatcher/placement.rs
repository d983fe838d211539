//! Search for a worker that offers to run a call.
//!
//! An ordinary call gives up after some seconds. One that has become a task waits until a worker
//! has a permit for it. It then has an entry in the store, so that another gateway runs it if this
//! one is lost.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::handover::HandoverRequest;
use futures_util::FutureExt as _;
use tokio::time::Instant;

use super::InboxEvent;
use super::call::{Handovers, PendingCall, RemoteCall, WorkerOffer, next_handover};
use super::shared::SharedCall;
use crate::DispatchError;
use crate::bus::{BusError, BusState};
use crate::message::{GatewayMessage, WorkerMessage, remaining_ms};
use crate::subject::NodeName;

/// Longest pause after workers were busy.
const BUSY_PAUSE_MAX: Duration = Duration::from_millis(500);
/// The same for a call that waits as a task.
const WAITING_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Maximum number of workers that are asked one after the other without a pause.
const ROUND_MAX: usize = 64;
/// Maximum bytes of arguments that are sent to them.
const ROUND_BYTES_MAX: usize = 256 * 1024;
/// Interval in which a call looks whether the bus is connected again.
const RECONNECTION_POLL: Duration = Duration::from_millis(50);

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

impl PendingCall {
    /// Asks workers until one offers to run the call. Nothing runs before the offer is confirmed,
    /// so that asking again is always safe. The first worker that is asked to run a read-only call
    /// starts it with its offer, unless other gateways can run the call as well.
    pub(super) async fn find_worker(
        &mut self,
        call: &RemoteCall<'_>,
        give_up: Instant,
    ) -> Result<WorkerOffer, DispatchError> {
        let (mut rounds, mut asked): (u32, usize) = (0, 0);
        let mut absent_since: Option<Instant> = None;
        let lines = &self.dispatcher().lines;
        if self.is_in_no_line() && lines.has(&call.request.route, session(call)) {
            absent_since = self.join_line(call, give_up).await?.1;
        }
        loop {
            if let Some(Some(request)) = next_handover(&mut self.handovers).now_or_never() {
                self.share_waiting(request, call).await;
            }
            let give_up = self.waits_until.unwrap_or(give_up);
            self.wait_for_bus(give_up).await?;
            let reply = self.ask_worker(call).await?;
            // The client of a call that was taken over sees its status.
            if let (Some(handover), Some(_)) = (call.client.handover, self.waits_until) {
                handover.set_attached();
            }
            let is_gone = matches!(reply, PlacementReply::NoWorker(_) | PlacementReply::Silence);
            if is_gone && self.asking_worker.take().is_some() {
                // The worker that asked is gone, and any other one runs the call.
                continue;
            }
            let was_absent = absent_since.take();
            match reply {
                PlacementReply::Offer(offer) => return Ok(offer),
                PlacementReply::Closed => return Err(closed()),
                // The workers of a call that waits may be about to be replaced.
                PlacementReply::NoWorker(_) => {
                    let since = was_absent.unwrap_or_else(Instant::now);
                    let wait_max = self.dispatcher().options.timing.placement_wait_max;
                    if self.waits_until.is_none() || since.elapsed() >= wait_max {
                        if let Some(turn) = &mut self.turn {
                            turn.absent_since = Some(since);
                        }
                        return Err(DispatchError::NoWorker);
                    }
                    absent_since = Some(since);
                    self.pause(WAITING_PAUSE_MAX, call).await;
                }
                PlacementReply::Busy(_) if Instant::now() >= give_up => {
                    return Err(DispatchError::Busy);
                }
                PlacementReply::Silence if Instant::now() >= give_up => {
                    return Err(DispatchError::NoAnswer);
                }
                PlacementReply::Busy(_) => {
                    if self.is_in_no_line() {
                        let (has_waited, since) = self.join_line(call, give_up).await?;
                        absent_since = since;
                        if has_waited {
                            continue;
                        }
                    }
                    // Each worker may be the one that is not busy.
                    asked += 1;
                    if asked >= self.round(call) {
                        (rounds, asked) = (rounds + 1, 0);
                        self.pause(self.busy_pause(rounds), call).await;
                        self.ensure_current().await?;
                    }
                }
                PlacementReply::Silence => {}
            }
        }
    }

    /// Asks a worker to run the call: the one that has asked the question which the call answers,
    /// or else any that has the tool.
    async fn ask_worker(&mut self, call: &RemoteCall<'_>) -> Result<PlacementReply, DispatchError> {
        let is_unconfirmed =
            call.request.is_read_only && self.unconfirmed.is_none() && self.waits_until.is_none();
        let remaining_ms = is_unconfirmed.then(|| remaining_ms(call.deadline));
        let header = Box::new(call.request.header.clone());
        let message = GatewayMessage::Call { call: header, remaining_ms };
        let subjects = &self.dispatcher().subjects;
        let subject = match &self.asking_worker {
            Some(worker) => subjects.worker(worker),
            None => subjects.route(&call.request.route),
        };
        let asked = self.publish(&subject, &message, call.arguments).await.map_err(not_sent)?;
        if is_unconfirmed {
            self.unconfirmed = Some(asked);
            self.may_run = true;
        }
        let reply = self.reply(asked).await;
        if let PlacementReply::NoWorker(declined) | PlacementReply::Busy(declined) = reply {
            self.may_run &= self.unconfirmed != Some(declined);
        }
        Ok(reply)
    }

    /// Runs a call that another gateway had and no worker has started.
    ///
    /// # Errors
    /// Like [`run`](Self::run).
    pub(super) async fn run_waiting(
        &mut self,
        shared: SharedCall,
        call: &RemoteCall<'_>,
    ) -> Result<Bytes, DispatchError> {
        self.wait_as(shared, call);
        self.run(call).await
    }

    /// Looks whether another gateway has taken over a call that waits.
    ///
    /// # Errors
    /// [`DispatchError::Moved`] if one has.
    async fn ensure_current(&self) -> Result<(), DispatchError> {
        match &self.shared {
            Some(shared) if self.waits_until.is_some() && !shared.is_current().await => {
                Err(DispatchError::Moved)
            }
            _ => Ok(()),
        }
    }

    /// Notes that no worker has started a call for which other gateways can look as well.
    ///
    /// # Errors
    /// [`DispatchError::Moved`] if another gateway has the call.
    pub(super) async fn wait_again(&mut self, call: &RemoteCall<'_>) -> Result<(), DispatchError> {
        if let Some(shared) = &mut self.shared
            && self.waits_until.is_some()
            && shared.waits(call.request, call.arguments).await == Ok(false)
        {
            return Err(DispatchError::Moved);
        }
        Ok(())
    }

    /// Lets other gateways run the call, which waits for a worker from now on.
    async fn share_waiting(&mut self, handover: HandoverRequest, call: &RemoteCall<'_>) {
        let Some(Handovers { session, tool, .. }) = &self.handovers else { return };
        let dispatcher = Arc::clone(self.dispatcher());
        let name = (session.as_str(), handover.id.as_str());
        if let Some(shared) = SharedCall::create_waiting(dispatcher, name, tool, call).await {
            self.wait_as(shared, call);
        }
        let _ = handover.done.send(self.shared.is_some());
    }

    fn wait_as(&mut self, shared: SharedCall, call: &RemoteCall<'_>) {
        let timing = self.dispatcher().options.timing;
        // Without an entry, no other gateway goes on with the call.
        let is_shared = shared.has_entry();
        let wait_max = if is_shared { timing.unattended_max } else { timing.placement_wait_max };
        (self.shared, self.waits_until) = (Some(shared), Some(Instant::now() + wait_max));
        call.client.report_status("all workers are busy; waiting for one");
    }

    /// Returns whether the call asks workers as if no other one waited.
    fn is_in_no_line(&self) -> bool {
        // Only one worker can run a call with the answers to its questions.
        self.turn.is_none() && self.asking_worker.is_none()
    }

    /// Waits until it is the turn of this call to ask workers. Returns whether it had to wait, and
    /// since when no worker has the tool.
    async fn join_line(
        &mut self,
        call: &RemoteCall<'_>,
        give_up: Instant,
    ) -> Result<(bool, Option<Instant>), DispatchError> {
        let dispatcher = Arc::clone(self.dispatcher());
        let mut joining = pin!(dispatcher.lines.join(&call.request.route, session(call)));
        loop {
            let give_up = self.waits_until.unwrap_or(give_up);
            tokio::select! {
                (mut turn, has_waited) = &mut joining => {
                    let absent_since = turn.absent_since.take();
                    self.turn = Some(turn);
                    if has_waited {
                        self.forget_offers();
                    }
                    return Ok((has_waited, absent_since));
                }
                // It keeps its place.
                Some(request) = next_handover(&mut self.handovers) => {
                    self.share_waiting(request, call).await;
                }
                () = tokio::time::sleep_until(give_up.min(Instant::now() + WAITING_PAUSE_MAX)) => {
                    if Instant::now() >= give_up {
                        return Err(DispatchError::Busy);
                    }
                    self.ensure_current().await?;
                }
            }
        }
    }

    /// Returns the number of workers to ask without a pause. The first calls of all lines ask as
    /// many together as there are.
    fn round(&self, call: &RemoteCall<'_>) -> usize {
        if self.asking_worker.is_some() {
            return 1;
        }
        let (dispatcher, route) = (self.dispatcher(), call.request.route.as_str());
        let share = dispatcher.workers(route).div_ceil(dispatcher.lines.count(route).max(1));
        let by_bytes = ROUND_BYTES_MAX / call.arguments.len().max(1);
        share.min(by_bytes).clamp(1, ROUND_MAX)
    }

    /// Waits before workers are asked again. A call that becomes a task meanwhile is shared.
    async fn pause(&mut self, time: Duration, call: &RemoteCall<'_>) {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            Some(request) = next_handover(&mut self.handovers) => {
                self.share_waiting(request, call).await;
            }
        }
    }

    /// Waits until the bus is connected. What a bus takes before, it sends then, all at once.
    async fn wait_for_bus(&self, give_up: Instant) -> Result<(), DispatchError> {
        while self.dispatcher().bus.state() == BusState::Disconnected {
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
        let until = Instant::now() + self.dispatcher().options.timing.accept_wait;
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
                    if self.lost == Some(offer) {
                        continue;
                    }
                    let Ok(worker) = NodeName::new(worker) else { continue };
                    let started = self.unconfirmed.filter(|number| *number == replied);
                    if started.is_none() && replied < self.offers_from {
                        self.dispatcher().cancel(&worker, offer).await;
                        continue;
                    }
                    return PlacementReply::Offer(WorkerOffer { number: offer, worker, started });
                }
                Some(InboxEvent::Message(replied, WorkerMessage::Busy {}, _)) => {
                    return PlacementReply::Busy(replied);
                }
                Some(_) => {}
            }
        }
    }

    /// Returns the pause after a number of rounds: doubled each time, and different for each call,
    /// so that calls of several gateways do not come back together.
    fn busy_pause(&self, rounds: u32) -> Duration {
        let longest = if self.waits_until.is_some() { WAITING_PAUSE_MAX } else { BUSY_PAUSE_MAX };
        let first = self.dispatcher().options.timing.busy_pause;
        let pause = (first * 2_u32.saturating_pow(rounds.clamp(1, 16) - 1)).min(longest);
        let share =
            u32::try_from(self.number().wrapping_mul(0x9E37_79B9) % 512).unwrap_or_default();
        pause / 2 + pause * share / 1024
    }
}

fn session<'c>(call: &RemoteCall<'c>) -> &'c str {
    call.request.header.session.as_deref().unwrap_or_default()
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
