//! Text format of Prometheus, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{BOUNDS, CAPABILITY, OUTCOMES, RefusalKey, ToolCounts, ToolKey};

const CALLS: &str = "cofferdam_calls_total";
const DURATION: &str = "cofferdam_call_duration_seconds";
const REFUSALS: &str = "cofferdam_refusals_total";
const IN_PROGRESS: &str = "cofferdam_calls_in_progress";

/// A current value, for a monitoring system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// Name of the metric.
    pub name: &'static str,
    /// Meaning of the value, in one line.
    pub help: &'static str,
    /// Current value.
    pub value: u64,
}

/// Returns the text of gauges, which can follow that of other metrics.
#[must_use]
pub fn gauges_text(gauges: &[Gauge]) -> String {
    let mut text = MetricsText::default();
    for gauge in gauges {
        text.family(gauge.name, "gauge", gauge.help);
        text.sample(gauge.name, &[], gauge.value);
    }
    text.0
}

/// Text that is being written.
#[derive(Default)]
struct MetricsText(String);

/// Returns the text of all metrics.
pub(super) fn write(
    tools: &BTreeMap<ToolKey, ToolCounts>,
    refusals: &BTreeMap<RefusalKey, u64>,
    in_progress: i64,
) -> String {
    let mut text = MetricsText::default();
    text.family(CALLS, "counter", "Calls of tools that have ended, by outcome.");
    for ((plugin, tool), counts) in tools {
        for (outcome, count) in OUTCOMES.iter().zip(counts.outcomes).filter(|(_, n)| *n > 0) {
            let labels = [("plugin", &**plugin), ("tool", tool), ("outcome", outcome)];
            text.sample(CALLS, &labels, count);
        }
    }
    text.family(DURATION, "histogram", "Durations of calls of tools, from start to end.");
    for ((plugin, tool), counts) in tools {
        text.histogram(plugin, tool, counts);
    }
    let help = "Calls that did not start, by reason, and calls that were refused a capability.";
    text.family(REFUSALS, "counter", help);
    for ((plugin, tool), counts) in tools.iter().filter(|(_, counts)| counts.refused > 0) {
        let labels = [("plugin", &**plugin), ("tool", tool), ("reason", CAPABILITY)];
        text.sample(REFUSALS, &labels, counts.refused);
    }
    for ((tool, reason), count) in refusals {
        let labels = [("plugin", ""), ("tool", &**tool), ("reason", reason)];
        text.sample(REFUSALS, &labels, count);
    }
    text.family(IN_PROGRESS, "gauge", "Calls of tools that have begun and not ended.");
    text.sample(IN_PROGRESS, &[], in_progress);
    text.0
}

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            self.label_value(value);
            self.0.push('"');
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// Writes the value of a label, with the escapes of the format.
    fn label_value(&mut self, value: &str) {
        for char in value.chars() {
            match char {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                // Not a line end of the format, but of some readers.
                '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => self.0.push(' '),
                char => self.0.push(char),
            }
        }
    }

    fn histogram(&mut self, plugin: &str, tool: &str, counts: &ToolCounts) {
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        let bucket = format!("{DURATION}_bucket");
        let mut total = 0;
        for (bound, count) in bounds.zip(counts.buckets) {
            total += count;
            self.sample(&bucket, &[("plugin", plugin), ("tool", tool), ("le", bound)], total);
        }
        let labels = [("plugin", plugin), ("tool", tool)];
        let (seconds, rest) =
            (counts.nanoseconds / 1_000_000_000, counts.nanoseconds % 1_000_000_000);
        self.sample(&format!("{DURATION}_sum"), &labels, format_args!("{seconds}.{rest:09}"));
        self.sample(&format!("{DURATION}_count"), &labels, total);
    }
}
