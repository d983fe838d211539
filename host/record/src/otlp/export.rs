//! Continuous export of what a process records.
//!
//! The log is the buffer: a task follows its segments and sends their spans, and reads on only when
//! they were accepted. Calls never wait for it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::exporter::{OtlpError, OtlpExporter, RetryLimit, SentSpans};
use super::projector::SpanProjector;
use super::requests::{TraceBatches, TraceRequest};
use crate::{LogFollower, RecordError};

/// Time between two looks for new lines.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time of [`OtlpExport::shutdown`].
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);

/// State of a continuous export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtlpHealth {
    /// Number of spans that the collector has received.
    pub sent: u64,
    /// Number of those that it has rejected.
    pub rejected: u64,
    /// Number of spans that were given up, because the collector refused their request with a
    /// status that a retry does not change. They stay in the log.
    pub failed: u64,
    /// True if the last attempt has failed.
    pub is_failing: bool,
    /// Last error or message of the collector, which may be over.
    pub error: Option<String>,
}

/// A running export. Dropping it ends the export without sending the rest.
#[derive(Debug)]
pub struct OtlpExport {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    health: SharedHealth,
}

/// State that the task and its owner share.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedHealth(Arc<Mutex<OtlpHealth>>);

/// Task of an export.
struct ExportTask {
    exporter: OtlpExporter,
    stop: watch::Receiver<bool>,
    health: SharedHealth,
}

/// Part of the state that a blocking thread works on.
struct LogReader {
    follower: LogFollower,
    projector: SpanProjector,
    batches: TraceBatches,
}

impl OtlpExporter {
    /// Sends spans of what a follower returns, such as [`Recorder::follow`], until it is shut down.
    ///
    /// Memory: the lines of at most 8 MiB of a segment and their spans, besides that of
    /// [`SpanProjector`]. While the collector cannot be reached, nothing more is read; what
    /// retention removes from the log meanwhile is not exported.
    ///
    /// # Panics
    /// If the caller is not within a Tokio runtime.
    ///
    /// [`Recorder::follow`]: crate::Recorder::follow
    #[must_use = "dropping the export ends it"]
    pub fn follow(self, follower: LogFollower) -> OtlpExport {
        let (stop, stopped) = watch::channel(false);
        let health = SharedHealth::default();
        let batches = TraceBatches::new(&self.options().service);
        let reader = LogReader { follower, projector: SpanProjector::default(), batches };
        let task = ExportTask { exporter: self, stop: stopped, health: health.clone() };
        OtlpExport { stop, task: tokio::spawn(task.run(reader)), health }
    }
}

impl OtlpExport {
    /// Returns the state of the export.
    #[must_use]
    pub fn health(&self) -> OtlpHealth {
        self.health.0.lock().clone()
    }

    /// Sends what is in the log and ends the export, within two seconds. Close the recorder first,
    /// so that everything is in the log. Returns the last state.
    pub async fn shutdown(mut self) -> OtlpHealth {
        self.stop.send_replace(true);
        if tokio::time::timeout(SHUTDOWN_TIME, &mut self.task).await.is_err() {
            tracing::warn!(target: "cofferdam::record", "not all spans were sent before the end");
        }
        self.health()
    }
}

impl Drop for OtlpExport {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ExportTask {
    async fn run(mut self, mut reader: LogReader) {
        loop {
            // Before the poll, so that the last one is after the stop.
            let is_last = *self.stop.borrow_and_update();
            // A thread that panicked has lost its state; nothing here panics.
            let Ok((read, polled)) =
                tokio::task::spawn_blocking(move || reader.poll(is_last)).await
            else {
                return;
            };
            reader = read;
            if let Err(error) = &polled {
                self.health.fail(&error.to_string());
            }
            while let Some(request) = reader.batches.next_rest() {
                self.send(&request).await;
            }
            let is_behind = polled.is_ok() && reader.follower.is_behind();
            if is_last && !is_behind {
                return;
            }
            if !is_behind {
                let _ = tokio::time::timeout(POLL_INTERVAL, self.stop.changed()).await;
            }
        }
    }

    /// Sends a request until it is accepted or refused.
    async fn send(&mut self, request: &TraceRequest) {
        let spans = u64::try_from(request.spans).unwrap_or(u64::MAX);
        let limit = RetryLimit::Aborted(&mut self.stop, &self.health);
        match self.exporter.deliver(request, limit).await {
            Ok(SentSpans { rejected, message }) => self.health.change(|health| {
                health.sent += spans;
                health.rejected += rejected;
                health.is_failing = false;
                health.error = message.or(health.error.take());
            }),
            Err(error) => {
                self.health.fail(&error.to_string());
                if matches!(error, OtlpError::Status { .. }) {
                    self.health.change(|health| health.failed += spans);
                }
            }
        }
    }
}

impl SharedHealth {
    /// Notes a failure, and warns about the first one of several.
    pub(super) fn fail(&self, error: &str) {
        let mut health = self.0.lock();
        if !std::mem::replace(&mut health.is_failing, true) {
            tracing::warn!(target: "cofferdam::record", %error, "cannot export spans");
        }
        health.error = Some(error.to_owned());
    }

    fn change(&self, change: impl FnOnce(&mut OtlpHealth)) {
        change(&mut self.0.lock());
    }
}

impl LogReader {
    /// Reads what was recorded since the last poll.
    fn poll(mut self, is_last: bool) -> (Self, Result<(), RecordError>) {
        let items = match self.follower.poll_items() {
            Ok(items) => items,
            Err(error) => return (self, Err(error)),
        };
        let (projector, is_behind) = (&mut self.projector, self.follower.is_behind());
        self.batches.project(|spans| {
            items.into_iter().for_each(|item| projector.add(item, spans));
            match (is_behind, is_last) {
                (true, _) => {}
                (false, true) => projector.finish(spans),
                (false, false) => projector.end_part(spans),
            }
        });
        (self, Ok(()))
    }
}
