//! Compares the search with a simple implementation that checks one line and one file after
//! another.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::lines::{LineSearch, Matches};
use super::super::tally::MatchTally;
use super::*;

/// Parts of patterns: anything that may treat a line end differently in a line and in a text of
/// lines.
const ATOMS: [&str; 46] = [
    "a",
    "b",
    "B",
    "é",
    "k",
    "s",
    "_",
    " ",
    r"\n",
    "\n",
    r"\r",
    ".",
    "^",
    "$",
    r"\A",
    r"\z",
    r"\b",
    r"\B",
    r"\s",
    r"\S",
    r"\w",
    r"\W",
    r"\d",
    "[^a]",
    "[^a\\n]",
    "[\\n-a]",
    r"[\s\S]",
    r"(?s:.)",
    r"(?m:^)",
    r"(?m:$)",
    r"(?R:.)",
    r"(?R:$)",
    r"(?mR:^)",
    r"(?mR:$)",
    r"(?-i:a)",
    r"(?-u:\b)",
    r"(?-u:\B)",
    r"(?-u:\w)",
    r"\b{start}",
    r"\b{end}",
    r"\b{start-half}",
    r"\b{end-half}",
    r"\r\n",
    "a\\nb",
    r"\P{any}",
    "",
];
/// Parts of the searched strings. If case is ignored, the Kelvin sign is a k and the long s is an
/// s.
const PIECES: [&str; 18] = [
    "a", "b", "A", "é", "É", "\n", "\r\n", "\r", "\n\n", "\r\r\n", " ", "_", "\u{212a}", "\u{17f}",
    "ab", "b\u{301}", "\u{85}", "\u{2028}",
];

fn patterns() -> impl Strategy<Value = String> {
    let atom = select(&ATOMS[..]).prop_map(str::to_owned);
    atom.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            1 => prop::collection::vec(inner.clone(), 1..3).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            1 => (inner.clone(), select(&["*", "+", "?", "*?", "{2}", "{0,2}", "{0}"][..]))
                .prop_map(|(part, times)| format!("({part}){times}")),
            1 => (select(&["m", "s", "R", "mR", "ms", "x", "U", "-i"][..]), inner)
                .prop_map(|(flags, part)| format!("(?{flags}:{part})")),
        ]
    })
}

fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(select(&PIECES[..]), 0..24).prop_map(|pieces| pieces.concat())
}

/// Returns the lines as defined by `FILE-30`, each with its offset.
fn lines(text: &str) -> Vec<(usize, &str)> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some((line, behind)) = rest.split_once('\n') {
        lines.push((text.len() - rest.len(), line.strip_suffix('\r').unwrap_or(line)));
        rest = behind;
    }
    lines.push((text.len() - rest.len(), rest));
    lines
}

/// Implements the rules literally.
fn plain(pattern: &SearchPattern, text: &str, caps: SearchCaps) -> Matches {
    let mut matches = Matches::default();
    for (line_number, (start, line)) in (1..).zip(lines(text)) {
        let Some((from, to)) = pattern.find(line) else { continue };
        if matches.matching_lines.len() as u64 == caps.matches_max {
            matches.is_truncated = true;
            break;
        }
        let (before, rest) = text.split_at(start + from);
        let (found, after) = rest.split_at(to - from);
        let before: Vec<char> = before.chars().rev().take(50).collect();
        let around = before.into_iter().rev().chain(found.chars()).chain(after.chars().take(50));
        matches.around_first.get_or_insert_with(|| around.collect());
        matches.matching_lines.push(MatchingLine { line_number, line: line.to_owned() });
    }
    matches
}

fn in_blocks(pattern: &SearchPattern, text: &str, caps: SearchCaps, block_lines: usize) -> Matches {
    let mut search = LineSearch::new(pattern, caps);
    let mut rest = text;
    loop {
        let feeds = rest.match_indices('\n').map(|(at, _)| at + 1);
        let Some(end) = feeds.take(block_lines).last() else { break };
        let (block, behind) = rest.split_at(end);
        search.search(block.as_bytes(), false).unwrap();
        rest = behind;
    }
    search.search(rest.as_bytes(), true).unwrap();
    search.finish()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lines_are_found_as_if_each_was_looked_at(
        pattern in patterns(),
        is_case_sensitive in any::<bool>(),
        texts in prop::collection::vec(texts(), 4),
        matches_max in select(&[0_u64, 1, 2, 100][..]),
        block_lines in 1_usize..4,
    ) {
        let Ok(pattern) = pattern::compile(&pattern, is_case_sensitive) else { return Ok(()) };
        prop_assert!(pattern.has_candidates());
        let caps = SearchCaps { matches_max, line_bytes_max: usize::MAX };
        for text in texts {
            let expected = plain(&pattern, &text, caps);
            prop_assert_eq!(&in_blocks(&pattern, &text, caps, usize::MAX), &expected, "{:?}", text);
            prop_assert_eq!(&in_blocks(&pattern, &text, caps, block_lines), &expected, "{:?}", text);
            prop_assert_eq!(&whole(&pattern, &text, caps), &expected, "{:?}", text);
        }
    }

    #[test]
    fn files_that_are_done_in_any_order_give_the_same_answer(
        counts in prop::collection::vec(0_u64..5, 1..12),
        matches_max in 0_u64..8,
        seed in any::<u64>(),
    ) {
        let matches = |lines: u64| Matches {
            around_first: (lines.min(matches_max) > 0).then(String::new),
            matching_lines: (1..=lines.min(matches_max))
                .map(|line_number| MatchingLine { line_number, line: String::new() })
                .collect(),
            is_truncated: lines > matches_max,
        };
        let paths: Vec<_> =
            (0..counts.len()).map(|name| StorePath::file(&format!("f{name:02}")).unwrap()).collect();
        let in_order = {
            let (mut left, mut results) = (matches_max, SearchResults::default());
            for (path, lines) in paths.iter().zip(&counts) {
                let shown = matches(*lines.min(&left));
                left -= shown.matching_lines.len() as u64;
                results.files.extend(shown.around_first.map(|snippet| FileMatches {
                    file_name: path.to_string(), snippet, matching_lines: shown.matching_lines,
                }));
                if shown_all(*lines, results.files.last(), path) { continue }
                results.truncated = Some(Truncation::Matches);
                break;
            }
            results
        };
        let mut order: Vec<_> = (0..counts.len()).collect();
        order.sort_by_key(|index| (*index as u64 + 1).wrapping_mul(seed | 1));
        let (mut tally, mut end) = (MatchTally::new(counts.len(), matches_max), counts.len());
        for index in order {
            if index < end {
                end = tally.add(index, matches(counts[index]));
            }
            prop_assert!(tally.lines_held() <= matches_max.saturating_mul(2) + 1);
        }
        prop_assert_eq!(tally.into_results(&paths), in_order);
    }
}

fn whole(pattern: &SearchPattern, text: &str, caps: SearchCaps) -> Matches {
    let mut search = LineSearch::new(pattern, caps);
    search.search(text.as_bytes(), true).unwrap();
    search.finish()
}

/// Returns whether all `lines` of the file at `path` are in the results. `last` is their last file.
fn shown_all(lines: u64, last: Option<&FileMatches>, path: &StorePath) -> bool {
    let shown = last.filter(|file| file.file_name == path.to_string());
    lines == shown.map_or(0, |file| file.matching_lines.len() as u64)
}
