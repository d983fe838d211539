//! One running call of a worker.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_tool::CallContext;
use cofferdam_tool::ask::{LogLevel, LogSink};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use super::WorkerState;
use super::table::OpenOffer;
use crate::message::WorkerMessage;
use crate::result;

/// Maximum number of progress reports and log messages that wait to be sent. Further ones are
/// dropped.
const REPORTS_MAX: usize = 64;

/// Runs a confirmed call and sends its result to `reply`.
pub(super) async fn run(
    state: &WorkerState,
    offer: u64,
    open: Box<OpenOffer>,
    remaining: Duration,
    cancellation: CancellationToken,
    reply: &str,
) {
    let OpenOffer { call, arguments, permit } = *open;
    let (sender, mut reports) = mpsc::channel(REPORTS_MAX);
    let sink = Arc::new(Reports { offer, sender });
    let context = CallContext {
        cancellation,
        progress: Some(Arc::clone(&sink) as Arc<dyn ProgressSink>),
        log: Some(sink as Arc<dyn LogSink>),
        ..call.context(remaining)
    };
    let ended = state.toolset.call(call.tool.as_str(), Some(&arguments), &context);
    let mut ended = std::pin::pin!(AssertUnwindSafe(ended).catch_unwind());
    let period = state.options.timing.alive_interval;
    let mut alive = interval_at(Instant::now() + period, period);
    let result = loop {
        let report = tokio::select! {
            biased;
            ended = &mut ended => break ended,
            Some(report) = reports.recv() => report,
            _ = alive.tick() => WorkerMessage::Alive { offer },
        };
        state.send(reply, &report, b"").await;
    };
    let result = Bytes::from(match result {
        Ok(ended) => result::encode(ended),
        // The panic itself was reported by its hook.
        Err(_) => result::panicked(),
    });
    drop(permit);
    // Progress of the last moment comes before the result.
    while let Ok(report) = reports.try_recv() {
        state.send(reply, &report, b"").await;
    }
    if state.calls.end(offer, &result) {
        state.send_result(offer, &result, reply).await;
    }
}

/// Queues the reports of a call for its gateway.
struct Reports {
    offer: u64,
    sender: mpsc::Sender<WorkerMessage>,
}

impl ProgressSink for Reports {
    fn report(&self, _call_id: &str, progress: Progress) {
        let _ = self.sender.try_send(WorkerMessage::progress(self.offer, progress));
    }
}

impl LogSink for Reports {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        let _ = self.sender.try_send(WorkerMessage::log(self.offer, level, message));
    }
}
