//! Combines the matches of files that are searched concurrently.
//!
//! The results are the same as if the files were searched one after another, whichever is done
//! first. They are bounded while they grow: as soon as the completed files have more matching lines
//! than an answer holds, files behind them in the list cannot add to it, and matches in those are
//! discarded.

use std::collections::BTreeMap;

use super::lines::Matches;
use super::{FileMatches, SearchResults, Truncation};
use crate::StorePath;

/// Matches of the completed files, by their index in the list.
#[derive(Debug)]
pub(super) struct MatchTally {
    matches_max: u64,
    found: BTreeMap<usize, Matches>,
    /// Number of matching lines in `found`. A truncated file counts as one more.
    lines: u64,
    /// No file from this index on can add to the results.
    end: usize,
}

impl MatchTally {
    /// Creates a tally for `files` files without matches.
    pub(super) fn new(files: usize, matches_max: u64) -> Self {
        Self { matches_max, found: BTreeMap::new(), lines: 0, end: files }
    }

    /// Adds the matches of the file at `index`. Returns the index from which on files need not be
    /// searched.
    pub(super) fn add(&mut self, index: usize, matches: Matches) -> usize {
        if matches.lines() > 0 && index < self.end {
            self.lines = self.lines.saturating_add(matches.lines());
            self.found.insert(index, matches);
        }
        while self.lines > self.matches_max {
            let Some(last) = self.found.last_entry() else { break };
            let others = self.lines.saturating_sub(last.get().lines());
            self.end = self.end.min(last.key().saturating_add(1));
            if others <= self.matches_max {
                break;
            }
            self.end = *last.key();
            self.lines = others;
            last.remove();
        }
        self.end
    }

    /// Number of matching lines currently in memory.
    #[cfg(test)]
    pub(super) fn lines_held(&self) -> u64 {
        self.found.values().map(Matches::lines).sum()
    }

    /// Returns the results. `paths` is the list of files.
    pub(super) fn into_results(self, paths: &[StorePath]) -> SearchResults {
        let mut results = SearchResults::default();
        let mut lines_left = usize::try_from(self.matches_max).unwrap_or(usize::MAX);
        for (index, mut matches) in self.found {
            if matches.is_truncated || matches.matching_lines.len() > lines_left {
                results.truncated = Some(Truncation::Matches);
            }
            matches.matching_lines.truncate(lines_left);
            lines_left = lines_left.saturating_sub(matches.matching_lines.len());
            if let (Some(path), Some(snippet), false) =
                (paths.get(index), matches.around_first, matches.matching_lines.is_empty())
            {
                let (file_name, matching_lines) = (path.to_string(), matches.matching_lines);
                results.files.push(FileMatches { file_name, snippet, matching_lines });
            }
        }
        results
    }
}

impl Matches {
    fn lines(&self) -> u64 {
        let lines = u64::try_from(self.matching_lines.len()).unwrap_or(u64::MAX);
        lines.saturating_add(u64::from(self.is_truncated))
    }
}
