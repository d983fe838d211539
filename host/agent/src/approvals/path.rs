//! Patterns for arguments that name files (`LOOP-53`).

/// Maximum length of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 256;
/// ASCII characters of a path besides letters and digits. All others may be read differently by
/// the tool: as separators, variables, encodings or wildcards.
const PLAIN: &str = " ._-+,@()[]{}=#!&'";

/// Result of comparing a path with a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    /// The path matches.
    Matches,
    /// The path does not match.
    Differs,
    /// The path may mean another file than it says.
    Unclear,
}

/// Returns the reason why a pattern can match nothing, if there is one.
pub(super) fn objection(pattern: &str) -> Option<&'static str> {
    let rest = pattern.strip_prefix('/').unwrap_or(pattern);
    if pattern.len() > PATTERN_BYTES_MAX {
        return Some("it has more than 256 bytes");
    }
    let is_partial = |segment: &str| segment.contains("**") && segment != "**";
    if rest.split('/').any(is_partial) {
        return Some("`**` has to be a whole segment");
    }
    let bare = rest.replace(['*', '?'], "x");
    (!is_plain(&bare)).then_some("no path that is compared has such segments or characters")
}

/// Compares a path with a pattern as an allowing rule does: literally, and only if the path is the
/// plain name of one file. A wildcard matches no dot at the beginning of a segment.
pub(super) fn allows(pattern: &str, path: &str) -> Comparison {
    let (root, rest) = split_root(path);
    if !is_plain(rest) {
        return Comparison::Unclear;
    }
    let (pattern_root, pattern) = split_root(pattern);
    let segments: Vec<&str> = rest.split('/').collect();
    let mut pattern: Vec<&str> = pattern.split('/').collect();
    if pattern.last() == Some(&"**") {
        // What is in a directory, and not the directory itself.
        pattern.push("*");
    }
    if root == pattern_root && matches(&pattern, &segments, false) {
        return Comparison::Matches;
    }
    Comparison::Differs
}

/// Compares a path with a pattern as a denying or asking rule does: ignoring case, and also for
/// what is below a match, and for the directories that contain what the pattern names. An absolute
/// path may name the same file as a relative one.
pub(super) fn concerns(pattern: &str, path: &str) -> Comparison {
    let (root, rest) = split_root(path);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    if rest.is_empty() || !is_plain(rest) {
        return Comparison::Unclear;
    }
    let (pattern_root, pattern) = split_root(pattern);
    let (pattern, path) = (pattern.to_lowercase(), rest.to_lowercase());
    let pattern: Vec<&str> = pattern.split('/').collect();
    let segments: Vec<&str> = path.split('/').collect();
    let literal = pattern.iter().take_while(|part| **part != "**").count();
    let is_ancestor = (1..=literal.min(pattern.len().saturating_sub(1)))
        .filter_map(|length| pattern.get(..length))
        .any(|ancestor| matches(ancestor, &segments, true));
    // What is below a file or directory that matches is concerned as well.
    let is_below = (1..=segments.len())
        .filter_map(|length| segments.get(..length))
        .any(|above| matches(&pattern, above, true));
    match is_ancestor || is_below {
        true => Comparison::Matches,
        false if root != pattern_root => Comparison::Unclear,
        false => Comparison::Differs,
    }
}

fn split_root(path: &str) -> (bool, &str) {
    match path.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, path),
    }
}

/// Returns whether a path without its root is read in the same way by every tool: it has no empty,
/// `.` or `..` segment, none that ends with a dot or a space, and only plain characters.
fn is_plain(path: &str) -> bool {
    let is_plain_char = |char: char| char.is_alphanumeric() || PLAIN.contains(char);
    path.split('/').all(|segment| {
        !segment.is_empty()
            && !segment.starts_with(' ')
            && !segment.ends_with(['.', ' '])
            && segment.chars().all(is_plain_char)
    })
}

/// Matches segments; `**` matches any number of them. Takes time proportional to the product of
/// the lengths.
fn matches(pattern: &[&str], segments: &[&str], hidden: bool) -> bool {
    // Numbers of segments that the pattern so far can match.
    let mut reached = vec![false; segments.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in pattern {
        let mut next = vec![false; reached.len()];
        let mut carried = false;
        for (length, can_match) in next.iter_mut().enumerate() {
            let segment = length.checked_sub(1).and_then(|index| segments.get(index));
            let before = length.checked_sub(1).and_then(|index| reached.get(index)) == Some(&true);
            *can_match = if *part == "**" {
                let is_shown = segment.is_none_or(|name| hidden || !name.starts_with('.'));
                carried = reached.get(length) == Some(&true) || carried && is_shown;
                carried
            } else {
                before && segment.is_some_and(|name| segment_matches(part, name, hidden))
            };
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

/// Matches one segment, in which `*` and `?` are wildcards.
fn segment_matches(pattern: &str, name: &str, hidden: bool) -> bool {
    if !hidden && name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let name: Vec<char> = name.chars().collect();
    let mut reached = vec![false; name.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    for part in pattern.chars() {
        let mut next = vec![false; reached.len()];
        let mut carried = false;
        for (length, can_match) in next.iter_mut().enumerate() {
            let last = length.checked_sub(1);
            let before = last.and_then(|index| reached.get(index)) == Some(&true);
            *can_match = if part == '*' {
                carried |= reached.get(length) == Some(&true);
                carried
            } else {
                let char = last.and_then(|index| name.get(index));
                before && char.is_some_and(|char| part == '?' || part == *char)
            };
        }
        reached = next;
    }
    reached.last() == Some(&true)
}

/// Returns the pattern of everything below the directory of a path; `None` if the path is unclear
/// or names no directory.
pub(super) fn same_folder(path: &str) -> Option<String> {
    let (folder, _) = path.rsplit_once('/')?;
    let is_clear = !folder.is_empty() && is_plain(split_root(path).1);
    is_clear.then(|| format!("{folder}/**"))
}
