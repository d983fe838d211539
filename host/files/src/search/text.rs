//! Searching one text.

use regex::Regex;

use super::{MatchingLine, SearchCaps};

/// How many characters a snippet shows on each side of the match (`FILE-31`).
const SNIPPET_CHARS: usize = 50;

/// What was found in one text.
#[derive(Default)]
pub(super) struct Matches {
    /// The snippet, when anything was found.
    pub(super) around_first: Option<String>,
    pub(super) matching_lines: Vec<MatchingLine>,
    /// Whether there are more matching lines than were asked for.
    pub(super) is_truncated: bool,
}

impl Matches {
    pub(super) fn lines(&self) -> u64 {
        u64::try_from(self.matching_lines.len()).unwrap_or(u64::MAX)
    }
}

/// The lines of `text` that match.
pub(super) fn search(pattern: &Regex, text: &str, caps: &SearchCaps) -> Matches {
    let mut matches = Matches::default();
    for (line_number, (start, line)) in (1..).zip(lines(text)) {
        let Some(found) = pattern.find(line) else { continue };
        if matches.lines() >= caps.matches_max {
            matches.is_truncated = true;
            break;
        }
        let at = (start.saturating_add(found.start()), start.saturating_add(found.end()));
        matches.around_first.get_or_insert_with(|| cut(snippet(text, at), caps.line_bytes_max));
        matches.matching_lines.push(MatchingLine { line_number, line: cut(line, caps.line_bytes_max) });
    }
    matches
}

/// The lines without their terminators, each with the place where it starts (`FILE-30`).
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split('\n').scan(0_usize, move |next, piece| {
        let start = *next;
        let end = start.saturating_add(piece.len());
        *next = end.saturating_add(1);
        // A carriage return is part of a terminator only before a line feed, which the last piece does not have.
        let is_terminated = end < text.len();
        Some((start, if is_terminated { piece.strip_suffix('\r').unwrap_or(piece) } else { piece }))
    })
}

/// The text around the match from `start` to `end`.
fn snippet(text: &str, (start, end): (usize, usize)) -> &str {
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let from = before.char_indices().rev().take(SNIPPET_CHARS).last().map_or(start, |(at, _)| at);
    let to = after.char_indices().nth(SNIPPET_CHARS).map_or(text.len(), |(at, _)| end.saturating_add(at));
    text.get(from..to).unwrap_or_default()
}

/// At most `bytes_max` bytes of `text`, with a mark where it is cut (`FILE-33`).
fn cut(text: &str, bytes_max: usize) -> String {
    match text.get(..text.floor_char_boundary(bytes_max)) {
        Some(kept) if kept.len() < text.len() => format!("{kept}…"),
        _ => text.to_owned(),
    }
}
