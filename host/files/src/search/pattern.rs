//! From a text to a regular expression, or to the reason why it is none.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::{self, ErrorKind};

use super::candidate::Candidates;
use super::{SearchError, cost};

/// Longest pattern in characters (`FILE-29`).
const PATTERN_CHARS_MAX: usize = 256;

/// A pattern, ready to be searched for. A clone has caches of its own, so that threads do not wait
/// for each other's.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Judges a line.
    line: Regex,
    /// Finds lines that are worth judging; without it, all of them are.
    candidates: Option<Candidates>,
    bytes_at_a_time: usize,
}

impl Pattern {
    /// A place in the first line of `text` that may match, among those that begin at `from` or
    /// later. The line is the one that the place is in or at the end of. `from` is where a line
    /// begins, and not beyond the end of `text`.
    pub(super) fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        self.candidates.as_ref().map_or(Some(from), |candidates| candidates.next(text, from))
    }

    /// How much text may be searched before somebody looks whether that is still wanted.
    pub(super) fn bytes_at_a_time(&self) -> usize {
        self.bytes_at_a_time
    }

    /// Whether lines are skipped that cannot match.
    #[cfg(test)]
    pub(super) fn has_candidates(&self) -> bool {
        self.candidates.is_some()
    }

    /// Where `line` matches, from and to.
    pub(super) fn find(&self, line: &str) -> Option<(usize, usize)> {
        self.line.find(line).map(|found| (found.start(), found.end()))
    }

    /// Whether `line` matches, which is known sooner than where.
    pub(super) fn is_match(&self, line: &str) -> bool {
        self.line.is_match(line)
    }
}

pub(super) fn compile(pattern: &str, is_case_sensitive: bool) -> Result<Pattern, SearchError> {
    let chars = pattern.chars().count();
    if chars > PATTERN_CHARS_MAX {
        return Err(SearchError::TooLong { chars });
    }
    // The parser of the regex crate by itself: it tells by type why a pattern is refused.
    let parsed = ParserBuilder::new()
        .case_insensitive(!is_case_sensitive)
        .build()
        .parse(pattern)
        .map_err(|error| refusal(&error))?;
    let built = RegexBuilder::new(pattern).case_insensitive(!is_case_sensitive).build();
    // What parses may still be too large to compile.
    let line = built.map_err(|error| invalid(&one_line(&error.to_string())))?;
    let bytes_at_a_time = cost::bytes_at_a_time(&parsed);
    Ok(Pattern { line, candidates: Candidates::compile(&parsed), bytes_at_a_time })
}

fn refusal(error: &regex_syntax::Error) -> SearchError {
    match error {
        regex_syntax::Error::Parse(error) if is_unsupported(error) => SearchError::Unsupported,
        regex_syntax::Error::Parse(error) => invalid(error.kind()),
        regex_syntax::Error::Translate(error) => invalid(error.kind()),
        other => invalid(&one_line(&other.to_string())),
    }
}

/// Whether the parser has met look-around or a back-reference. It knows the numbered ones; the
/// named ones of other dialects, `\k<n>`, `\g{n}` and `(?P=n)`, are an unknown escape or flag to
/// it.
fn is_unsupported(error: &ast::Error) -> bool {
    match error.kind() {
        ErrorKind::UnsupportedLookAround | ErrorKind::UnsupportedBackreference => true,
        ErrorKind::EscapeUnrecognized => {
            from(error, 0).is_some_and(|rest| rest.starts_with(r"\k") || rest.starts_with(r"\g"))
        }
        ErrorKind::FlagUnrecognized => from(error, 2).is_some_and(|rest| rest.starts_with("(?P=")),
        _ => false,
    }
}

/// The pattern from `before` bytes ahead of the error.
fn from(error: &ast::Error, before: usize) -> Option<&str> {
    error.pattern().get(error.span().start.offset.checked_sub(before)?..)
}

fn invalid(reason: &impl ToString) -> SearchError {
    SearchError::Invalid { reason: reason.to_string() }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
