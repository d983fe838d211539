//! Two things measured side by side.

use std::time::Duration;

use serde_json::{Value, json};

use crate::effort::Effort;
use crate::measure::{Amount, Goal, Unit, time};
use crate::samples::{Samples, rounded};

/// Compared quantity.
#[derive(Clone, Copy)]
enum Of {
    /// Seconds per operation: less is better.
    Times,
    /// Operations per second: more is better.
    Rates,
}

/// Measurements of ours and of the reference, by round.
pub(crate) struct Ratio {
    name: String,
    of: Of,
    goal: Option<Goal>,
    rounds: Vec<(f64, f64)>,
}

impl Ratio {
    /// Compares the times of one operation.
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), of: Of::Times, goal: None, rounds: Vec::new() }
    }

    /// Compares operations per second.
    pub(crate) fn of_rates(name: impl Into<String>) -> Self {
        Self { of: Of::Rates, ..Self::new(name) }
    }

    pub(crate) fn with_goal(self, goal: Goal) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// Adds a round: the time of one operation of ours and of the reference.
    pub(crate) fn add(&mut self, ours: Duration, reference: Duration) {
        let sides = (ours.as_secs_f64(), reference.as_secs_f64());
        self.rounds.push(match self.of {
            Of::Times => sides,
            Of::Rates => (sides.0.recip(), sides.1.recip()),
        });
    }

    /// Measures both sides in turn. The side that comes first changes from round to round.
    pub(crate) async fn alternate(
        mut self,
        effort: Effort,
        rounds: usize,
        mut ours: impl AsyncFnMut() -> anyhow::Result<Duration>,
        mut reference: impl AsyncFnMut() -> anyhow::Result<Duration>,
    ) -> anyhow::Result<Self> {
        let (warming, rounds) = (effort.warming(), effort.rounds(rounds));
        for round in 0..warming + rounds {
            let (mut our_time, mut reference_time) = (Duration::ZERO, Duration::ZERO);
            for turn in 0..2 {
                if (round + turn) % 2 == 0 {
                    our_time = ours().await?;
                } else {
                    reference_time = reference().await?;
                }
            }
            if round >= warming {
                self.add(our_time, reference_time);
            }
        }
        Ok(self)
    }

    /// Returns the additional time of one operation of ours.
    pub(crate) fn difference(self) -> Amount {
        let differences: Samples =
            self.rounds.iter().map(|(ours, reference)| ours - reference).collect();
        Amount::new(self.name, Unit::Seconds, differences)
    }

    fn side(&self, side: fn(&(f64, f64)) -> f64) -> f64 {
        self.rounds.iter().map(side).collect::<Samples>().median()
    }

    /// Returns the first decile, median and ninth decile of the ratio, and the medians of both
    /// sides.
    fn summary(&self) -> ([f64; 3], f64, f64) {
        let ratios: Samples =
            self.rounds.iter().map(|(ours, reference)| ours / reference).collect();
        (ratios.deciles(), self.side(|round| round.0), self.side(|round| round.1))
    }

    fn show(&self) -> fn(f64) -> String {
        match self.of {
            Of::Times => time,
            Of::Rates => |rate| format!("{rate:.0}/s"),
        }
    }

    /// Formats `name`, the medians of both sides, the median ratio, and the first and ninth decile
    /// of the ratio as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let ([low, median, high], ours, reference) = self.summary();
        let side = |value: f64| match self.of {
            Of::Times => json!({"median_us": rounded(value * 1e6)}),
            Of::Rates => json!({"median_per_second": rounded(value)}),
        };
        json!({
            "name": self.name,
            "ours": side(ours),
            "reference": side(reference),
            "ratio": rounded(median),
            "spread": [rounded(low), rounded(high)],
        })
    }

    /// Formats the same as a line of text.
    pub(crate) fn to_text(&self) -> String {
        let ([low, median, high], ours, reference) = self.summary();
        let show = self.show();
        let goal = self
            .goal
            .map(|goal| format!("; goal {}", goal.judged(median, plain)))
            .unwrap_or_default();
        format!(
            "{}: ratio {median:.2} (spread {low:.2} to {high:.2}); ours {}, reference {}, {} \
             rounds{goal}",
            self.name,
            show(ours),
            show(reference),
            self.rounds.len(),
        )
    }

    /// Formats the same as a row of a table.
    pub(crate) fn to_markdown(&self) -> String {
        let ([low, median, high], ours, reference) = self.summary();
        let show = self.show();
        let goal = self.goal.map(|goal| goal.judged(median, plain)).unwrap_or_default();
        format!(
            "| {} | {} | {} | {median:.2} | {low:.2} to {high:.2} | {goal} |",
            self.name,
            show(ours),
            show(reference),
        )
    }
}

fn plain(number: f64) -> String {
    format!("{number}")
}
