//! Searches one text, which arrives in blocks of lines.

use std::str::Utf8Error;

use memchr::{memchr, memchr_iter, memrchr};

use super::pattern::SearchPattern;
use super::{MatchingLine, SearchCaps};

/// Number of characters that a snippet shows on each side of the match (`FILE-31`).
const SNIPPET_CHARS: usize = 50;

/// Matches in one text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// Snippet around the first match.
    pub(super) around_first: Option<String>,
    pub(super) matching_lines: Vec<MatchingLine>,
    /// True if there are more matching lines than the limit.
    pub(super) is_truncated: bool,
}

/// State of a search of one text.
pub(super) struct LineSearch<'q> {
    pattern: &'q SearchPattern,
    caps: SearchCaps,
    matches: Matches,
    /// Last characters before the block, for a snippet that begins there.
    before: String,
    snippet: Option<Snippet>,
    lines_before: u64,
    is_begun: bool,
}

/// A snippet that may be incomplete at its end.
struct Snippet {
    text: String,
    chars_missing: usize,
}

/// A line of a block.
struct Line<'t> {
    start: usize,
    /// Offset of its line feed, or of the end of the block.
    end: usize,
    /// Line without its terminator.
    text: &'t str,
}

impl<'q> LineSearch<'q> {
    pub(super) fn new(pattern: &'q SearchPattern, caps: SearchCaps) -> Self {
        Self {
            pattern,
            caps,
            matches: Matches::default(),
            before: String::new(),
            snippet: None,
            lines_before: 0,
            is_begun: false,
        }
    }

    /// Searches the next lines of the text. Each block except the last one ends with a line feed.
    ///
    /// # Errors
    /// If the block, and so the text, is not UTF-8. In a text of one block this is only detected if
    /// one of its lines may match: otherwise nothing would be found in it anyway.
    pub(super) fn search(&mut self, block: &[u8], is_last: bool) -> Result<(), Utf8Error> {
        let is_whole = is_last && !self.is_begun;
        self.is_begun = true;
        let first =
            if self.matches.is_truncated { None } else { self.candidate(block, 0, is_last) };
        if is_whole && first.is_none() {
            return Ok(());
        }
        let text = std::str::from_utf8(block)?;
        if let Some(snippet) = &mut self.snippet {
            snippet.extend(text);
        }
        if let Some(first) = first {
            self.judge(text, first, is_last);
        }
        if !is_last {
            self.remember(text);
        }
        Ok(())
    }

    /// Returns the matches in all blocks.
    pub(super) fn finish(self) -> Matches {
        let around_first = self.snippet.map(|snippet| cut(&snippet.text, self.caps.line_bytes_max));
        Matches { around_first, ..self.matches }
    }

    /// Returns an offset in the next line that may match. Only the last block has a line after its
    /// last line feed.
    fn candidate(&self, block: &[u8], from: usize, is_last: bool) -> Option<usize> {
        self.pattern.candidate(block, from).filter(|at| is_last || *at < block.len())
    }

    /// Checks one candidate line after another.
    fn judge(&mut self, text: &str, first: usize, is_last: bool) {
        let (mut from, mut next) = (0, Some(first));
        let (mut line_number, mut counted) = (self.lines_before.saturating_add(1), 0);
        while let Some(at) = next {
            let line = Line::at(text, from, at);
            if self.is_match(text, &line) {
                if length(self.matches.matching_lines.len()) >= self.caps.matches_max {
                    self.matches.is_truncated = true;
                    return;
                }
                line_number = line_number.saturating_add(line_feeds(text, counted, line.start));
                counted = line.start;
                let shown = cut(line.text, self.caps.line_bytes_max);
                self.matches.matching_lines.push(MatchingLine { line_number, line: shown });
            }
            from = line.end.saturating_add(1);
            next = if from <= text.len() {
                self.candidate(text.as_bytes(), from, is_last)
            } else {
                None
            };
        }
    }

    /// Returns whether a line matches. The first match that will be shown gets a snippet.
    fn is_match(&mut self, text: &str, line: &Line<'_>) -> bool {
        if self.snippet.is_some() || self.caps.matches_max == 0 {
            return self.pattern.is_match(line.text);
        }
        let Some((start, end)) = self.pattern.find(line.text) else { return false };
        let (start, end) = (line.start.saturating_add(start), line.start.saturating_add(end));
        let mut snippet = Snippet::up_to(&self.before, text.get(..start).unwrap_or_default());
        snippet.text.push_str(text.get(start..end).unwrap_or_default());
        snippet.extend(text.get(end..).unwrap_or_default());
        self.snippet = Some(snippet);
        true
    }

    /// Stores what the search of the next block needs from this one.
    fn remember(&mut self, text: &str) {
        self.lines_before = self.lines_before.saturating_add(line_feeds(text, 0, text.len()));
        if self.snippet.is_none() {
            self.before = Snippet::up_to(&self.before, text).text;
        }
    }
}

impl Snippet {
    /// Creates a snippet with the text before a match. The match's block begins with `text` and is
    /// preceded by `before`.
    fn up_to(before: &str, text: &str) -> Self {
        let near = last_chars(text, SNIPPET_CHARS);
        let far = last_chars(before, SNIPPET_CHARS.saturating_sub(near.chars().count()));
        Self { text: format!("{far}{near}"), chars_missing: SNIPPET_CHARS }
    }

    /// Adds the text that follows, up to the length of a snippet.
    fn extend(&mut self, text: &str) {
        for char in text.chars().take(self.chars_missing) {
            self.text.push(char);
            self.chars_missing = self.chars_missing.saturating_sub(1);
        }
    }
}

impl<'t> Line<'t> {
    /// Returns the line that contains `at` and begins at `from` or later (`FILE-30`).
    fn at(text: &'t str, from: usize, at: usize) -> Self {
        let bytes = text.as_bytes();
        let before = bytes.get(from..at).unwrap_or_default();
        let start =
            memrchr(b'\n', before).map_or(from, |feed| from.saturating_add(feed).saturating_add(1));
        let terminator = memchr(b'\n', bytes.get(at..).unwrap_or_default());
        let end = terminator.map_or(text.len(), |feed| at.saturating_add(feed));
        let line = text.get(start..end).unwrap_or_default();
        // A carriage return is part of a terminator only before a line feed, which the last line
        // does not have.
        let text =
            if terminator.is_some() { line.strip_suffix('\r').unwrap_or(line) } else { line };
        Self { start, end, text }
    }
}

fn line_feeds(text: &str, from: usize, to: usize) -> u64 {
    length(memchr_iter(b'\n', text.as_bytes().get(from..to).unwrap_or_default()).count())
}

fn last_chars(text: &str, chars: usize) -> &str {
    let from = text.char_indices().rev().take(chars).last().map_or(text.len(), |(at, _)| at);
    text.get(from..).unwrap_or_default()
}

/// Truncates `text` to `bytes_max` bytes, with a mark if something is cut (`FILE-33`).
fn cut(text: &str, bytes_max: usize) -> String {
    match text.get(..text.floor_char_boundary(bytes_max)) {
        Some(start) if start.len() < text.len() => format!("{start}…"),
        _ => text.to_owned(),
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
