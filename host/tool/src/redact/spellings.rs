//! Search for all spellings of secrets at once.

use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use memchr::memmem::Finder;

/// Longest spelling for the automaton that finds all of them in one pass. Its construction takes
/// time that grows with the square of a spelling that repeats itself, and a longer spelling is so
/// rare that a pass for each costs little.
const AUTOMATON_BYTES_MAX: usize = 256;

/// Finds spellings in bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct SpellingSearch {
    short: Option<AhoCorasick>,
    /// Indexes of the short spellings, in the order of the automaton.
    short_indexes: Vec<usize>,
    /// Long spellings, with their indexes.
    long: Vec<(Finder<'static>, usize)>,
}

/// Match of a spelling.
struct SpellingMatch {
    range: Range<usize>,
    index: usize,
}

impl SpellingSearch {
    pub(super) fn new(spellings: &[String]) -> Result<Self, BuildError> {
        let (mut short, mut short_indexes, mut long) = (Vec::new(), Vec::new(), Vec::new());
        for (index, spelling) in spellings.iter().enumerate() {
            if spelling.len() > AUTOMATON_BYTES_MAX {
                long.push((Finder::new(spelling).into_owned(), index));
            } else {
                short.push(spelling);
                short_indexes.push(index);
            }
        }
        // With the longest match, a secret that contains another one is redacted as a whole.
        let build = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&short);
        let short = (!short.is_empty()).then(build).transpose()?;
        Ok(Self { short, short_indexes, long })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.short.is_none() && self.long.is_empty()
    }

    /// Replaces each match by the string of its spelling. Returns `None` if there is no match.
    pub(super) fn replace(&self, bytes: &[u8], replacements: &[String]) -> Option<Vec<u8>> {
        let mut replaced: Option<Vec<u8>> = None;
        // Next match of each long spelling, or `None` if there is no more.
        let find = |finder: &Finder<'_>, from: usize| {
            bytes.get(from..).and_then(|rest| finder.find(rest)).map(|at| from + at)
        };
        let mut next: Vec<_> = self.long.iter().map(|(finder, _)| find(finder, 0)).collect();
        let mut from = 0;
        loop {
            for (at, (finder, _)) in next.iter_mut().zip(&self.long) {
                if at.is_some_and(|at| at < from) {
                    *at = find(finder, from);
                }
            }
            let long = next.iter().zip(&self.long).filter_map(|(at, (finder, index))| {
                let range = (*at)?..at.unwrap_or_default() + finder.needle().len();
                Some(SpellingMatch { range, index: *index })
            });
            let first = self.short_match(bytes, from).into_iter().chain(long);
            let key = |found: &SpellingMatch| {
                (found.range.start, std::cmp::Reverse(found.range.end), found.index)
            };
            let Some(SpellingMatch { range, index }) = first.min_by_key(key) else { break };
            let target = replaced.get_or_insert_with(|| Vec::with_capacity(bytes.len()));
            target.extend_from_slice(bytes.get(from..range.start).unwrap_or_default());
            target.extend_from_slice(replacements.get(index).map_or(b"", |text| text.as_bytes()));
            from = range.end;
        }
        if let Some(target) = &mut replaced {
            target.extend_from_slice(bytes.get(from..).unwrap_or_default());
        }
        replaced
    }

    fn short_match(&self, bytes: &[u8], from: usize) -> Option<SpellingMatch> {
        let input = aho_corasick::Input::new(bytes).range(from..);
        let found = self.short.as_ref()?.find(input)?;
        let index = *self.short_indexes.get(found.pattern().as_usize())?;
        Some(SpellingMatch { range: found.range(), index })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(spellings: &[String], text: &str) -> Option<String> {
        let names: Vec<_> = (0..spellings.len()).map(|index| format!("<{index}>")).collect();
        let found = SpellingSearch::new(spellings).unwrap().replace(text.as_bytes(), &names);
        found.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn short_and_long_spellings_are_found_the_longest_first() {
        let long = "ab".repeat(AUTOMATON_BYTES_MAX);
        let spellings = [long.clone(), "abab".to_owned(), format!("{long}!"), "é".to_owned()];
        assert_eq!(replaced(&spellings, "abc"), None);
        assert_eq!(replaced(&spellings, "xababx").unwrap(), "x<1>x");
        let text = format!("-{long}-{long}!é{long}abab{long}!");
        assert_eq!(replaced(&spellings, &text).unwrap(), "-<0>-<2><3><0><0><1>!");
    }

    #[test]
    fn a_long_spelling_that_repeats_itself_is_prepared_at_once() {
        let long = "a".repeat(64 * 1024);
        let text = format!("{long}{long}b");
        assert_eq!(replaced(&[long], &text).unwrap(), "<0><0>b");
    }
}
