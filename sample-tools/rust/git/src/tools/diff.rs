//! Compares two commits.

use cofferdam_sdk::{ToolFailure, tool};

use crate::changes::{self, Differences};
use crate::glob::Paths;
use crate::repository::Repository;

/// Compares two commits of a git repository, like `git diff FROM TO`. Uncommitted changes are not
/// part of it.
#[tool(title = "Git diff", read_only, idempotent, open_world = false, output_schema)]
pub fn git_diff(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// Branch, tag or commit to compare from, for example `v1.0` or `main~5`.
    from: String,
    /// Branch, tag or commit to compare to.
    #[tool(default = "HEAD")]
    to: String,
    /// Compare only this file or directory.
    path: Option<String>,
    /// Number of unchanged lines around each change, up to 50.
    #[tool(default = 3)]
    context: usize,
    /// Maximum number of bytes of the differences, up to 524288; 0 for the list of files only. A
    /// list over 4096 bytes counts, and one over both 32768 bytes and this is cut.
    #[tool(default = 32_768)]
    max_bytes: usize,
) -> Result<Differences, ToolFailure> {
    let repository = Repository::open(&repository)?;
    let (from, to) = (repository.resolve(&from)?, repository.resolve(&to)?);
    let paths = Paths::below(path.as_deref())?;
    let objects = &repository.objects;
    let found = changes::between(objects, Some(from.tree), Some(to.tree), &paths)?;
    Ok(changes::compare(objects, found, context.min(50), max_bytes)?)
}
