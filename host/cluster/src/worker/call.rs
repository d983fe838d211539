//! One running call of a worker.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::CallContext;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};

use super::WorkerState;
use super::questions::{GatewayAsker, OpenQuestions};
use super::table::{ActiveCall, OpenOffer};
use crate::bus::BusError;
use crate::message::WorkerMessage;
use crate::{frame, question, result};

/// Maximum number of progress reports and log messages that wait to be sent. Further ones are
/// dropped.
const REPORTS_MAX: usize = 64;

/// Message of a running call to its gateway.
pub(super) enum CallReport {
    Message(WorkerMessage),
    /// Question with this number.
    Question(u32),
}

/// Runs a confirmed call and sends its result to the gateway that it belongs to.
pub(super) async fn run(
    state: &WorkerState,
    offer: u64,
    (open, running): (Box<OpenOffer>, Arc<ActiveCall>),
    remaining: Duration,
) {
    let OpenOffer { call, arguments, permits } = *open;
    let questions = &running.questions;
    let (sender, mut reports) = mpsc::channel(REPORTS_MAX);
    let asker = call.questions().map(|kinds| {
        let (questions, reports) = (Arc::clone(questions), sender.clone());
        let earlier = call.asked.clone();
        Arc::new(GatewayAsker { kinds, earlier, questions, reports }) as Arc<dyn Asker>
    });
    let sink = Arc::new(Reports { offer, sender });
    let context = CallContext {
        cancellation: running.cancellation.clone(),
        asker,
        progress: Some(Arc::clone(&sink) as Arc<dyn ProgressSink>),
        log: Some(sink as Arc<dyn LogSink>),
        ..call.context(remaining)
    };
    let ended = state.toolset.call(call.tool.as_str(), Some(&arguments), &context);
    let mut ended = std::pin::pin!(AssertUnwindSafe(ended).catch_unwind());
    let period = state.options.timing.alive_interval;
    let mut alive = interval_at(Instant::now() + period, period);
    let mut last_heard = Instant::now();
    let result = loop {
        let report = tokio::select! {
            biased;
            ended = &mut ended => break ended,
            Some(report) = reports.recv() => Some(report),
            _ = alive.tick() => None,
        };
        match report {
            Some(CallReport::Message(message)) => {
                state.send(&running.inbox(), &message, b"").await;
            }
            Some(CallReport::Question(number)) => {
                send_question(state, (offer, number), questions, &running.inbox()).await;
            }
            None => {
                if !running.unheard.swap(false, Ordering::Relaxed) {
                    last_heard = Instant::now();
                } else if last_heard.elapsed() >= unheard_max(state, &running) {
                    tracing::warn!(tool = %call.tool, "a call is canceled: its gateway is lost");
                    state.calls.cancel(offer);
                }
                let inbox = running.inbox();
                state.send_alive(&inbox, offer).await;
                state.send_questions(offer, questions, &inbox).await;
            }
        }
    };
    let result = Bytes::from(match result {
        Ok(ended) => result::encode(ended),
        // The panic itself was reported by its hook.
        Err(_) => result::panicked(),
    });
    drop(permits);
    // Progress of the last moment comes before the result.
    while let Ok(report) = reports.try_recv() {
        if let CallReport::Message(message) = report {
            state.send(&running.inbox(), &message, b"").await;
        }
    }
    if state.calls.end(offer, &result) {
        state.send_result(offer, &result, &running.inbox()).await;
    }
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
