//! Progress and log lines of one call on their way to the client.

use std::sync::Arc;

use cofferdam_tool::{LogLevel, LogSink, Progress, ProgressSink};
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::Peer;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::level;

/// Reports that wait for a client which reads slowly. More than these are left out: a report is about now.
const WAITING_MAX: usize = 64;

/// What a tool reports while it runs.
pub(super) enum Report {
    Progress(Progress),
    Log(LogLevel, String),
}

/// Takes reports from within the call; never blocks.
pub(super) struct Sink(mpsc::Sender<Report>);

impl ProgressSink for Sink {
    fn report(&self, _call_id: &str, progress: Progress) {
        let _ = self.0.try_send(Report::Progress(progress));
    }
}

impl LogSink for Sink {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        let _ = self.0.try_send(Report::Log(level, message.to_owned()));
    }
}

/// A sink and where its reports come out.
pub(super) fn channel() -> (Arc<Sink>, mpsc::Receiver<Report>) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    (Arc::new(Sink(sender)), receiver)
}

/// Sends reports to the client that made the request, as far as it wants them.
pub(super) struct Forwarder {
    pub(super) peer: Peer<RoleServer>,
    /// What the client has declared, with this request or when it connected.
    pub(super) capabilities: ClientCapabilities,
    /// What the client calls the request's progress, if it wants any.
    pub(super) token: Option<ProgressToken>,
    /// The least level that the client wants logged, if it wants any.
    pub(super) log_level: Option<LogLevel>,
    /// The tool, as the client knows it.
    pub(super) logger: String,
    furthest: Option<f64>,
}

impl Forwarder {
    pub(super) fn new(
        peer: Peer<RoleServer>,
        capabilities: ClientCapabilities,
        token: Option<ProgressToken>,
        log_level: Option<LogLevel>,
        logger: String,
    ) -> Self {
        Self { peer, capabilities, token, log_level, logger, furthest: None }
    }

    /// Whether there is anybody who wants progress.
    pub(super) fn wants_progress(&self) -> bool {
        self.token.is_some()
    }

    /// Sends one report. A client that is gone is noticed elsewhere.
    pub(super) async fn send(&mut self, report: Report) {
        match report {
            Report::Progress(progress) => self.send_progress(progress).await,
            Report::Log(level, message) => self.send_log(level, message).await,
        }
    }

    async fn send_progress(&mut self, progress: Progress) {
        let Some(token) = &self.token else { return };
        // MCP wants it to increase; what is no number cannot be sent at all.
        let goes_on = self.furthest.is_none_or(|furthest| progress.done > furthest);
        if !goes_on || !progress.done.is_finite() {
            return;
        }
        self.furthest = Some(progress.done);
        let mut notification = ProgressNotificationParam::new(token.clone(), progress.done);
        notification.total = progress.total.filter(|total| total.is_finite());
        notification.message = progress.message;
        let _ = self.peer.notify_progress(notification).await;
    }

    async fn send_log(&self, level: LogLevel, message: String) {
        if self.log_level.is_some_and(|least| level >= least) {
            let notification =
                LoggingMessageNotificationParam::new(level::to_wire(level), Value::String(message))
                    .with_logger(self.logger.clone());
            let _ = self.peer.notify_logging_message(notification).await;
        }
    }
}
