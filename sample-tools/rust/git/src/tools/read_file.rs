//! Reads a file of a commit.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::repository::Repository;
use crate::{glob, line_diff, objects::Kind, output};

/// File of a commit, or a part of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileAt {
    /// Abbreviated name of the commit.
    commit: String,
    /// Number of lines of the file.
    lines: usize,
    text: String,
    /// True if lines after the last returned one were dropped because of `max_bytes`.
    truncated: bool,
}

/// Reads a text file as it is in a commit of a git repository, like `git show COMMIT:PATH`.
#[tool(title = "Read a file of a commit", read_only, idempotent, open_world = false, output_schema)]
pub fn git_read_file(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// Path of the file in the repository, for example `src/main.rs`.
    path: String,
    /// Branch, tag or commit.
    #[tool(default = "HEAD")]
    revision: String,
    /// Number of the first line to return, from 1.
    #[tool(default = 1)]
    first_line: usize,
    /// Number of the last line to return; the last one of the file if absent.
    last_line: Option<usize>,
    /// Maximum number of bytes to return, up to 524288.
    #[tool(default = 65_536)]
    max_bytes: usize,
) -> Result<FileAt, ToolFailure> {
    let repository = Repository::open(&repository)?;
    let commit = repository.resolve(&revision)?;
    let path = glob::clean(&path)?;
    let id = repository.file(&commit, &path)?;
    let data = repository.objects.read_as(&id, Kind::Blob)?;
    if !line_diff::is_text(&data) {
        let message = format!("`{path}` is a binary file of {} bytes", data.len());
        return Err(ToolFailure::new(message)
            .suggestion("pass the path of a text file")
            .permanent());
    }
    let lines = line_diff::lines(&data);
    let first = first_line.max(1) - 1;
    let selected: Vec<_> =
        lines.iter().take(last_line.unwrap_or(usize::MAX)).skip(first).copied().collect();
    let mut text = String::from_utf8_lossy(&selected.concat()).into_owned();
    let truncated = output::cut(&mut text, max_bytes);
    Ok(FileAt { commit: commit.id.short(), lines: lines.len(), text, truncated })
}
