//! Searches the files of a commit.

use cofferdam_sdk::{ToolFailure, tool};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::glob::Paths;
use crate::line_diff;
use crate::objects::Kind;
use crate::repository::Repository;
use crate::tree::{self, EntryKind};

/// Maximum number of lines that a call returns, whatever it asks for.
const MATCHES_MAX: usize = 1000;

/// Maximum length of a line in a result, in bytes.
const LINE_BYTES_MAX: usize = 300;

/// Maximum number of bytes to search.
const SEARCHED_BYTES_MAX: usize = 256 << 20;

/// Maximum size of a compiled pattern in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Line that matches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Match {
    path: String,
    /// Number of the line, from 1.
    line: usize,
    /// Text of the line, cut to 300 bytes.
    text: String,
}

/// Lines that match.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Matches {
    /// Abbreviated name of the commit.
    commit: String,
    matches: Vec<Match>,
    /// Number of files that were searched.
    files: usize,
    /// Number of binary and large files that were not searched.
    skipped: usize,
    /// True if there may be more: narrow the pattern or the glob.
    truncated: bool,
}

/// Searches the text files of a commit of a git repository for a regular expression, like
/// `git grep`. Any commit can be searched, not only the one that is checked out.
#[tool(title = "Git grep", read_only, idempotent, open_world = false, output_schema)]
pub fn git_grep(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// Regular expression for one line, such as `fn \w+_test`; `(?i)` at its start ignores case.
    pattern: String,
    /// Branch, tag or commit.
    #[tool(default = "HEAD")]
    revision: String,
    /// Search only paths that match, for example `*.rs` or `src/**`.
    glob: Option<String>,
    /// Maximum number of lines to return, up to 1000.
    #[tool(default = 100)]
    count: usize,
) -> Result<Matches, ToolFailure> {
    let regex = RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES_MAX).build();
    let regex = regex.map_err(|error| {
        ToolFailure::new(format!("invalid regular expression: {error}"))
            .suggestion("escape `( ) [ ] { } . * + ? | ^ $ \\` with `\\` to search for them")
            .permanent()
    })?;
    let paths = Paths::matching(glob.as_deref())?;
    let repository = Repository::open(&repository)?;
    let commit = repository.resolve(&revision)?;
    let mut found = Matches {
        commit: commit.id.short(),
        matches: Vec::new(),
        files: 0,
        skipped: 0,
        truncated: false,
    };
    let count = count.min(MATCHES_MAX);
    let mut searched = 0;
    tree::walk(&repository.objects, commit.tree, &paths, &mut |path, entry| {
        if entry.kind != EntryKind::File {
            return Ok(true);
        }
        let data = match repository.objects.read_as(&entry.id, Kind::Blob) {
            Ok(data) if line_diff::is_text(&data) => data,
            Ok(_) | Err(Error::TooLarge { .. }) => {
                found.skipped += 1;
                return Ok(true);
            }
            Err(error) => return Err(error),
        };
        found.files += 1;
        searched += data.len();
        search(&regex, path, &data, count, &mut found);
        found.truncated |= searched > SEARCHED_BYTES_MAX;
        Ok(!found.truncated)
    })?;
    Ok(found)
}

fn search(regex: &Regex, path: &str, data: &[u8], count: usize, found: &mut Matches) {
    for (index, line) in data.split(|byte| *byte == b'\n').enumerate() {
        if !regex.is_match(line) {
            continue;
        }
        if found.matches.len() >= count {
            found.truncated = true;
            return;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let start = String::from_utf8_lossy(line.get(..LINE_BYTES_MAX).unwrap_or(line));
        let more = if line.len() > LINE_BYTES_MAX { "…" } else { "" };
        let text = start.into_owned() + more;
        found.matches.push(Match { path: path.to_owned(), line: index + 1, text });
    }
}
