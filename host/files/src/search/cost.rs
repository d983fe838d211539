//! Limits the length of text that is searched at a time, so that an abandoned search ends soon.
//!
//! A search takes time proportional to text length times pattern length, and most patterns take far
//! less. But some short patterns stand for long ones (`(?:a?){60000}`), and nothing can interrupt a
//! search for them. So the longer the pattern really is, the shorter the text that is searched in
//! one go. The measure is the number of states that the pattern's automaton can be in at the same
//! time, where each class of characters is one state, however many characters it contains.

use regex_automata::nfa::thompson::{Compiler, Config, WhichCaptures};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Repetition};

/// Maximum number of states times bytes that are searched in one go. The slowest patterns take up
/// to 17 ns for one of them in measurements (optimized, 2026); most take far less than 1 ns.
const WORK_MAX: usize = 1 << 26;
/// Memory limit for counting. A pattern that compiles takes no more.
const COUNTED_BYTES_MAX: usize = 20 * 1024 * 1024;
/// Number of states assumed for a pattern that is too large to count.
const STATES_MAX: usize = 1 << 19;

/// Returns the number of bytes that may be searched for `pattern` in one go.
pub(super) fn bytes_at_a_time(pattern: &Hir) -> usize {
    WORK_MAX / states(pattern).clamp(1, STATES_MAX)
}

fn states(pattern: &Hir) -> usize {
    let config =
        Config::new().nfa_size_limit(Some(COUNTED_BYTES_MAX)).which_captures(WhichCaptures::None);
    let counted = Compiler::new().configure(config).build_from_hir(&with_short_classes(pattern));
    counted.map_or(STATES_MAX, |counted| counted.states().len())
}

/// Replaces every class in `pattern` by one byte. The encoding of a class may take hundreds of
/// states, but a search is in only one of them at a time.
fn with_short_classes(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Class(_) => {
            Hir::class(Class::Bytes(ClassBytes::new([ClassBytesRange::new(b'a', b'b')])))
        }
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(with_short_classes(&repetition.sub)),
            ..*repetition
        }),
        HirKind::Capture(capture) => with_short_classes(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(with_short_classes).collect()),
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(with_short_classes).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> usize {
        bytes_at_a_time(&regex_syntax::parse(pattern).unwrap())
    }

    #[test]
    fn only_patterns_that_mean_long_ones_are_searched_in_short_steps() {
        assert!(of("match") >= 8 << 20);
        assert!(of(r"^\s*(?:pub )?fn \w+\(") >= 4 << 20);
        assert!(of(r"https?://[\w.-]+(?:/[\w./?=&-]*)?") >= 3 << 20);
        assert!((256 << 10..1 << 20).contains(&of(r"\b\w{100}\b")));
        assert!((100..1000).contains(&of("(?:a?){60000}!b")));
        assert!((1000..4000).contains(&of(r"(?:[\s\S]?\b){9000}!")));
    }
}
