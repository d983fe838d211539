//! The hostile suite against a binary: the attacks that consist of one call, with the ends that
//! `tests/it/hostile` requires.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use super::comparison::HostProgram;
use crate::run::{command, root, section, target_folder};

/// Attack that a platform ends in another way than the table of `tests/it/hostile` requires.
struct Exception {
    /// Part of the target's name.
    target: &'static str,
    attack: &'static str,
    reason: &'static str,
}

/// All exceptions. One whose attack ends as required after all is an error.
const EXCEPTIONS: &[Exception] = &[];

/// Attack in a file.
#[derive(Deserialize)]
struct Row {
    family: String,
    name: String,
    #[serde(flatten)]
    call: Option<Call>,
}

/// Call that is an attack.
#[derive(Deserialize)]
struct Call {
    component: String,
    tool: String,
    arguments: String,
    end: End,
}

/// Required end of an attack, as in `tests/it/hostile/arena.rs`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    /// An error of this type.
    Error(String),
    /// A failure that the tool reports.
    Failure,
    /// A success with this text.
    Says(String),
    /// A success with any text.
    Succeeds,
    /// The component is refused with a message that contains these words.
    Refused(String),
}

/// Writes the attacks into files.
pub(super) fn export() -> anyhow::Result<()> {
    section("writing the attacks of the hostile suite into files");
    std::fs::create_dir_all(folder())?;
    let test = ["--test", "it", "--", "--exact", "hostile::export::rows"];
    let arguments = [&["test", "--quiet", "--workspace"][..], &test].concat();
    let folder = folder();
    let value = crate::packages::text(&folder)?;
    command("cargo", &arguments).env("COFFERDAM_HOSTILE_FOLDER", value).run(&root())
}

/// Launches all attacks on a host, and prints how many ended as required.
///
/// # Errors
/// Returns an error that names the attacks that ended in another way.
pub(super) fn attack(host: &HostProgram, target: &str) -> anyhow::Result<()> {
    let rows = std::fs::read_to_string(folder().join("rows.jsonl"))?;
    let work = tempfile::tempdir()?;
    let (mut passed, mut other, mut skipped) = (0, Vec::new(), 0);
    let mut problems = Vec::new();
    for line in rows.lines() {
        let Row { family, name, call } = serde_json::from_str(line)?;
        let Some(call) = call else {
            skipped += 1;
            continue;
        };
        let exception = EXCEPTIONS
            .iter()
            .find(|exception| target.contains(exception.target) && exception.attack == name);
        let problem = call.problem(host, work.path()).unwrap_or_else(|e| Some(format!("{e:#}")));
        match (problem, exception) {
            (None, None) => passed += 1,
            (Some(_), Some(exception)) => other.push(format!("{name}: {}", exception.reason)),
            (Some(problem), None) => problems.push(format!("{family}: {name}: {problem}")),
            (None, Some(_)) => problems.push(format!("{name}: remove its exception")),
        }
    }
    if !problems.is_empty() {
        bail!("{} attacks ended in another way:\n{}", problems.len(), problems.join("\n"));
    }
    section(&format!(
        "{target}: {passed} attacks ended as required, {} in another known way, and {skipped} use \
         interfaces of the library and were not launched",
        other.len()
    ));
    other.iter().for_each(|line| section(line));
    Ok(())
}

impl Call {
    /// Launches the attack, and returns how its end differs from the required one.
    fn problem(&self, host: &HostProgram, work: &Path) -> anyhow::Result<Option<String>> {
        std::fs::copy(folder().join(&self.component), work.join(&self.component))?;
        let data = work.join("data");
        if data.exists() {
            std::fs::remove_dir_all(&data)?;
        }
        std::fs::create_dir(&data)?;
        std::fs::write(data.join("file.txt"), "content")?;
        // As in the suite: only attacks that must reach the limit have a short one.
        let expected = &self.end;
        let timeout = if expected.is_timeout() { "1s" } else { "60s" };
        let plugin = format!("hostile={}", self.component);
        let arguments = [
            "call",
            &self.tool,
            "-",
            "--json",
            "--yes",
            "--plugin",
            &plugin,
            "--mount",
            "data=data",
            "--timeout",
            timeout,
            "--cache-dir",
            "cache",
        ];
        let output = host.run(&arguments, &self.arguments, work)?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if errors.contains("panicked at") {
            return Ok(Some(format!("the host panicked: {errors}")));
        }
        if let End::Refused(words) = expected {
            let is_refused = output.status.code() == Some(4) && errors.contains(words.as_str());
            return Ok((!is_refused).then(|| {
                format!("expected a refusal with `{words}`, found {:?}: {errors}", output.status)
            }));
        }
        let found: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{:?} without a result: {errors}", output.status))?;
        let is_expected = expected.is_end_of(&found);
        Ok((!is_expected).then(|| {
            let short: String = found.to_string().chars().take(400).collect();
            format!("expected {expected:?}, found {short}")
        }))
    }
}

impl End {
    fn is_timeout(&self) -> bool {
        matches!(self, Self::Error(error_type) if error_type == "Timeout")
    }

    fn is_end_of(&self, found: &Value) -> bool {
        let outcome = text_at(found, "/outcome");
        match self {
            Self::Error(error_type) => {
                outcome == "error" && text_at(found, "/record/error_type") == error_type
            }
            Self::Failure => outcome == "failure",
            Self::Succeeds => outcome == "ok",
            Self::Says(expected) => {
                let result = found.get("result").unwrap_or(&Value::Null);
                let is_same = match result.as_str() {
                    Some(text) => text == expected,
                    None => {
                        serde_json::from_str::<Value>(expected).is_ok_and(|json| json == *result)
                    }
                };
                outcome == "ok" && is_same
            }
            Self::Refused(_) => false,
        }
    }
}

fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn folder() -> PathBuf {
    target_folder().join("hostile")
}
