//! Cases: calls of a plugin's tools with the outcomes that its author expects, one JSON object per
//! line.
//!
//! ```json
//! {"tool": "greet", "arguments": {"name": "Ada"}, "result": "Hello, Ada!"}
//! {"tool": "read", "arguments": {"file": "/data/a.txt"}, "mounts": {"data": {"a.txt": "hi"}}, "result": "hi"}
//! {"tool": "read", "arguments": {"file": "/data/b.txt"}, "mounts": {"data": "fixtures"}, "failure": {"message": "…"}}
//! ```
//!
//! Each case runs in its own call, with only the grants that it names. A directory that it mounts
//! is left unchanged.

mod expect;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::run::Runner;
use crate::Error;

/// Name of the file of cases in a project.
pub const FILE: &str = "cases.jsonl";
/// Maximum bytes of a file of cases.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Cases of one file.
pub struct Cases {
    /// Directory of the file. Paths of mounts are relative to it.
    pub directory: PathBuf,
    /// Calls, in the order of the file.
    pub cases: Vec<TestCase>,
    /// Lines that are not a case.
    pub malformed: Vec<MalformedCase>,
}

/// Line that is not a case.
pub struct MalformedCase {
    /// Line in the file, from 1.
    pub line: usize,
    /// Description of the error.
    pub message: String,
}

/// One call and its expected outcome. Exactly one of `result`, `contents`, `failure`, `failed`,
/// `error`, `invalid` and `recording` is set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCase {
    /// Title for the report.
    #[serde(default)]
    name: String,
    /// Name of the tool.
    pub tool: String,
    #[serde(default)]
    pub(crate) arguments: Map<String, Value>,
    /// Stores by name: a directory, or files with their content.
    #[serde(default)]
    mounts: BTreeMap<String, MountedFiles>,
    /// Values for the plugin, if it requests them.
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    config: BTreeMap<String, String>,
    /// Value that a model sees.
    #[serde(default, deserialize_with = "some")]
    result: Option<Value>,
    /// Contents, as `cofferdam call --json` writes them.
    contents: Option<Value>,
    /// Error value of a failure that the tool reports.
    failure: Option<Value>,
    /// Any failure that the tool reports.
    #[serde(default)]
    failed: bool,
    /// Type of an error, or its types by language.
    error: Option<ErrorName>,
    /// Part of the host's message about invalid arguments.
    invalid: Option<String>,
    /// Expected transient flag of a failure; null for none.
    #[serde(default, deserialize_with = "some")]
    transient: Option<Option<bool>>,
    /// Part of the tool's output.
    stderr: Option<String>,
    /// Progress reports: done, total, message. The host may drop some of them.
    progress: Option<Vec<Step>>,
    /// All log lines for the client: level, message.
    log: Option<Vec<(String, String)>>,
    /// File with the recording of a call, relative to the file of cases. The call runs again with
    /// the recorded inputs and must end like the recorded one.
    recording: Option<PathBuf>,
    /// Content of files after the call, by mount and path; null for a file that does not exist.
    files: Option<BTreeMap<String, BTreeMap<String, Option<String>>>>,
    /// Expected declaration of the tool.
    definition: Option<ExpectedDefinition>,
    /// Languages that the case applies to; empty for all.
    #[serde(default)]
    only: Vec<String>,
    /// Languages that the case does not apply to.
    #[serde(default)]
    except: Vec<String>,
    /// Line in the file, from 1.
    #[serde(skip)]
    line: usize,
}

/// Files of a mount.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum MountedFiles {
    /// Directory, relative to the file of cases.
    Directory(PathBuf),
    /// Content of files by path, in memory.
    Texts(BTreeMap<String, String>),
}

/// Progress report: done, total, message.
type Step = (f64, Option<f64>, Option<String>);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ErrorName {
    Any(String),
    ByLanguage(BTreeMap<String, String>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectedDefinition {
    title: Option<String>,
    /// Required hints; the tool may have others.
    #[serde(default)]
    annotations: Map<String, Value>,
    /// True if it has an output schema.
    output_schema: Option<bool>,
    /// Parameters that have a description.
    #[serde(default)]
    described: Vec<String>,
    /// All required parameters.
    required: Option<Vec<String>>,
}

/// Distinguishes a null field from a missing one.
fn some<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Cases {
    /// Reads a file of cases.
    pub fn read(path: &Path) -> crate::Result<Self> {
        let wrong = |message: String| Error::Invalid(format!("{}{message}", path.display()));
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(format!(" cannot be read: {error}")))?;
        let (mut cases, mut malformed) = (Vec::new(), Vec::new());
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with("//") {
                continue;
            }
            let line_number = index + 1;
            match TestCase::parse(line) {
                Ok(case) => cases.push(TestCase { line: line_number, ..case }),
                Err(message) => malformed.push(MalformedCase { line: line_number, message }),
            }
        }
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { directory, cases, malformed })
    }

    /// Removes cases that do not apply to `language`, and those with `filter` in neither title nor
    /// tool.
    pub fn retain(&mut self, language: Option<&str>, filter: Option<&str>) {
        self.cases.retain(|case| {
            let is_about = language.is_none_or(|language| {
                let is_in = |languages: &[String]| languages.iter().any(|name| name == language);
                (case.only.is_empty() || is_in(&case.only)) && !is_in(&case.except)
            });
            is_about
                && filter.is_none_or(|text| case.title().contains(text) || case.tool.contains(text))
        });
    }

    /// Returns the first case that returns a value, to measure the duration of a call.
    pub fn for_timing(&self) -> Option<&TestCase> {
        self.cases.iter().find(|case| case.result.is_some() || case.contents.is_some())
    }
}

impl TestCase {
    /// Parses a line. Returns a description of the error if it is not a case.
    fn parse(line: &str) -> Result<Self, String> {
        let case: Self = serde_json::from_str(line).map_err(|error| {
            // Each case is a line of its own.
            let message = error.to_string();
            let position = format!(" at line 1 column {}", error.column());
            let message = message.strip_suffix(&position).unwrap_or(&message);
            format!("not a case: {message} at column {}", error.column())
        })?;
        if case.expectation_count() == 1 {
            return Ok(case);
        }
        let outcomes = "result, contents, failure, failed, error, invalid, recording";
        Err(format!(
            "a case has exactly one of {outcomes}; this one has {}",
            case.expectation_count()
        ))
    }

    /// Returns a title for the report.
    pub fn title(&self) -> String {
        if self.name.is_empty() {
            format!("{} (line {})", self.tool, self.line)
        } else {
            self.name.clone()
        }
    }

    /// Returns the number of outcomes that the case names.
    fn expectation_count(&self) -> usize {
        [
            self.result.is_some(),
            self.contents.is_some(),
            self.failure.is_some(),
            self.failed,
            self.error.is_some(),
            self.invalid.is_some(),
            self.recording.is_some(),
        ]
        .into_iter()
        .filter(|is_said| *is_said)
        .count()
    }
}
