//! Finds the lines of a text that may match, without checking each line.
//!
//! Matching is by line (`FILE-28`, `FILE-30`), which a regular expression over many lines cannot
//! express exactly: whether a carriage return is part of a line depends on what comes after it. So
//! the pattern is converted into one that matches in every line in which the pattern matches,
//! perhaps in others too, and never across the end of a line. It runs over the whole text at full
//! speed; the pattern itself then checks only the few lines that this finds.
//!
//! That takes time proportional to the text: every search starts where the previous line has ended,
//! and each match ends in the line in which it begins.

use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange};
use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

/// Memory limit of the compiled expression. The pattern has passed the limit of the regex crate (10
/// MiB), and this is about as large.
const COMPILED_BYTES_MAX: usize = 20 * 1024 * 1024;
/// Memory limit of the cache of a thread, as in the regex crate.
const CACHE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Finds lines that may match. A clone has its own cache.
#[derive(Debug, Clone)]
pub(super) struct Candidates(Regex);

impl Candidates {
    /// Compiles the expression that finds the candidates for `pattern`, if it is not too large.
    pub(super) fn compile(pattern: &Hir) -> Option<Self> {
        let config = Regex::config()
            .nfa_size_limit(Some(COMPILED_BYTES_MAX))
            .hybrid_cache_capacity(CACHE_BYTES_MAX)
            .which_captures(WhichCaptures::Implicit)
            // The text may turn out not to be UTF-8.
            .utf8_empty(false);
        Regex::builder().configure(config).build_from_hir(&within_a_line(pattern)).ok().map(Self)
    }

    /// Returns an offset in, or at the end of, the first candidate line that begins at `from` or
    /// later. `from` must be the start of a line.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let input = Input::new(text).range(from..).earliest(true);
        self.0.search_half(&input).map(|found| found.offset())
    }
}

/// Converts `pattern` for a text of lines: a match never contains a line feed, and the ends of
/// lines replace the ends of the text.
fn within_a_line(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(class) => Hir::class(without_line_feed(class.clone())),
        HirKind::Look(look) => Hir::look(at_line_ends(*look)),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(within_a_line(&repetition.sub)),
            ..*repetition
        }),
        HirKind::Capture(capture) => within_a_line(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(within_a_line).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(within_a_line).collect()),
    }
}

fn without_line_feed(mut class: Class) -> Class {
    match &mut class {
        Class::Unicode(class) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]))
        }
        Class::Bytes(class) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]))
        }
    }
    class
}

/// Converts an assertion so that it holds at an offset of the text if the original holds at the
/// same offset of the line. A line ends before LF, before CRLF and at the end of the text. Before a
/// lone carriage return the line continues, and the pattern itself rejects the candidate. All other
/// assertions have the same result for both, because neither a line feed nor a carriage return is
/// part of a word.
fn at_line_ends(look: Look) -> Look {
    match look {
        Look::Start => Look::StartLF,
        Look::End | Look::EndLF => Look::EndCRLF,
        look => look,
    }
}
