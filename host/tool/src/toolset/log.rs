//! Log events of calls for the operator: one for each call with the target `cofferdam::call`, and
//! one for each line that a tool prints with `cofferdam::stderr`.

use crate::{CallContext, Completion, Outcome, RefusedCall};

/// Maximum bytes of a tool's output included in the event of its call.
const TAIL_BYTES_MAX: usize = 512;

/// Logs a call that has ended, as a warning if it ended in an error.
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

/// Logs a call that was not started.
pub(super) fn refused(tool: &str, refused: &RefusedCall, context: &CallContext) {
    let reason = refused.to_string();
    tracing::info!(target: "cofferdam::call", id = context.call_id, ?tool, ?reason, "call refused");
}

/// Returns the tail of a tool's output.
fn tail(printed: &str) -> &str {
    let printed = printed.trim_end();
    let start = printed.len().saturating_sub(TAIL_BYTES_MAX);
    let start =
        (start..=printed.len()).find(|at| printed.is_char_boundary(*at)).unwrap_or_default();
    printed.get(start..).unwrap_or_default()
}
