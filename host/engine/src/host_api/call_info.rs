//! `cofferdam:plugin/call`: information about the current call for its guest, and the guest's
//! progress reports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_tool::invoke::Progress;

use super::CallState;
use crate::guest::cofferdam::plugin::call;
use crate::recording::ClockKind;

/// Minimum time between two progress reports that are forwarded.
const PROGRESS_PERIOD: Duration = Duration::from_millis(50);
/// Maximum length of a progress message that is forwarded, in bytes.
const PROGRESS_MESSAGE_BYTES_MAX: usize = 1024;

impl call::Host for CallState {
    fn id(&mut self) -> String {
        self.context.call_id.clone()
    }

    fn session(&mut self) -> Option<String> {
        self.context.session.clone()
    }

    fn time_left_ms(&mut self) -> u64 {
        let left = || u64::try_from(self.deadline.remaining().as_millis()).unwrap_or(u64::MAX);
        match &self.recorder {
            Some(recorder) => recorder.read_clock(ClockKind::TimeLeft, left),
            None => left(),
        }
    }

    fn cancelled(&mut self) -> bool {
        self.context.cancellation.is_cancelled()
    }

    fn progress(&mut self, done: f64, total: Option<f64>, message: Option<String>) {
        let Some(sink) = self.context.progress.as_ref().map(Arc::clone) else { return };
        let now = Instant::now();
        if self.progress_at.is_some_and(|last| now.duration_since(last) < PROGRESS_PERIOD) {
            return;
        }
        self.progress_at = Some(now);
        let message = message.filter(|text| text.len() <= PROGRESS_MESSAGE_BYTES_MAX);
        let message = message.map(|text| self.redactor().text(&text).into_owned());
        sink.report(&self.context.call_id, Progress { done, total, message });
    }
}
