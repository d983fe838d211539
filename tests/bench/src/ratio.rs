//! Two things measured side by side.

use std::time::Duration;

use serde_json::{Value, json};

/// The time of ours and of the reference, round by round.
pub(crate) struct Ratio {
    name: String,
    rounds: Vec<(Duration, Duration)>,
}

impl Ratio {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), rounds: Vec::new() }
    }

    /// Adds a round: the time of one operation of ours and of the reference.
    pub(crate) fn add(&mut self, ours: Duration, reference: Duration) {
        self.rounds.push((ours, reference));
    }

    /// The ratios of all rounds, sorted.
    fn ratios(&self) -> Vec<f64> {
        let ratio = |(ours, reference): &(Duration, Duration)| ours.as_secs_f64() / reference.as_secs_f64();
        let mut ratios: Vec<_> = self.rounds.iter().map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    }

    fn micros(&self, side: fn(&(Duration, Duration)) -> Duration) -> f64 {
        let mut times: Vec<_> = self.rounds.iter().map(|round| side(round).as_secs_f64() * 1e6).collect();
        times.sort_by(f64::total_cmp);
        quantile(&times, 0.5)
    }

    /// `name`, medians of both sides in microseconds, the median ratio, and the first and ninth decile of the ratio.
    pub(crate) fn to_json(&self) -> Value {
        let ratios = self.ratios();
        json!({
            "name": self.name,
            "ours": {"median_us": rounded(self.micros(|round| round.0))},
            "reference": {"median_us": rounded(self.micros(|round| round.1))},
            "ratio": rounded(quantile(&ratios, 0.5)),
            "spread": [rounded(quantile(&ratios, 0.1)), rounded(quantile(&ratios, 0.9))],
        })
    }

    /// The same in one line.
    pub(crate) fn to_text(&self) -> String {
        let ratios = self.ratios();
        format!(
            "{}: ratio {:.2} (spread {:.2} to {:.2}); ours {:.1} µs, reference {:.1} µs, {} rounds",
            self.name,
            quantile(&ratios, 0.5),
            quantile(&ratios, 0.1),
            quantile(&ratios, 0.9),
            self.micros(|round| round.0),
            self.micros(|round| round.1),
            ratios.len()
        )
    }
}

fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an index into a short list"
)]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}
