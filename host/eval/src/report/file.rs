//! Reports as JSON.

use std::collections::HashSet;
use std::io::Read;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::{CaseOutcome, CaseReport, Report, RunReport, Statistics};
use crate::case::PassCriterion;
use crate::text::read_limited;

/// Maximum bytes of a report that is read.
pub const REPORT_BYTES_MAX: u64 = 256 << 20;
/// Version of the JSON form of reports.
const VERSION: u64 = 1;

/// Error returned when reading a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The report cannot be read.
    #[error("{name} cannot be read: {source}")]
    Unreadable {
        /// Name of the file.
        name: String,
        /// Cause; `InvalidData` for bytes that are not UTF-8.
        source: std::io::Error,
    },
    /// The report is too large.
    #[error("{name}: expected at most {REPORT_BYTES_MAX} bytes, found more")]
    TooLarge {
        /// Name of the file.
        name: String,
    },
    /// The file is not a report.
    #[error("{name}: expected a report of an evaluation, found an error: {source}")]
    Invalid {
        /// Name of the file.
        name: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// The report has another version.
    #[error(
        "{name}: expected a report of version {VERSION}, found version {found}; run the cases again"
    )]
    Version {
        /// Name of the file.
        name: String,
        /// Version of the report.
        found: u64,
    },
    /// Two cases have the same name.
    #[error("{name}: expected each case once, found {case:?} twice")]
    Repeated {
        /// Name of the file.
        name: String,
        /// Name of the case.
        case: String,
    },
}

#[derive(Serialize)]
struct WrittenReport<'r> {
    version: u64,
    subject: &'r str,
    model: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    judge: Option<&'r str>,
    complete: bool,
    total: Statistics,
    cases: Vec<WrittenCase<'r>>,
}

#[derive(Serialize)]
struct WrittenCase<'r> {
    name: &'r str,
    outcome: CaseOutcome,
    pass: PassCriterion,
    #[serde(skip_serializing_if = "Option::is_none")]
    pass_power_k: Option<f64>,
    planned: u32,
    statistics: Statistics,
    case: &'r Value,
    runs: &'r [RunReport],
}

/// A report in its file. Numbers and outcomes are computed again from the runs.
#[derive(Deserialize)]
struct ReadReport {
    #[serde(default)]
    subject: String,
    #[serde(default)]
    model: String,
    #[serde(default)]
    judge: Option<String>,
    cases: Vec<ReadCase>,
}

#[derive(Deserialize)]
struct ReadCase {
    name: String,
    pass: PassCriterion,
    planned: u32,
    #[serde(default)]
    case: Value,
    runs: Vec<RunReport>,
}

/// Version of a report, whose other fields it determines.
#[derive(Deserialize)]
struct ReadVersion {
    version: u64,
}

impl Report {
    /// Reads a report of at most [`REPORT_BYTES_MAX`] bytes in its JSON form. Messages refer to it
    /// by `name`.
    ///
    /// # Errors
    /// [`ReportError`] if the report cannot be read or is not one of this version.
    pub fn read(name: &str, reader: impl Read) -> Result<Self, ReportError> {
        let name = name.to_owned();
        let text = match read_limited(reader, REPORT_BYTES_MAX) {
            Ok(Some(text)) => text,
            Ok(None) => return Err(ReportError::TooLarge { name }),
            Err(source) => return Err(ReportError::Unreadable { name, source }),
        };
        let read = match serde_json::from_str::<ReadVersion>(&text) {
            Ok(ReadVersion { version }) if version == VERSION => serde_json::from_str(&text),
            Ok(ReadVersion { version }) => {
                return Err(ReportError::Version { name, found: version });
            }
            Err(source) => Err(source),
        };
        let read: ReadReport = match read {
            Ok(read) => read,
            Err(source) => return Err(ReportError::Invalid { name, source }),
        };
        let mut names = HashSet::new();
        if let Some(case) = read.cases.iter().find(|case| !names.insert(&case.name)) {
            return Err(ReportError::Repeated { name, case: case.name.clone() });
        }
        let cases = read.cases.into_iter().map(CaseReport::from).collect();
        Ok(Self { subject: read.subject, model: read.model, judge: read.judge, cases })
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let cases = self.cases.iter().map(|report| WrittenCase {
            name: &report.name,
            outcome: report.outcome(),
            pass: report.pass,
            pass_power_k: report.pass_power_k(),
            planned: report.planned,
            statistics: report.statistics(),
            case: &report.case,
            runs: &report.runs,
        });
        let written = WrittenReport {
            version: VERSION,
            subject: &self.subject,
            model: &self.model,
            judge: self.judge.as_deref(),
            complete: self.is_complete(),
            total: self.total(),
            cases: cases.collect(),
        };
        written.serialize(to)
    }
}

impl From<ReadCase> for CaseReport {
    fn from(ReadCase { name, pass, planned, case, runs }: ReadCase) -> Self {
        Self { name, case, pass, planned, runs }
    }
}
