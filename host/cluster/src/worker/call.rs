//! One running call of a worker.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink};
use cofferdam_tool::invoke::{InnerCalls, Progress, ProgressSink};
use cofferdam_tool::{CallContext, Completion, Outcome};
use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at, sleep_until};

use super::WorkerState;
use super::inner::GatewayInnerCalls;
use super::questions::{GatewayAsker, OpenQuestions};
use super::table::{ActiveCall, OpenOffer};
use crate::bus::BusError;
use crate::message::WorkerMessage;
use crate::{frame, question, result};

/// Maximum number of progress reports and log messages that wait to be sent. Further ones are
/// dropped.
const REPORTS_MAX: usize = 64;

/// Longest time that a worker keeps the offer of a call that runs. A gateway waits many times as
/// long for it.
const OFFER_DELAY: Duration = Duration::from_millis(5);

/// Reason for a running call to send something.
enum CallEvent {
    Report(CallReport),
    /// The call takes longer than the offer is kept.
    Offer,
    Heartbeat,
}

/// Message of a running call to its gateway.
pub(super) enum CallReport {
    Message(WorkerMessage),
    /// Question with this number.
    Question(u32),
}

/// A call that has started.
pub(super) struct StartedCall {
    pub(super) offer: u64,
    pub(super) active: Arc<ActiveCall>,
    /// Time that is left for it.
    pub(super) remaining: Duration,
    /// True if the offer was sent to the gateway.
    pub(super) is_offer_sent: bool,
}

impl StartedCall {
    /// Runs the call and sends its result to the gateway that it belongs to. An offer that was not
    /// sent goes with the first message, so that a short call wakes the gateway once.
    pub(super) async fn run(mut self, state: &WorkerState, open: OpenOffer) {
        let OpenOffer { call, arguments, permits, .. } = open;
        let offer = self.offer;
        let active = Arc::clone(&self.active);
        let (sender, mut reports) = mpsc::channel(REPORTS_MAX);
        let asker = call.questions().map(|kinds| {
            let (questions, reports) = (Arc::clone(&active.questions), sender.clone());
            let earlier = call.asked.clone();
            Arc::new(GatewayAsker { kinds, earlier, questions, reports }) as Arc<dyn Asker>
        });
        let inner_calls = call.inner_calls.clone().map(|header| {
            let (questions, reports) = (Arc::clone(&active.questions), sender.clone());
            Arc::new(GatewayInnerCalls::new(header, questions, reports))
        });
        let sink = Arc::new(Reports { offer, sender });
        let context = CallContext {
            cancellation: active.cancellation.clone(),
            asker,
            inner_calls: inner_calls.clone().map(|calls| calls as Arc<dyn InnerCalls>),
            progress: Some(Arc::clone(&sink) as Arc<dyn ProgressSink>),
            log: Some(sink as Arc<dyn LogSink>),
            ..call.context(self.remaining)
        };
        let ended = async {
            let ended = state.toolset.call(call.tool.as_str(), Some(&arguments), &context).await;
            let Some(inner_calls) = inner_calls else { return ended };
            match inner_calls.report_kept(&context).await {
                Ok(()) => ended,
                Err(outcome) => ended.map(|completion| completion_with(completion, *outcome)),
            }
        };
        let mut ended = std::pin::pin!(AssertUnwindSafe(ended).catch_unwind());
        let started = Instant::now();
        let period = state.options.timing.alive_interval;
        let mut alive = interval_at(started + period, period);
        let mut last_heard = started;
        let result = loop {
            let event = tokio::select! {
                biased;
                ended = &mut ended => break ended,
                Some(report) = reports.recv() => CallEvent::Report(report),
                () = sleep_until(started + OFFER_DELAY), if !self.is_offer_sent => {
                    CallEvent::Offer
                },
                _ = alive.tick() => CallEvent::Heartbeat,
            };
            self.send_offer(state).await;
            match event {
                CallEvent::Offer => {}
                CallEvent::Report(CallReport::Message(message)) => {
                    state.send(&active.inbox(), &message, b"").await;
                }
                CallEvent::Report(CallReport::Question(number)) => {
                    send_question(state, (offer, number), &active.questions, &active.inbox()).await;
                }
                CallEvent::Heartbeat => {
                    if !active.unheard.swap(false, Ordering::Relaxed) {
                        last_heard = Instant::now();
                    } else if last_heard.elapsed() >= unheard_max(state, &active) {
                        tracing::warn!(tool = %call.tool, "a call is canceled: its gateway is lost");
                        state.calls.cancel(offer);
                    }
                    let inbox = active.inbox();
                    state.send_alive(&inbox, offer).await;
                    state.send_questions(offer, &active.questions, &inbox).await;
                }
            }
        };
        let result = Bytes::from(match result {
            Ok(ended) => result::encode(ended),
            // The panic itself was reported by its hook.
            Err(_) => result::panicked(),
        });
        drop(permits);
        self.send_offer(state).await;
        // Progress of the last moment comes before the result.
        while let Ok(report) = reports.try_recv() {
            if let CallReport::Message(message) = report {
                state.send(&active.inbox(), &message, b"").await;
            }
        }
        if state.calls.end(offer, &result) {
            state.send_result(offer, &result, &active.inbox()).await;
        }
    }

    /// Sends the offer, unless that was done.
    async fn send_offer(&mut self, state: &WorkerState) {
        if !std::mem::replace(&mut self.is_offer_sent, true) {
            state.send_offer(self.offer, &self.active.inbox()).await;
        }
    }
}

/// Returns a completion with another outcome.
pub(super) fn completion_with(mut completion: Completion, outcome: Outcome) -> Completion {
    completion.record.set_outcome(&outcome);
    completion.outcome = outcome;
    completion
}

/// Returns the time that a call runs without a gateway that receives its heartbeats.
fn unheard_max(state: &WorkerState, call: &ActiveCall) -> Duration {
    let timing = &state.options.timing;
    if call.is_shared() { timing.unattended_max } else { timing.unheard_max }
}

/// Sends a question, unless it has an answer. One that does not fit into a message fails.
pub(super) async fn send_question(
    state: &WorkerState,
    (offer, number): (u64, u32),
    questions: &OpenQuestions,
    reply: &str,
) {
    let Some(body) = questions.body(number) else { return };
    let frame = frame::encode(&WorkerMessage::Question { offer, question: number }, &body);
    let (bytes, bytes_max) = (frame.len(), state.bus.message_bytes_max());
    if bytes > bytes_max {
        let cause = BusError::TooLarge { bytes, bytes_max }.to_string();
        let failure = question::encode_answer(Err(AskError::Failed(cause)));
        return questions.answer(number, failure.into());
    }
    state.publish(reply, None, frame).await;
}

/// Queues the reports of a call for its gateway.
struct Reports {
    offer: u64,
    sender: mpsc::Sender<CallReport>,
}

impl ProgressSink for Reports {
    fn report(&self, _call_id: &str, progress: Progress) {
        let progress = WorkerMessage::progress(self.offer, progress);
        let _ = self.sender.try_send(CallReport::Message(progress));
    }
}

impl LogSink for Reports {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        let message = WorkerMessage::log(self.offer, level, message);
        let _ = self.sender.try_send(CallReport::Message(message));
    }
}
