//! Shows a commit.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::changes::{self, Differences};
use crate::commit::Summary;
use crate::glob::Paths;
use crate::repository::Repository;

/// Commit with its changes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Shown {
    /// Full name of the commit.
    id: String,
    commit: Summary,
    /// Changes from the first parent.
    changes: Differences,
}

/// Shows a commit of a git repository: its message and what it changes, like `git show`. Of a
/// merge, the changes from its first parent are shown.
#[tool(title = "Git show", read_only, idempotent, open_world = false, output_schema)]
pub fn git_show(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// Branch, tag or commit.
    #[tool(default = "HEAD")]
    revision: String,
    /// Show only changes of this file or directory.
    path: Option<String>,
    /// Number of unchanged lines around each change, up to 50.
    #[tool(default = 3)]
    context: usize,
    /// Maximum number of bytes of the differences, up to 524288; 0 for the list of files only. A
    /// list over 4096 bytes counts, and one over both 32768 bytes and this is cut.
    #[tool(default = 32_768)]
    max_bytes: usize,
) -> Result<Shown, ToolFailure> {
    let repository = Repository::open(&repository)?;
    let commit = repository.resolve(&revision)?;
    let parent = match commit.parents.first() {
        Some(parent) => Some(repository.commit(parent)?.tree),
        None => None,
    };
    let paths = Paths::below(path.as_deref())?;
    let objects = &repository.objects;
    let found = changes::between(objects, parent, Some(commit.tree), &paths)?;
    let changes = changes::compare(objects, found, context.min(50), max_bytes)?;
    Ok(Shown { id: commit.id.to_string(), commit: commit.summary(true), changes })
}
