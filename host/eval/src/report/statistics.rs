//! Numbers of runs.

use serde::Serialize;

use super::{RunOutcome, RunReport};

/// Quantile of the normal distribution for intervals of 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// Numbers of several runs. Runs that ended with an error count only in `errors`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Number of runs that passed or failed.
    pub runs: u32,
    /// Number of runs that passed.
    pub passed: u32,
    /// Number of runs that failed.
    pub failed: u32,
    /// Number of runs that ended with an error.
    pub errors: u32,
    /// Share of the runs that passed, from 0 to 1; `None` without runs.
    pub rate: Option<f64>,
    /// Wilson interval of the rate: with 95 % confidence the true rate is inside of it, if the runs
    /// are independent. It is wide for few runs: 3 of 3 runs only show a rate above 0.43.
    pub rate_interval: Interval,
    /// Calls per run.
    pub calls: Spread,
    /// Model requests per run.
    pub rounds: Spread,
    /// Tokens of requests per run.
    pub input_tokens: Spread,
    /// Tokens of replies per run.
    pub output_tokens: Spread,
    /// Duration of a run in seconds.
    pub seconds: Spread,
    /// Number of calls whose result was an error, in all runs.
    pub failed_calls: u64,
    /// Number of runs that passed although a call failed.
    pub recovered: u32,
    /// Number of runs that a judge decided about.
    pub judged: u32,
    /// Number of these runs that the judge accepted.
    pub accepted: u32,
}

/// Mean and median of a number; 0 without runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Spread {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median: the mean of the two middle numbers if their count is even.
    pub median: f64,
}

/// Range of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Default for Interval {
    /// Returns the range of a rate that nothing is known about: 0 to 1.
    fn default() -> Self {
        Self { low: 0.0, high: 1.0 }
    }
}

impl Statistics {
    /// Computes the numbers of runs.
    pub fn of<'r>(runs: impl IntoIterator<Item = &'r RunReport>) -> Self {
        let (judged, errors): (Vec<_>, Vec<_>) =
            runs.into_iter().partition(|run| run.outcome != RunOutcome::Error);
        let is_passed = |run: &&&RunReport| run.outcome == RunOutcome::Passed;
        let passed = count(judged.iter().filter(is_passed));
        let runs = count(&judged);
        let spread = |number: fn(&RunReport) -> f64| {
            Spread::of(judged.iter().map(|run| number(run)).collect())
        };
        let judgments = judged.iter().filter_map(|run| run.judgment.as_ref());
        let recovered = judged.iter().filter(is_passed).filter(|run| run.failed_calls > 0);
        Self {
            runs,
            passed,
            failed: runs.saturating_sub(passed),
            errors: count(&errors),
            rate: (runs > 0).then(|| f64::from(passed) / f64::from(runs)),
            rate_interval: Interval::wilson(passed, runs),
            calls: spread(|run| float(run.call_count)),
            rounds: spread(|run| run.rounds.into()),
            input_tokens: spread(|run| float(run.input_tokens)),
            output_tokens: spread(|run| float(run.output_tokens)),
            seconds: spread(|run| run.seconds),
            failed_calls: judged.iter().fold(0, |sum, run| sum.saturating_add(run.failed_calls)),
            recovered: count(recovered),
            judged: count(judgments.clone()),
            accepted: count(judgments.filter(|judgment| judgment.is_accepted)),
        }
    }

    /// Returns the mean number of tokens of requests and replies per run.
    #[must_use]
    pub fn mean_tokens(&self) -> f64 {
        self.input_tokens.mean + self.output_tokens.mean
    }
}

impl Interval {
    /// Returns the Wilson interval of 95 % of a rate.
    fn wilson(passed: u32, runs: u32) -> Self {
        if runs == 0 {
            return Self::default();
        }
        let (n, rate) = (f64::from(runs), f64::from(passed) / f64::from(runs));
        let scale = 1.0 + Z * Z / n;
        let center = (rate + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (rate * (1.0 - rate) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Exact where rounding would leave a bound slightly off.
        let low = if passed == 0 { 0.0 } else { (center - half).max(0.0) };
        let high = if passed >= runs { 1.0 } else { (center + half).min(1.0) };
        Self { low, high }
    }
}

impl Spread {
    fn of(mut numbers: Vec<f64>) -> Self {
        numbers.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| numbers.get(index).copied().unwrap_or_default();
        let middle = numbers.len() / 2;
        let median = match numbers.len() % 2 {
            0 => f64::midpoint(at(middle.saturating_sub(1)), at(middle)),
            _ => at(middle),
        };
        // The sum of no numbers is -0.0.
        let mean = (0.0 + numbers.iter().sum::<f64>()) / float(numbers.len().max(1) as u64);
        Self { mean, median }
    }
}

fn count<T>(items: impl IntoIterator<Item = T>) -> u32 {
    u32::try_from(items.into_iter().count()).unwrap_or(u32::MAX)
}

/// Converts a count, rounding one above 2^53.
fn float(number: u64) -> f64 {
    number as f64
}
