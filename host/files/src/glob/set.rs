//! Sets of characters: `[ab]`, `[a-c]`, `[!ab]` (`FILE-25`).

/// One set.
#[derive(Debug, Clone)]
pub(super) struct Set {
    is_negated: bool,
    ranges: Vec<Range>,
}

/// The first and the last member.
type Range = (char, char);

impl Set {
    /// Returns whether the set matches `c`. A separator is never matched, listed or not.
    pub(super) fn contains(&self, c: char) -> bool {
        let is_listed = self.ranges.iter().any(|&(first, last)| (first..=last).contains(&c));
        c != '/' && is_listed != self.is_negated
    }
}

/// Reads the set that `pattern` starts with, and returns it with the rest. Returns `None` if there
/// is not a set: no `[`, or one without its `]`, which is then an ordinary character.
pub(super) fn parse(pattern: &[char]) -> Option<(Set, &[char])> {
    let (is_negated, members) = match pattern {
        ['[', '!', members @ ..] => (true, members),
        ['[', members @ ..] => (false, members),
        _ => return None,
    };
    let (ranges, rest) = parse_members(members)?;
    Some((Set { is_negated, ranges }, rest))
}

/// Parses one range per member, up to the `]` that ends the set. A `]` at the start is a member.
fn parse_members(mut rest: &[char]) -> Option<(Vec<Range>, &[char])> {
    let mut ranges = Vec::new();
    loop {
        rest = match rest {
            [']', after @ ..] if !ranges.is_empty() => return Some((ranges, after)),
            [first, '-', last, after @ ..] if *last != ']' => {
                ranges.push((*first, *last));
                after
            }
            [member, after @ ..] => {
                ranges.push((*member, *member));
                after
            }
            [] => return None,
        };
    }
}
