//! Measurements of one thing, by round.

use std::time::Duration;

/// Numbers, summarized by their median.
#[derive(Default)]
pub(crate) struct Samples {
    all: Vec<f64>,
}

impl Samples {
    pub(crate) fn add(&mut self, sample: f64) {
        self.all.push(sample);
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns the first decile, the median and the ninth decile.
    pub(crate) fn deciles(&self) -> [f64; 3] {
        let mut sorted = self.all.clone();
        sorted.sort_by(f64::total_cmp);
        [0.1, 0.5, 0.9].map(|share| quantile(&sorted, share))
    }

    pub(crate) fn median(&self) -> f64 {
        let [_, median, _] = self.deciles();
        median
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        Self { all: samples.into_iter().collect() }
    }
}

impl FromIterator<Duration> for Samples {
    fn from_iter<I: IntoIterator<Item = Duration>>(samples: I) -> Self {
        samples.into_iter().map(|sample| sample.as_secs_f64()).collect()
    }
}

/// Rounds to three digits after the point, more than a measurement has.
pub(crate) fn rounded(number: f64) -> f64 {
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
