//! Results of benchmarks, and their formats.

use serde_json::{Value, json};

use crate::ratio::Ratio;
use crate::samples::{Samples, rounded};

/// One row.
pub(crate) enum Measure {
    Ratio(Ratio),
    Amount(Amount),
}

impl From<Ratio> for Measure {
    fn from(ratio: Ratio) -> Self {
        Self::Ratio(ratio)
    }
}

impl From<Amount> for Measure {
    fn from(amount: Amount) -> Self {
        Self::Amount(amount)
    }
}

impl Measure {
    /// Formats the row as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Ratio(ratio) => ratio.to_json(),
            Self::Amount(amount) => amount.to_json(),
        }
    }

    /// Formats the row as a line of text.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Ratio(ratio) => ratio.to_text(),
            Self::Amount(amount) => amount.to_text(),
        }
    }

    /// Formats the row for the table that starts with [`MARKDOWN_HEAD`].
    pub(crate) fn to_markdown(&self) -> String {
        match self {
            Self::Ratio(ratio) => ratio.to_markdown(),
            Self::Amount(amount) => amount.to_markdown(),
        }
    }
}

/// Head of the table.
pub(crate) const MARKDOWN_HEAD: &str = "| measured | ours | reference | ratio | first to ninth \
    decile | goal |\n|---|---|---|---|---|---|";

/// Goal of the project for a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    /// Formats the goal, and whether `value` meets it.
    pub(crate) fn judged(self, value: f64, show: fn(f64) -> String) -> String {
        let (words, goal, is_met) = match self {
            Self::AtMost(goal) => ("at most", goal, value <= goal),
            Self::AtLeast(goal) => ("at least", goal, value >= goal),
        };
        format!("{words} {}: {}", show(goal), if is_met { "met" } else { "missed" })
    }
}

/// Unit of an amount.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Seconds,
}

/// An amount without a reference.
pub(crate) struct Amount {
    name: String,
    unit: Unit,
    goal: Option<Goal>,
    samples: Samples,
}

impl Amount {
    pub(crate) fn new(name: impl Into<String>, unit: Unit, samples: Samples) -> Self {
        Self { name: name.into(), unit, goal: None, samples }
    }

    pub(crate) fn with_goal(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }

    fn show(&self) -> fn(f64) -> String {
        match self.unit {
            Unit::Bytes => bytes,
            Unit::Seconds => time,
        }
    }

    fn to_json(&self) -> Value {
        let (unit, scale) = match self.unit {
            Unit::Bytes => ("bytes", 1.0),
            Unit::Seconds => ("us", 1e6),
        };
        let [low, median, high] = self.samples.deciles().map(|value| rounded(value * scale));
        json!({"name": self.name, "amount": median, "unit": unit, "spread": [low, high]})
    }

    fn to_text(&self) -> String {
        let show = self.show();
        let [low, median, high] = self.samples.deciles();
        let goal = self
            .goal
            .map(|goal| format!("; goal {}", goal.judged(median, show)))
            .unwrap_or_default();
        let (median, low, high) = (show(median), show(low), show(high));
        format!(
            "{}: {median} (spread {low} to {high}), {} rounds{goal}",
            self.name,
            self.samples.len()
        )
    }

    fn to_markdown(&self) -> String {
        let show = self.show();
        let [low, median, high] = self.samples.deciles();
        let goal = self.goal.map(|goal| goal.judged(median, show)).unwrap_or_default();
        format!(
            "| {} | {} | | | {} to {} | {goal} |",
            self.name,
            show(median),
            show(low),
            show(high)
        )
    }
}

/// Formats seconds in a readable unit.
pub(crate) fn time(seconds: f64) -> String {
    match seconds.abs() {
        size if size < 1e-6 => format!("{:.0} ns", seconds * 1e9),
        size if size < 10e-3 => format!("{:.1} µs", seconds * 1e6),
        size if size < 10.0 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

fn bytes(bytes: f64) -> String {
    match bytes.abs() {
        size if size < 1024.0 => format!("{bytes:.0} B"),
        size if size < 1024.0 * 1024.0 => format!("{:.1} KiB", bytes / 1024.0),
        _ => format!("{:.1} MiB", bytes / (1024.0 * 1024.0)),
    }
}
