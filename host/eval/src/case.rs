//! Cases: prompts with the calls and the answer that their author expects.

mod error;
mod fields;
mod file;
mod read;
#[cfg(test)]
mod tests;
mod unique;

use cofferdam_tool::OutputSchema;
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error::{CasesError, InvalidCase, InvalidLine};
pub use file::{CASES_MAX, FILE_BYTES_MAX, read_cases};

/// Maximum number of runs of one case.
pub const RUNS_MAX: u32 = 1000;
/// Maximum number of expected calls of one case.
pub const EXPECTED_CALLS_MAX: usize = 64;
/// Maximum of `min` and `max` of an expected call.
pub const CALL_COUNT_MAX: u32 = 64;

/// A prompt and what its author expects of a run. [`read_cases`] reads cases from a file, and
/// [`from_value`](Self::from_value) converts one.
#[derive(Debug)]
#[non_exhaustive]
pub struct EvalCase {
    /// Name for reports, unique in its file.
    pub name: String,
    /// User messages, at least one. Each starts a turn of the same session.
    pub turns: Vec<String>,
    /// Number of runs.
    pub runs: u32,
    /// Condition under which the case passes.
    pub pass: PassCriterion,
    /// Calls that a run has to make.
    pub calls: Vec<ExpectedCall>,
    /// Order of these calls.
    pub order: CallOrder,
    /// Maximum number of calls that are not expected; `None` is unlimited.
    pub extra: Option<u32>,
    /// Tools that a run may not call.
    pub forbidden: Vec<String>,
    /// True if a run may not call any tool.
    pub none: bool,
    /// Conditions on the last answer of a run.
    pub answer: ExpectedAnswer,
    /// Description of a good run, for a judge.
    pub rubric: Option<String>,
    /// Limits of a run.
    pub limits: RunLimits,
    /// The case as its author wrote it, for reports.
    pub(crate) written: Value,
}

/// Condition under which a case passes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PassCriterion {
    /// All runs pass.
    #[default]
    All,
    /// At least this share of the runs passes: more than 0, at most 1.
    Rate(f64),
    /// At least this number of runs passes, so that pass^k (the estimated probability that k runs
    /// all pass) is more than 0.
    K(u32),
}

/// A call that a run has to make.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExpectedCall {
    /// Name of the tool.
    pub tool: String,
    /// Expected arguments.
    pub arguments: Map<String, Value>,
    /// Comparison of the arguments.
    pub matching: ArgumentMatch,
    /// Minimum number of such calls, if the case sets one.
    pub min: Option<u32>,
    /// Maximum number of such calls, if the case sets one.
    pub max: Option<u32>,
}

/// Comparison of the arguments of a call. Numbers are compared by value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ArgumentMatch {
    /// The call has at least the expected arguments. Objects inside of them may have further
    /// members; lists have the same length.
    #[default]
    Partial,
    /// The call has exactly the expected arguments.
    Exact,
    /// Arguments are not compared.
    Ignore,
}

/// Order of the expected calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// Any order.
    #[default]
    Any,
    /// The order of the case, with extra calls anywhere.
    InOrder,
    /// The order of the case, without extra calls.
    Exact,
}

/// Conditions on the last answer of a run; all of them have to hold.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ExpectedAnswer {
    /// Strings that the answer contains.
    pub contains: Vec<String>,
    /// Strings that the answer does not contain.
    pub not_contains: Vec<String>,
    /// Pattern that is found in the answer.
    pub regex: Option<Regex>,
    /// The answer: a string, compared without surrounding white space, or another JSON value that
    /// the answer has to be.
    pub equals: Option<Value>,
    /// JSON Schema by which the answer is valid JSON.
    pub schema: Option<OutputSchema>,
}

/// Limits of one run. `None` is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct RunLimits {
    /// Maximum number of model requests in all turns.
    pub rounds: Option<u32>,
    /// Maximum number of tokens of requests and replies. A run that exceeds it is ended.
    pub tokens: Option<u64>,
    /// Maximum duration in seconds. A run that exceeds it is ended.
    pub seconds: Option<f64>,
}

impl EvalCase {
    /// Converts the JSON object of a case. Repeated keys are found only by [`read_cases`].
    ///
    /// # Errors
    /// [`InvalidCase`] for the first field that is unknown or has the wrong form.
    pub fn from_value(case: &Value) -> Result<Self, InvalidCase> {
        read::case(case)
    }
}

impl ExpectedCall {
    /// Returns the minimum number of such calls: 1 unless the case sets `min`, or `max` to 0.
    #[must_use]
    pub fn min(&self) -> u32 {
        self.min.unwrap_or_else(|| self.max.map_or(1, |max| max.min(1)))
    }

    /// Returns the number of calls that count as expected; `None` is unlimited. Without `min` and
    /// `max` it is 1, and further calls are extra calls.
    #[must_use]
    pub fn capacity(&self) -> Option<u32> {
        match (self.min, self.max) {
            (_, Some(max)) => Some(max),
            (Some(_), None) => None,
            (None, None) => Some(1),
        }
    }
}
