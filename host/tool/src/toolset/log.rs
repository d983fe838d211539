//! Events about calls, for the operator: the target `cofferdam::call` has one for each call,
//! `cofferdam::stderr` one for each line that a tool has printed.

use crate::{CallContext, Completion, Outcome, Refused};

/// Longest part of what a tool has printed that comes with the event of its call, in bytes.
const TAIL_BYTES_MAX: usize = 512;

/// Reports a call that has ended: a warning if it ended in an error.
pub(super) fn ended(source: &str, tool: &str, completion: &Completion) {
    let record = &completion.record;
    let id = record.call_id.as_str();
    let micros = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let phases = record.phases;
    let (wait_us, run_us) = (micros(phases.wait), micros(phases.instantiate + phases.run));
    if let Outcome::Error(_) = &completion.outcome {
        let end = record.error_type.as_deref().unwrap_or("Error");
        // Strings that a guest may have written are quoted, and their control characters escaped.
        let detail =
            record.detail.as_deref().and_then(|detail| detail.lines().next()).unwrap_or_default();
        let stderr = tail(&record.stderr_tail);
        tracing::warn!(target: "cofferdam::call", id, source, tool, end, wait_us, run_us, ?detail, ?stderr, "call failed");
    } else {
        let end = record.outcome;
        tracing::info!(target: "cofferdam::call", id, source, tool, end, wait_us, run_us, "call ended");
    }
    if tracing::enabled!(target: "cofferdam::stderr", tracing::Level::DEBUG) {
        for line in record.stderr_tail.lines() {
            tracing::debug!(target: "cofferdam::stderr", id, source, tool, ?line, "the tool printed");
        }
    }
}

/// Reports a call that has not started.
pub(super) fn refused(tool: &str, refused: &Refused, context: &CallContext) {
    let reason = refused.to_string();
    tracing::info!(target: "cofferdam::call", id = context.call_id, ?tool, ?reason, "call refused");
}

/// The end of what a tool has printed.
fn tail(printed: &str) -> &str {
    let printed = printed.trim_end();
    let start = printed.len().saturating_sub(TAIL_BYTES_MAX);
    let start =
        (start..=printed.len()).find(|at| printed.is_char_boundary(*at)).unwrap_or_default();
    printed.get(start..).unwrap_or_default()
}
