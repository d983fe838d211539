//! Searching the files of a store for a pattern (`FILE-28` to `FILE-33`).
//!
//! Patterns are regular expressions without look-around and back-references, so that a search takes
//! time in proportion to pattern length times text length. Files are read in parts and searched on
//! threads of the blocking pool, several at a time; the answer is the same as if it had been one
//! after the other. Dropping the future stops the threads, each at the end of the part that it is
//! at: 256 KiB or a line, and less for patterns that are slow (see [`cost`]), so that a part takes
//! about a second at most.
//!
//! What it costs: for each thread a part of a file and the line at its end in memory, which is a
//! few hundred KiB and never more than 17 MiB, and of what was found about twice as much as an
//! answer holds.
//!
//! What is passed over, without a word: files that cannot be read, that are not UTF-8, and that
//! have a line of more than 8 MiB. Since a line is searched in one go, shorter ones are too long
//! for a pattern of more than about eight elements (characters, classes, anchors, choices; counted
//! repetitions multiplied out): more than 64 MiB divided by their number, so 5 MiB for a word of
//! ten letters and some hundred bytes for `(?:a?){60000}`. A file is never searched in part: what
//! was found before that becomes clear is forgotten.

mod candidate;
mod cost;
mod file;
mod lines;
mod pattern;
mod tally;
mod workers;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::pattern::Pattern;
use crate::{
    EntryKind, FileError, FileStore, Glob, GlobError, Listing, NotShown, Scope, StorePath,
};

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    pattern: Arc<Pattern>,
    glob: Glob,
    scope: Scope,
    caps: SearchCaps,
}

/// How much a search may give (`FILE-33`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SearchCaps {
    /// Matching lines of all files together.
    pub matches_max: u64,
    /// Bytes of a line or a snippet before it is cut.
    pub line_bytes_max: usize,
}

impl Default for SearchCaps {
    fn default() -> Self {
        Self { matches_max: 1000, line_bytes_max: 2000 }
    }
}

/// A text that is not a pattern. It displays as the exact text of `FILE-29`, or as that of the
/// glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The pattern has too many characters.
    #[error(
        "Regex pattern is too long ({chars} characters). Maximum supported length is 256 \
         characters."
    )]
    TooLong {
        /// How many it has.
        chars: usize,
    },
    /// The pattern needs backtracking.
    #[error("Invalid regex pattern: look-around and back-references are not supported.")]
    Unsupported,
    /// The pattern is no regular expression.
    #[error("Invalid regex pattern: {reason}")]
    Invalid {
        /// Why, in one line.
        reason: String,
    },
    /// The glob is not one.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SearchResults {
    /// The matching files, bytewise by name.
    pub files: Vec<FileMatches>,
    /// What was left out, if anything.
    pub truncated: Option<Truncation>,
    /// Files and directories that were not searched because the store refuses their names.
    pub not_shown: NotShown,
}

/// A matching file, serialised as in `FILE-31`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileMatches {
    /// The path of the file from the root of the store.
    pub file_name: String,
    /// The text around the first match.
    pub snippet: String,
    /// Every matching line.
    pub matching_lines: Vec<MatchingLine>,
}

/// A matching line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MatchingLine {
    /// The number of the line, from 1.
    pub line_number: u64,
    /// The line without its terminator.
    pub line: String,
}

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncation {
    /// There are more matching lines than [`SearchCaps::matches_max`].
    Matches,
    /// There are more files than the store goes through.
    Entries,
}

impl SearchQuery {
    /// A search of everything below a directory for `pattern`, ignoring case unless
    /// `is_case_sensitive`.
    ///
    /// # Errors
    /// When `pattern` is too long, unsupported or invalid (`FILE-29`).
    pub fn new(pattern: &str, is_case_sensitive: bool) -> Result<Self, SearchError> {
        Ok(Self {
            pattern: Arc::new(pattern::compile(pattern, is_case_sensitive)?),
            glob: Glob::EVERYTHING,
            scope: Scope::Recursive,
            caps: SearchCaps::default(),
        })
    }

    /// Looks only into files whose path, relative to the searched directory, matches `glob`.
    ///
    /// # Errors
    /// When `glob` is not one.
    pub fn with_glob(mut self, glob: Option<&str>) -> Result<Self, SearchError> {
        self.glob = Glob::new(glob)?;
        Ok(self)
    }

    /// Looks this far down; everywhere unless said otherwise.
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

/// Searches the files below `directory`; a missing one has none. Without a runtime it blocks.
///
/// # Errors
/// When `directory` cannot be listed; files that cannot be read are passed over.
pub async fn search(
    store: &Arc<dyn FileStore>,
    directory: &StorePath,
    query: &SearchQuery,
) -> Result<SearchResults, FileError> {
    let listing = store.list(directory, query.scope).await?;
    let is_truncated = listing.is_truncated;
    let not_shown = listing.not_shown.clone();
    let mut results = workers::search(store, paths(listing, directory, query), query).await?;
    if is_truncated {
        results.truncated.get_or_insert(Truncation::Entries);
    }
    results.not_shown = not_shown;
    Ok(results)
}

/// The files to look into. The order of the listing is the one of the results.
fn paths(listing: Listing, directory: &StorePath, query: &SearchQuery) -> Vec<StorePath> {
    let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let wanted = files.filter(|entry| query.glob.matches(&entry.name));
    wanted.filter_map(|entry| directory.descend(&entry.name)).collect()
}

#[cfg(test)]
mod tests;
