//! From a text to a regular expression, or to the reason why it is none.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::{self, ErrorKind};

use super::SearchError;

/// Longest pattern in characters (`FILE-29`).
const PATTERN_CHARS_MAX: usize = 256;

pub(super) fn compile(pattern: &str, is_case_sensitive: bool) -> Result<Regex, SearchError> {
    let chars = pattern.chars().count();
    if chars > PATTERN_CHARS_MAX {
        return Err(SearchError::TooLong { chars });
    }
    // The parser of the regex crate by itself: it tells by type why a pattern is refused.
    ParserBuilder::new()
        .case_insensitive(!is_case_sensitive)
        .build()
        .parse(pattern)
        .map_err(|error| refusal(&error))?;
    let built = RegexBuilder::new(pattern).case_insensitive(!is_case_sensitive).build();
    // What parses may still be too large to compile.
    built.map_err(|error| invalid(&one_line(&error.to_string())))
}

fn refusal(error: &regex_syntax::Error) -> SearchError {
    match error {
        regex_syntax::Error::Parse(error) if is_unsupported(error) => SearchError::Unsupported,
        regex_syntax::Error::Parse(error) => invalid(error.kind()),
        regex_syntax::Error::Translate(error) => invalid(error.kind()),
        other => invalid(&one_line(&other.to_string())),
    }
}

/// Whether the parser has met look-around or a back-reference. It knows the numbered ones; the named ones of other
/// dialects, `\k<n>`, `\g{n}` and `(?P=n)`, are an unknown escape or flag to it.
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
