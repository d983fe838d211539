//! Progress reports and log lines of one call on their way to the client.

use std::collections::VecDeque;

use cofferdam_tool::ask::{LogLevel, LogSink};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use parking_lot::Mutex;
use rmcp::model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use serde_json::Value;
use tokio::sync::Notify;

use super::caller::Caller;
use crate::level;

/// Maximum number of reports that are queued for a client that reads slowly. Further reports are
/// dropped, because a report is only of current interest.
const WAITING_MAX: usize = 64;

/// Report of a tool while it runs.
pub(super) enum ToolReport {
    Progress(Progress),
    Log(LogLevel, String),
}

/// Queue of reports from within a call. It never blocks the call, and costs next to nothing while
/// it is unused.
#[derive(Default)]
pub(super) struct Reports {
    waiting: Mutex<VecDeque<ToolReport>>,
    /// Signals that `waiting` has a new report.
    has_come: Notify,
}

impl Reports {
    /// Waits for the next report.
    pub(super) async fn next(&self) -> ToolReport {
        loop {
            let has_come = self.has_come.notified();
            if let Some(report) = self.take() {
                return report;
            }
            has_come.await;
        }
    }

    /// Takes the next report, if there is one.
    pub(super) fn take(&self) -> Option<ToolReport> {
        self.waiting.lock().pop_front()
    }

    fn put(&self, report: ToolReport) {
        let mut waiting = self.waiting.lock();
        if waiting.len() < WAITING_MAX {
            waiting.push_back(report);
            drop(waiting);
            self.has_come.notify_one();
        }
    }
}

impl ProgressSink for Reports {
    fn report(&self, _call_id: &str, progress: Progress) {
        self.put(ToolReport::Progress(progress));
    }
}

impl LogSink for Reports {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        self.put(ToolReport::Log(level, message.to_owned()));
    }
}

/// Sends reports to the client that made the request, if it wants them.
pub(super) struct Forwarder<'a> {
    caller: &'a Caller,
    /// Token that the client assigned to the progress of the request, if it wants progress.
    token: Option<ProgressToken>,
    /// Minimum level of log lines that the client wants, if any.
    pub(super) log_level: Option<LogLevel>,
    /// Name of the tool, as the client knows it.
    logger: &'a str,
    furthest: Option<f64>,
}

impl<'a> Forwarder<'a> {
    pub(super) fn new(caller: &'a Caller, log_level: Option<LogLevel>, logger: &'a str) -> Self {
        Self { caller, token: caller.progress_token(), log_level, logger, furthest: None }
    }

    /// Continues after the `furthest` progress that was sent for the same request.
    pub(super) fn after(mut self, furthest: Option<f64>) -> Self {
        self.furthest = furthest;
        self
    }

    /// Returns the furthest progress that was sent.
    pub(super) fn highest_progress(&self) -> Option<f64> {
        self.furthest
    }

    /// Returns true if the client wants progress.
    pub(super) fn wants_progress(&self) -> bool {
        self.token.is_some()
    }

    /// Sends one report. Errors are ignored: a disconnected client is detected elsewhere.
    pub(super) async fn send(&mut self, report: ToolReport) {
        match report {
            ToolReport::Progress(progress) => self.send_progress(progress).await,
            ToolReport::Log(level, message) => self.send_log(level, message).await,
        }
    }

    async fn send_progress(&mut self, progress: Progress) {
        let Some(token) = &self.token else { return };
        // MCP requires progress to increase, and a number that is not finite cannot be sent.
        let goes_on = self.furthest.is_none_or(|furthest| progress.done > furthest);
        if !goes_on || !progress.done.is_finite() {
            return;
        }
        self.furthest = Some(progress.done);
        let mut notification = ProgressNotificationParam::new(token.clone(), progress.done);
        notification.total = progress.total.filter(|total| total.is_finite());
        notification.message = progress.message;
        let _ = self.caller.peer().notify_progress(notification).await;
    }

    async fn send_log(&self, level: LogLevel, message: String) {
        if self.log_level.is_some_and(|least| level >= least) {
            let notification =
                LoggingMessageNotificationParam::new(level::to_wire(level), Value::String(message))
                    .with_logger(self.logger);
            let _ = self.caller.peer().notify_logging_message(notification).await;
        }
    }
}
