//! Searches the files of a store for a pattern (`FILE-28` to `FILE-33`).
//!
//! Patterns are regular expressions without look-around and back-references, so that a search takes
//! time proportional to pattern length times text length. Files are read in parts and searched on
//! threads of the blocking pool, several at a time; the results are the same as if they were
//! searched one after another. Dropping the future stops the threads, each at the end of its
//! current part: 256 KiB or a line, and less for slow patterns (see [`cost`]), so that a part takes
//! about a second at most.
//!
//! Costs: for each thread, a part of a file and the line at its end in memory, which is a few
//! hundred KiB and never more than 17 MiB, and about twice as many matches as an answer holds.
//!
//! Files are silently skipped if they cannot be read, are not UTF-8, or have a line of more than 8
//! MiB. Since a line is searched in one go, shorter lines are too long for a pattern of more than
//! about eight elements (characters, classes, anchors, choices; counted repetitions multiplied
//! out). The limit is then 64 MiB divided by the number of elements: 5 MiB for a word of ten
//! letters and some hundred bytes for `(?:a?){60000}`. A file is never searched in part: matches
//! that were found before the limit is hit are discarded.

mod candidate;
mod cost;
mod file;
mod lines;
mod pattern;
mod tally;
mod workers;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::pattern::SearchPattern;
use crate::{
    EntryKind, FileError, FileStore, Glob, GlobError, Listing, OmittedNames, Scope, StorePath,
};

/// Pattern to search for, and the files to search.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    pattern: Arc<SearchPattern>,
    glob: Glob,
    scope: Scope,
    caps: SearchCaps,
}

/// Limits of the results of a search (`FILE-33`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SearchCaps {
    /// Maximum number of matching lines in all files together.
    pub matches_max: u64,
    /// Maximum length of a line or a snippet, in bytes. Longer ones are truncated.
    pub line_bytes_max: usize,
}

impl Default for SearchCaps {
    fn default() -> Self {
        Self { matches_max: 1000, line_bytes_max: 2000 }
    }
}

/// Error for a string that is not a pattern. It displays as the exact message of `FILE-29`, or as
/// that of the glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The pattern has too many characters.
    #[error(
        "Regex pattern is too long ({chars} characters). Maximum supported length is 256 \
         characters."
    )]
    TooLong {
        /// Number of characters in the pattern.
        chars: usize,
    },
    /// The pattern needs backtracking.
    #[error("Invalid regex pattern: look-around and back-references are not supported.")]
    Unsupported,
    /// The pattern is not a regular expression.
    #[error("Invalid regex pattern: {reason}")]
    Invalid {
        /// Reason in one line.
        reason: String,
    },
    /// The glob is invalid.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

/// Results of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SearchResults {
    /// Matching files, sorted bytewise by name.
    pub files: Vec<FileMatches>,
    /// Reason why results were left out, if any were.
    pub truncated: Option<Truncation>,
    /// Files and directories that were not searched: the store refuses their names, or a line of a
    /// file is too long.
    pub not_shown: OmittedNames,
}

/// A matching file, serialized as in `FILE-31`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileMatches {
    /// Path of the file from the root of the store.
    pub file_name: String,
    /// Text around the first match.
    pub snippet: String,
    /// All matching lines.
    pub matching_lines: Vec<MatchingLine>,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MatchingLine {
    /// Number of the line, starting at 1.
    pub line_number: u64,
    /// The line without its terminator.
    pub line: String,
}

/// Reason why results were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncation {
    /// There are more matching lines than [`SearchCaps::matches_max`].
    Matches,
    /// There are more files than the store lists.
    Entries,
}

impl SearchQuery {
    /// Creates a search for `pattern` in everything below a directory, ignoring case unless
    /// `is_case_sensitive`.
    ///
    /// # Errors
    /// If `pattern` is too long, unsupported or invalid (`FILE-29`).
    pub fn new(pattern: &str, is_case_sensitive: bool) -> Result<Self, SearchError> {
        Ok(Self {
            pattern: Arc::new(pattern::compile(pattern, is_case_sensitive)?),
            glob: Glob::EVERYTHING,
            scope: Scope::Recursive,
            caps: SearchCaps::default(),
        })
    }

    /// Searches only files whose path, relative to the searched directory, matches `glob`.
    ///
    /// # Errors
    /// If `glob` is invalid.
    pub fn with_glob(mut self, glob: Option<&str>) -> Result<Self, SearchError> {
        self.glob = Glob::new(glob)?;
        Ok(self)
    }

    /// Sets the depth of the search. The default is [`Scope::Recursive`].
    #[must_use]
    pub fn with_scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Uses `caps` instead of the defaults.
    #[must_use]
    pub fn with_caps(mut self, caps: SearchCaps) -> Self {
        self.caps = caps;
        self
    }
}

/// Searches the files below `directory`; a missing one has none. Blocks if there is no runtime.
///
/// # Errors
/// If `directory` cannot be listed; files that cannot be read are skipped.
pub async fn search(
    store: &Arc<dyn FileStore>,
    directory: &StorePath,
    query: &SearchQuery,
) -> Result<SearchResults, FileError> {
    let listing = store.list(directory, query.scope).await?;
    let is_truncated = listing.is_truncated;
    let not_shown = listing.not_shown.clone();
    let paths = paths(listing, directory, query);
    let mut results = workers::search(store, directory, paths, query).await?;
    if is_truncated {
        results.truncated.get_or_insert(Truncation::Entries);
    }
    results.not_shown.add_below("", not_shown);
    Ok(results)
}

/// Returns the files to search. The order of the listing is that of the results.
fn paths(listing: Listing, directory: &StorePath, query: &SearchQuery) -> Vec<StorePath> {
    let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let wanted = files.filter(|entry| query.glob.matches(&entry.name));
    wanted.filter_map(|entry| directory.descend(&entry.name)).collect()
}

#[cfg(test)]
mod tests;
