//! Finding the lines that may match in a text of many lines, without looking at each.
//!
//! Matching is by line (`FILE-28`, `FILE-30`), which a regular expression over many lines cannot
//! say exactly: whether a carriage return is a part of a line depends on what comes after it. So
//! the pattern is turned into one that matches in every line in which the pattern does, perhaps in
//! others too, and in no case across the end of a line. It runs over the whole text at full speed;
//! the pattern itself then judges the few lines that it comes to.
//!
//! That takes time in proportion to the text: every search goes on where the line before has ended,
//! and what is found ends in the line in which it begins.

use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange};
use regex_syntax::hir::{Hir, HirKind, Look, Repetition};

/// Memory of the compiled expression. The pattern has passed the limit of the regex crate (10 MiB),
/// and this is about as large.
const COMPILED_BYTES_MAX: usize = 20 * 1024 * 1024;
/// Memory that a thread may take to be fast, as in the regex crate.
const CACHE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Finds lines that are worth judging. A clone has a cache of its own.
#[derive(Debug, Clone)]
pub(super) struct Candidates(Regex);

impl Candidates {
    /// What finds the candidates for `pattern`, if it is not too large.
    pub(super) fn compile(pattern: &Hir) -> Option<Self> {
        let config = Regex::config()
            .nfa_size_limit(Some(COMPILED_BYTES_MAX))
            .hybrid_cache_capacity(CACHE_BYTES_MAX)
            .which_captures(WhichCaptures::Implicit)
            // The text may turn out not to be UTF-8.
            .utf8_empty(false);
        Regex::builder().configure(config).build_from_hir(&within_a_line(pattern)).ok().map(Self)
    }

    /// A place in, or at the end of, the first candidate that begins at `from` or later, which is
    /// where a line begins.
    pub(super) fn next(&self, text: &[u8], from: usize) -> Option<usize> {
        let input = Input::new(text).range(from..).earliest(true);
        self.0.search_half(&input).map(|found| found.offset())
    }
}

/// `pattern` for a text of lines: never with a line feed in a match, and with line ends in place of
/// text ends.
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

/// What holds at a place of a line also holds, with this, at the same place of the text. A line
/// ends before LF, before CRLF and at the end of the text; before a lone carriage return it goes
/// on, and the pattern itself will say so. All others see the same on both sides: neither a line
/// feed nor a carriage return is a part of a word.
fn at_line_ends(look: Look) -> Look {
    match look {
        Look::Start => Look::StartLF,
        Look::End | Look::EndLF => Look::EndCRLF,
        look => look,
    }
}
