//! Reports of evaluations.

mod file;
mod statistics;
#[cfg(test)]
pub(crate) mod tests;
mod text;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use file::{REPORT_BYTES_MAX, ReportError};
pub use statistics::{Interval, Spread, Statistics};
pub(crate) use text::rate;

use crate::case::{EvalCase, PassCriterion};
use crate::text::cut;
use crate::{Judgment, ObservedCall};

/// Maximum number of characters of an answer in a report.
const ANSWER_CHARS_MAX: usize = 4000;
/// Maximum bytes of the arguments of a call in a report.
const ARGUMENTS_BYTES_MAX: usize = 16 << 10;
/// Maximum number of calls of a run in a report. The numbers of the run count all of them.
const CALLS_MAX: usize = 200;

/// Result of an evaluation. Its JSON form has a version, and [`Report::read`] reads it again; see
/// [`Statistics`] for the numbers in it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Description of what was evaluated, such as a plugin and its version. Set by the caller.
    pub subject: String,
    /// Name of the model. Set by the caller.
    pub model: String,
    /// Name of the model that judged, if any. Set by the caller.
    pub judge: Option<String>,
    /// Cases, in the order of their file.
    pub cases: Vec<CaseReport>,
}

/// Result of one case.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CaseReport {
    /// Name of the case.
    pub name: String,
    /// The case as its author wrote it.
    pub case: Value,
    /// Condition under which the case passes.
    pub pass: PassCriterion,
    /// Number of runs that were planned.
    pub planned: u32,
    /// Runs that ended, by number. Canceled runs are absent.
    pub runs: Vec<RunReport>,
}

/// Result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunReport {
    /// Number of the run within its case, from 1.
    pub number: u32,
    /// Outcome of the run.
    pub outcome: RunOutcome,
    /// Sentences that explain the outcome; empty if the run passed.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Calls that the model made, at most the first 200, with arguments of at most 16 KiB.
    #[serde(default)]
    pub calls: Vec<ObservedCall>,
    /// Number of calls that the model made.
    pub call_count: u64,
    /// Number of these calls whose result was an error.
    pub failed_calls: u64,
    /// Last answer of the model, at most the first 4000 characters.
    #[serde(default)]
    pub answer: String,
    /// Decision of the judge, if the case has a rubric and the run passed all rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgment: Option<Judgment>,
    /// Number of model requests.
    pub rounds: u32,
    /// Tokens of requests.
    pub input_tokens: u64,
    /// Tokens of replies.
    pub output_tokens: u64,
    /// Duration in seconds.
    pub seconds: f64,
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// The run met all expectations.
    Passed,
    /// The run did not meet an expectation.
    Failed,
    /// The run says nothing about the tools, because the provider or the setup failed.
    Error,
}

/// Outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaseOutcome {
    /// The case passed, whatever the missing runs would have done.
    Passed,
    /// The case failed, whatever the missing runs would have done.
    Failed,
    /// The outcome depends on runs that ended with an error or were canceled.
    Incomplete,
}

impl Report {
    /// Returns the numbers of all cases together.
    #[must_use]
    pub fn total(&self) -> Statistics {
        Statistics::of(self.cases.iter().flat_map(|case| &case.runs))
    }

    /// Returns whether all planned runs ended without an error.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.cases.iter().all(|case| case.undecided() == 0)
    }

    /// Returns whether all cases passed.
    #[must_use]
    pub fn is_passed(&self) -> bool {
        self.cases.iter().all(|case| case.outcome() == CaseOutcome::Passed)
    }
}

impl CaseReport {
    pub(crate) fn new(case: &EvalCase, planned: u32, mut runs: Vec<RunReport>) -> Self {
        runs.sort_by_key(|run| run.number);
        let (name, written) = (case.name.clone(), case.written.clone());
        Self { name, case: written, pass: case.pass, planned, runs }
    }

    /// Returns the numbers of the case.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics::of(&self.runs)
    }

    /// Returns the outcome of the case.
    #[must_use]
    pub fn outcome(&self) -> CaseOutcome {
        let passed = self.count(RunOutcome::Passed);
        if self.pass.is_met(passed, self.planned) {
            CaseOutcome::Passed
        } else if self.pass.is_met(passed.saturating_add(self.undecided()), self.planned) {
            CaseOutcome::Incomplete
        } else {
            CaseOutcome::Failed
        }
    }

    /// Returns the estimated probability that k runs all pass (pass^k), if the case asks for it and
    /// enough runs were judged: C(passed, k) / C(judged, k), as τ-bench estimates it.
    #[must_use]
    pub fn pass_power_k(&self) -> Option<f64> {
        let PassCriterion::K(k) = self.pass else { return None };
        let (passed, failed) = (self.count(RunOutcome::Passed), self.count(RunOutcome::Failed));
        let judged = passed.saturating_add(failed);
        (judged >= k).then(|| {
            let share = |i: u32| {
                f64::from(passed.saturating_sub(i)) / f64::from(judged.saturating_sub(i).max(1))
            };
            (0..k).map(share).product()
        })
    }

    /// Returns the number of planned runs that neither passed nor failed.
    fn undecided(&self) -> u32 {
        let judged = self.count(RunOutcome::Passed).saturating_add(self.count(RunOutcome::Failed));
        self.planned.saturating_sub(judged)
    }

    fn count(&self, outcome: RunOutcome) -> u32 {
        let count = self.runs.iter().filter(|run| run.outcome == outcome).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}

impl PassCriterion {
    /// Returns whether a case passes of whose `planned` runs `passed` passed.
    fn is_met(self, passed: u32, planned: u32) -> bool {
        match self {
            Self::All => passed >= planned,
            // A tolerance for rates that binary fractions round up, such as 0.7 of 10 runs.
            Self::Rate(rate) => f64::from(passed) + 1e-9 >= rate * f64::from(planned),
            Self::K(k) => passed >= k,
        }
    }
}

impl RunReport {
    /// Shortens what could make a report too large to be read.
    pub(crate) fn shortened(mut self) -> Self {
        self.answer = cut(&self.answer, ANSWER_CHARS_MAX);
        self.calls.truncate(CALLS_MAX);
        for call in &mut self.calls {
            let json = call.arguments.to_string();
            if json.len() > ARGUMENTS_BYTES_MAX {
                call.arguments = cut(&json, ARGUMENTS_BYTES_MAX / 4).into();
            }
        }
        self
    }
}
