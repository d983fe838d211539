//! Compiles a string to a regular expression, or returns the reason why it is invalid.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::{self, ErrorKind};

use super::candidate::Candidates;
use super::{SearchError, cost};

/// Maximum length of a pattern, in characters (`FILE-29`).
const PATTERN_CHARS_MAX: usize = 256;

/// A compiled pattern. A clone has its own caches, so that threads do not contend for them.
#[derive(Debug, Clone)]
pub(super) struct SearchPattern {
    /// Checks a line.
    line: Regex,
    /// Finds lines that may match; without it, all lines are checked.
    candidates: Option<Candidates>,
    bytes_at_a_time: usize,
}

impl SearchPattern {
    /// Returns an offset in the first line of `text` that may match, among those that begin at
    /// `from` or later. The line is the one that contains the offset or ends at it. `from` must be
    /// the start of a line and not beyond the end of `text`.
    pub(super) fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        self.candidates.as_ref().map_or(Some(from), |candidates| candidates.next(text, from))
    }

    /// Returns the number of bytes to search before checking again whether the search is still
    /// wanted.
    pub(super) fn bytes_at_a_time(&self) -> usize {
        self.bytes_at_a_time
    }

    /// Returns whether lines that cannot match are skipped.
    #[cfg(test)]
    pub(super) fn has_candidates(&self) -> bool {
        self.candidates.is_some()
    }

    /// Returns the start and the end of the first match in `line`.
    pub(super) fn find(&self, line: &str) -> Option<(usize, usize)> {
        self.line.find(line).map(|found| (found.start(), found.end()))
    }

    /// Returns whether `line` matches, which is faster than [`find`](Self::find).
    pub(super) fn is_match(&self, line: &str) -> bool {
        self.line.is_match(line)
    }
}

pub(super) fn compile(
    pattern: &str,
    is_case_sensitive: bool,
) -> Result<SearchPattern, SearchError> {
    let chars = pattern.chars().count();
    if chars > PATTERN_CHARS_MAX {
        return Err(SearchError::TooLong { chars });
    }
    // The parser of the regex crate, used directly because its errors have a type for each reason.
    let parsed = ParserBuilder::new()
        .case_insensitive(!is_case_sensitive)
        .build()
        .parse(pattern)
        .map_err(|error| refusal(&error))?;
    let built = RegexBuilder::new(pattern).case_insensitive(!is_case_sensitive).build();
    // A pattern that parses may still be too large to compile.
    let line = built.map_err(|error| invalid(&one_line(&error.to_string())))?;
    let bytes_at_a_time = cost::bytes_at_a_time(&parsed);
    Ok(SearchPattern { line, candidates: Candidates::compile(&parsed), bytes_at_a_time })
}

fn refusal(error: &regex_syntax::Error) -> SearchError {
    match error {
        regex_syntax::Error::Parse(error) if is_unsupported(error) => SearchError::Unsupported,
        regex_syntax::Error::Parse(error) => invalid(error.kind()),
        regex_syntax::Error::Translate(error) => invalid(error.kind()),
        other => invalid(&one_line(&other.to_string())),
    }
}

/// Returns whether the error is about look-around or a back-reference. The parser recognizes the
/// numbered ones; the named ones of other dialects, `\k<n>`, `\g{n}` and `(?P=n)`, are an unknown
/// escape or flag to it.
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

/// Returns the pattern starting `before` bytes ahead of the error.
fn from(error: &ast::Error, before: usize) -> Option<&str> {
    error.pattern().get(error.span().start.offset.checked_sub(before)?..)
}

fn invalid(reason: &impl ToString) -> SearchError {
    SearchError::Invalid { reason: reason.to_string() }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
