//! Compares files line by line.

use std::fmt::Write as _;

use imara_diff::{Algorithm, Diff, InternedInput};

/// Maximum number of bytes of a file that is compared.
pub(crate) const DIFF_BYTES_MAX: usize = 2 << 20;

/// Number of bytes at the beginning of a file that decide if it is text, as in git.
const TEXT_PROBE_BYTES: usize = 8000;

/// Lines that differ: ranges of line numbers from 0.
pub(crate) struct Hunk {
    pub(crate) before: std::ops::Range<usize>,
    pub(crate) after: std::ops::Range<usize>,
}

/// Returns true if the beginning of a file contains no zero byte.
pub(crate) fn is_text(data: &[u8]) -> bool {
    !data.iter().take(TEXT_PROBE_BYTES).any(|byte| *byte == 0)
}

/// Returns the lines of a file with their ends.
pub(crate) fn lines(data: &[u8]) -> Vec<&[u8]> {
    data.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Compares lines.
pub(crate) fn hunks(before: &[&[u8]], after: &[&[u8]]) -> Vec<Hunk> {
    // Not `InternedInput::new`: it allocates memory by an estimate, which input can make too large.
    let mut input = InternedInput::default();
    input.update_before(before.iter().copied());
    input.update_after(after.iter().copied());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let range = |range: std::ops::Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Hunk { before: range(hunk.before), after: range(hunk.after) }).collect()
}

/// Numbers of lines that a change adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) added: usize,
    pub(crate) removed: usize,
}

pub(crate) fn count(hunks: &[Hunk]) -> Counts {
    Counts {
        added: hunks.iter().map(|hunk| hunk.after.len()).sum(),
        removed: hunks.iter().map(|hunk| hunk.before.len()).sum(),
    }
}

/// Writes hunks in the unified format until `text` has more than `bytes_max` bytes.
pub(crate) fn unified(
    text: &mut String,
    (before, after): (&[&[u8]], &[&[u8]]),
    hunks: &[Hunk],
    context: usize,
    bytes_max: usize,
) {
    let mut rest = hunks;
    while let Some(first) = rest.first() {
        // Hunks whose contexts touch are shown as one.
        let joined = rest
            .windows(2)
            .take_while(|pair| match pair {
                [a, b] => b.before.start.saturating_sub(a.before.end) <= context * 2,
                _ => false,
            })
            .count();
        let Some((group, next)) = rest.split_at_checked(joined + 1) else { return };
        rest = next;
        let last = group.last().unwrap_or(first);
        let lead = context.min(first.before.start);
        let tail = context.min(before.len().saturating_sub(last.before.end));
        let old = first.before.start - lead..last.before.end + tail;
        let new = first.after.start.saturating_sub(lead)..last.after.end + tail;
        let _ = writeln!(text, "@@ -{} +{} @@", position(&old), position(&new));
        let mut at = old.start;
        for hunk in group {
            write_lines(text, ' ', before.get(at..hunk.before.start));
            write_lines(text, '-', before.get(hunk.before.clone()));
            write_lines(text, '+', after.get(hunk.after.clone()));
            at = hunk.before.end;
            if text.len() > bytes_max {
                return;
            }
        }
        write_lines(text, ' ', before.get(at..old.end));
    }
}

fn position(range: &std::ops::Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

fn write_lines(text: &mut String, sign: char, lines: Option<&[&[u8]]>) {
    for line in lines.unwrap_or_default() {
        text.push(sign);
        text.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// Returns the share of lines that two files have in common, in percent of the longer one.
pub(crate) fn similarity(before: &[u8], after: &[u8]) -> usize {
    let (before, after) = (lines(before), lines(after));
    let longer = before.len().max(after.len());
    let kept = before.len() - count(&hunks(&before, &after)).removed;
    (kept * 100).checked_div(longer).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use super::{hunks, is_text, lines, similarity, unified};

    fn diff(before: &str, after: &str) -> String {
        let (before, after) = (lines(before.as_bytes()), lines(after.as_bytes()));
        let mut text = String::new();
        unified(&mut text, (&before, &after), &hunks(&before, &after), 1, 1000);
        text
    }

    #[test]
    fn differences_are_in_the_unified_format() {
        assert_eq!(diff("a\nb\nc\n", "a\nx\nc\n"), "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        assert_eq!(diff("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(diff("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(
            diff("a\nb", "a\nb\n"),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
        assert_eq!(diff("same\n", "same\n"), "");
        assert_eq!(
            diff("1\n2\n3\n4\n5\n6\n7\n", "0\n1\n2\n3\n4\n5\n6\n"),
            "@@ -1 +1,2 @@\n+0\n 1\n@@ -6,2 +7 @@\n 6\n-7\n"
        );
    }

    #[test]
    fn similarity_is_a_percentage() {
        assert_eq!(similarity(b"a\nb\n", b"a\nc\n"), 50);
        assert_eq!(similarity(b"", b""), 100);
        assert_eq!(similarity(b"a\n", b""), 0);
        assert!(is_text(b"a\n") && !is_text(b"a\0"));
    }
}
