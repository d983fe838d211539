//! `cofferdam log to-case`: makes a test case of a recorded call.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use cofferdam::config::edit::replace_file;
use serde_json::{Value, json};

use crate::args::log::LogCaseArgs;
use crate::exit::{Exit, UsageError};
use crate::{commands, print};

/// Folder of recordings beside a file of cases.
const FOLDER: &str = "recordings";

/// Writes the recording of a call, and adds a case that uses it.
pub(super) fn add(args: &LogCaseArgs) -> anyhow::Result<Exit> {
    let Some(log) = super::open(&args.log)? else { return Ok(Exit::Usage) };
    let call = log.find(&args.id).map_err(|error| UsageError(error.to_string()))?;
    let recording = log.recording(&call)?.ok_or_else(|| commands::not_recorded(&call))?;
    let directory = args.cases.parent().unwrap_or(Path::new(""));
    let name = format!("{FOLDER}/{}.json", call.id);
    let file = directory.join(&name);
    fs::create_dir_all(directory.join(FOLDER))
        .with_context(|| format!("{} cannot be created", directory.join(FOLDER).display()))?;
    replace_file(&file, serde_json::to_string_pretty(&recording)?.as_bytes())?;
    let title = args.name.as_deref().unwrap_or(&call.id);
    let case = json!({"name": title, "tool": call.tool, "recording": name});
    let shown = args.cases.display();
    let before = fs::read(&args.cases).unwrap_or_default();
    let before = String::from_utf8_lossy(&before);
    if before.lines().any(|line| is_case_of(line, &name)) {
        print::note(&format!("{shown} has a case of this call already"));
        return Ok(Exit::Ok);
    }
    // A last line without an end would swallow the case.
    let is_open = !before.is_empty() && !before.ends_with('\n');
    let separator = if is_open { "\n" } else { "" };
    let mut cases = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&args.cases)
        .with_context(|| format!("{shown} cannot be written"))?;
    writeln!(cases, "{separator}{case}").with_context(|| format!("{shown} cannot be written"))?;
    print::note(&format!("added to {shown}; the recording is {}", file.display()));
    for gap in &recording.gaps {
        print::note(&format!("note: the replay is approximate: {gap}"));
    }
    Ok(Exit::Ok)
}

/// Returns whether a line of cases uses a recording.
fn is_case_of(line: &str, recording: &str) -> bool {
    let case: Result<Value, _> = serde_json::from_str(line);
    case.is_ok_and(|case| case.get("recording").and_then(Value::as_str) == Some(recording))
}
