//! Progress and log lines of one call on their way to the client.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use cofferdam_tool::ask::{LogLevel, LogSink};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use rmcp::model::{LoggingMessageNotificationParam, ProgressNotificationParam, ProgressToken};
use serde_json::Value;
use tokio::sync::Notify;

use super::caller::Caller;
use crate::level;

/// Reports that wait for a client which reads slowly. More than these are left out: a report is
/// about now.
const WAITING_MAX: usize = 64;

/// What a tool reports while it runs.
pub(super) enum Report {
    Progress(Progress),
    Log(LogLevel, String),
}

/// Takes reports from within the call, and never blocks it. Costs nothing to speak of until there
/// is one.
#[derive(Default)]
pub(super) struct Reports {
    waiting: Mutex<VecDeque<Report>>,
    /// Somebody has to look at `waiting` again.
    has_come: Notify,
}

impl Reports {
    /// The next report, once there is one.
    pub(super) async fn next(&self) -> Report {
        loop {
            let has_come = self.has_come.notified();
            if let Some(report) = self.take() {
                return report;
            }
            has_come.await;
        }
    }

    /// The next report, if there is one.
    pub(super) fn take(&self) -> Option<Report> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn put(&self, report: Report) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.push_back(report);
            drop(waiting);
            self.has_come.notify_one();
        }
    }
}

impl ProgressSink for Reports {
    fn report(&self, _call_id: &str, progress: Progress) {
        self.put(Report::Progress(progress));
    }
}

impl LogSink for Reports {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        self.put(Report::Log(level, message.to_owned()));
    }
}

/// Sends reports to the client that made the request, as far as it wants them.
pub(super) struct Forwarder<'a> {
    caller: &'a Caller,
    /// What the client calls the request's progress, if it wants any.
    token: Option<ProgressToken>,
    /// The least level that the client wants logged, if it wants any.
    pub(super) log_level: Option<LogLevel>,
    /// The tool, as the client knows it.
    logger: &'a str,
    furthest: Option<f64>,
}

impl<'a> Forwarder<'a> {
    pub(super) fn new(caller: &'a Caller, log_level: Option<LogLevel>, logger: &'a str) -> Self {
        Self { caller, token: caller.progress_token(), log_level, logger, furthest: None }
    }

    /// Goes on after the `furthest` progress that was sent for the same request.
    pub(super) fn after(mut self, furthest: Option<f64>) -> Self {
        self.furthest = furthest;
        self
    }

    /// The furthest progress that was sent.
    pub(super) fn furthest(&self) -> Option<f64> {
        self.furthest
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
