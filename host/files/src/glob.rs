//! Glob patterns (`FILE-24` to `FILE-27`).
//!
//! A pattern is compiled to a small program that runs like a regular expression without
//! backtracking: matching takes time proportional to pattern length times name length, whatever a
//! model writes. No available crate has exactly these rules (a literal `[` if nothing closes it,
//! `[!a]` but not `[^a]`, `**` only as a whole segment, braces that do not nest, simple lowercase
//! mapping), so this is our own.

mod parse;
mod program;
mod set;

use parse::parse;
use program::Program;

/// Maximum length of a pattern, in characters (`FILE-27`).
const PATTERN_CHARS_MAX: usize = 256;

/// A compiled glob pattern.
#[derive(Debug, Clone)]
pub struct Glob {
    /// `None` matches everything.
    pattern: Option<GlobPattern>,
}

#[derive(Debug, Clone)]
struct GlobPattern {
    program: Program,
    /// True if the pattern is compared with the last segment only (`FILE-24`).
    is_name_only: bool,
}

/// Error for an invalid glob pattern. It displays as the exact message of `FILE-26` or `FILE-27`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobError {
    /// The pattern has too many characters.
    #[error(
        "Glob pattern is too long ({chars} characters). Maximum supported length is 256 characters."
    )]
    TooLong {
        /// Length of the pattern, in characters.
        chars: usize,
    },
    /// Braces are nested.
    #[error("Invalid glob pattern: braces must not be nested.")]
    NestedBraces,
}

impl Glob {
    /// A glob that matches every path.
    pub const EVERYTHING: Self = Self { pattern: None };

    /// Compiles `pattern`; a missing or blank one matches everything.
    ///
    /// # Errors
    /// If the pattern is too long or nests braces.
    pub fn new(pattern: Option<&str>) -> Result<Self, GlobError> {
        match pattern {
            Some(pattern) if !pattern.trim().is_empty() => compile(pattern),
            _ => Ok(Self::EVERYTHING),
        }
    }

    /// Returns whether the pattern matches `path`, which is relative to the searched directory and
    /// uses `/` between its segments.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        let compared = if pattern.is_name_only { last_segment(path) } else { path };
        pattern.program.matches(compared.chars().map(lower))
    }
}

fn compile(pattern: &str) -> Result<Glob, GlobError> {
    let chars = pattern.chars().count();
    if chars > PATTERN_CHARS_MAX {
        return Err(GlobError::TooLong { chars });
    }
    let pattern: Vec<char> =
        pattern.chars().map(|c| if c == '\\' { '/' } else { lower(c) }).collect();
    let is_name_only = !pattern.contains(&'/');
    Ok(Glob { pattern: Some(GlobPattern { program: parse(&pattern)?, is_name_only }) })
}

fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Applies the simple lowercase mapping (`FILE-27`). Only U+0130 has a longer full mapping, whose
/// first character is the simple one.
fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

#[cfg(test)]
mod tests;
