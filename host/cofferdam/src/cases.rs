//! Cases: calls of a plugin's tools and the ends that its author expects, one JSON object per line.
//!
//! ```json
//! {"tool": "greet", "arguments": {"name": "Ada"}, "result": "Hello, Ada!"}
//! {"tool": "read", "arguments": {"file": "/data/a.txt"}, "mounts": {"data": {"a.txt": "hi"}}, "result": "hi"}
//! {"tool": "read", "arguments": {"file": "/data/b.txt"}, "mounts": {"data": "fixtures"}, "failure": {"message": "…"}}
//! ```
//!
//! Each case runs in a call of its own with just what it names. A directory that it mounts is left
//! as it was.

mod expect;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

pub use self::run::Runner;
use crate::Error;

/// File of cases in a project.
pub const FILE: &str = "cases.jsonl";
/// Longest file of cases.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A file of cases.
pub struct Cases {
    /// Mounts are relative to it.
    pub directory: PathBuf,
    /// Calls, in the order of the file.
    pub cases: Vec<TestCase>,
}

/// One call and its end. Just one of `result`, `contents`, `failure`, `failed`, `error` and
/// `invalid` says the end.
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
    /// Stores by name: a directory, or files with their text.
    #[serde(default)]
    mounts: BTreeMap<String, MountedFiles>,
    /// Values that the plugin is given, if it asks for them.
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    config: BTreeMap<String, String>,
    /// The value that a model sees.
    #[serde(default, deserialize_with = "some")]
    result: Option<Value>,
    /// Contents, as `cofferdam call --json` writes them.
    contents: Option<Value>,
    /// The error value of a failure that the tool reports.
    failure: Option<Value>,
    /// Any failure that the tool reports.
    #[serde(default)]
    failed: bool,
    /// The type of an error, or that by language.
    error: Option<ErrorName>,
    /// A part of what the host says of arguments that it refuses.
    invalid: Option<String>,
    /// The mark of a failure; null for none.
    #[serde(default, deserialize_with = "some")]
    transient: Option<Option<bool>>,
    /// A part of what the tool prints.
    stderr: Option<String>,
    /// Reports of progress: done, total, message. The host may leave out some of them.
    progress: Option<Vec<Step>>,
    /// All lines for the client: level, message.
    log: Option<Vec<(String, String)>>,
    /// Texts of files afterwards, by mount and path; null for a file that is not there.
    files: Option<BTreeMap<String, BTreeMap<String, Option<String>>>>,
    /// Expected declaration of the tool.
    definition: Option<ExpectedDefinition>,
    /// Languages that the case is about; none for all of them.
    #[serde(default)]
    only: Vec<String>,
    /// Languages that the case is not about.
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
    /// A directory beside the file of cases.
    Directory(PathBuf),
    /// Texts by path, in memory.
    Texts(BTreeMap<String, String>),
}

/// A report of progress: done, total, message.
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
    /// Hints that it has to have; others may be there.
    #[serde(default)]
    annotations: Map<String, Value>,
    /// True if it has an output schema.
    output_schema: Option<bool>,
    /// Parameters that have a description.
    #[serde(default)]
    described: Vec<String>,
    /// All parameters that are required.
    required: Option<Vec<String>>,
}

/// A field that is null is not one that is missing.
fn some<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

impl Cases {
    /// Reads a file.
    pub fn read(path: &Path) -> crate::Result<Self> {
        let wrong = |message: String| Error::Invalid(format!("{}{message}", path.display()));
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(format!(" cannot be read: {error}")))?;
        let mut cases = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with("//") {
                continue;
            }
            let line_number = index + 1;
            let case: Result<TestCase, _> = serde_json::from_str(line);
            let mut case = case.map_err(|error| wrong(format!(":{line_number}: {error}")))?;
            case.line = line_number;
            if case.ends() != 1 {
                let ends = "result, contents, failure, failed, error, invalid";
                return Err(wrong(format!(":{line_number}: a case has just one of {ends}")));
            }
            cases.push(case);
        }
        let directory = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { directory, cases })
    }

    /// Leaves out what is not about a language, and with a filter what does not have it in its name
    /// or tool.
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

    /// The first case that shows what a call costs: one that returns something.
    pub fn for_timing(&self) -> Option<&TestCase> {
        self.cases.iter().find(|case| case.result.is_some() || case.contents.is_some())
    }
}

impl TestCase {
    /// Returns a title for the report.
    pub fn title(&self) -> String {
        if self.name.is_empty() {
            format!("{} (line {})", self.tool, self.line)
        } else {
            self.name.clone()
        }
    }

    /// Returns the number of outcomes that the case names.
    fn ends(&self) -> usize {
        [
            self.result.is_some(),
            self.contents.is_some(),
            self.failure.is_some(),
            self.failed,
            self.error.is_some(),
            self.invalid.is_some(),
        ]
        .into_iter()
        .filter(|is_said| *is_said)
        .count()
    }
}
