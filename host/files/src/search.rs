//! Searching the files of a store for a pattern (`FILE-28` to `FILE-33`).
//!
//! Patterns are regular expressions without look-around and back-references, so that a search takes time in proportion
//! to pattern length times text length. A file is searched as a whole, one at a time; a large one on a thread of the
//! blocking pool. What cannot be read as text, or is larger than [`SearchCaps::file_bytes_max`], is passed over.

mod pattern;
mod text;

use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::blocking::blocking;
use crate::{EntryKind, FileError, FileStore, Glob, GlobError, Listing, Scope, StorePath};

/// Shorter texts are searched where the future runs: that takes well under a millisecond.
const INLINE_BYTES_MAX: usize = 64 * 1024;

/// What to search for.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    pattern: Arc<Regex>,
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
    /// Larger files are passed over. No store within the default quota holds one; a directory of the host may.
    pub file_bytes_max: u64,
}

impl Default for SearchCaps {
    fn default() -> Self {
        Self { matches_max: 1000, line_bytes_max: 2000, file_bytes_max: 67_108_864 }
    }
}

/// A text that is not a pattern. It displays as the exact text of `FILE-29`, or as that of the glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The pattern has too many characters.
    #[error("Regex pattern is too long ({chars} characters). Maximum supported length is 256 characters.")]
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
    /// A search of everything below a directory for `pattern`, ignoring case unless `is_case_sensitive`.
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

/// Searches the files below `directory`; a missing one has none.
///
/// # Errors
/// When `directory` cannot be listed; files that cannot be read are passed over.
pub async fn search(
    store: &dyn FileStore,
    directory: &StorePath,
    query: &SearchQuery,
) -> Result<SearchResults, FileError> {
    let listing = store.list(directory, query.scope).await?;
    let mut results = SearchResults {
        truncated: listing.is_truncated.then_some(Truncation::Entries),
        ..SearchResults::default()
    };
    let mut matches_left = query.caps.matches_max;
    for path in paths(listing, directory, query) {
        let Some(content) = readable_text(store, &path, query).await else { continue };
        let found = search_text(query, content, matches_left).await?;
        matches_left = matches_left.saturating_sub(found.lines());
        results.files.extend(found.around_first.map(|snippet| FileMatches {
            file_name: path.to_string(),
            snippet,
            matching_lines: found.matching_lines,
        }));
        if found.is_truncated {
            results.truncated = Some(Truncation::Matches);
            break;
        }
    }
    Ok(results)
}

/// The files to look into. The order of the listing is the one of the results.
fn paths(listing: Listing, directory: &StorePath, query: &SearchQuery) -> Vec<StorePath> {
    let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
    let wanted = files.filter(|entry| query.glob.matches(&entry.name));
    wanted.filter_map(|entry| directory.descend(&entry.name)).collect()
}

async fn readable_text(store: &dyn FileStore, path: &StorePath, query: &SearchQuery) -> Option<String> {
    let content = store.read(path, query.caps.file_bytes_max).await.ok()?;
    String::from_utf8(content).ok()
}

async fn search_text(
    query: &SearchQuery,
    content: String,
    matches_max: u64,
) -> Result<text::Matches, FileError> {
    let pattern = Arc::clone(&query.pattern);
    let caps = SearchCaps { matches_max, ..query.caps };
    let is_short = content.len() <= INLINE_BYTES_MAX;
    let search = move || Ok(text::search(&pattern, &content, &caps));
    if is_short { search() } else { blocking(search).await }
}

#[cfg(test)]
mod tests;
