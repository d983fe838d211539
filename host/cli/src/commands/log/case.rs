//! `cofferdam log to-case`: makes a test case of a recorded call.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use cofferdam::config::edit::replace_file;
use serde_json::json;

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
    // A last line without an end would swallow the case.
    let is_open =
        fs::read(&args.cases).is_ok_and(|text| !text.is_empty() && !text.ends_with(b"\n"));
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
