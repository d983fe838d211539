//! Which names of a toolset a person or a model would take for one another.
//!
//! Tools of different sources come from different authors, and one of them may want to be taken for the other. So names
//! of different sources must differ by more than case, by more than `-`, `_` and `.`, and by more than the characters of
//! the alphabet that look alike. That is more than a single plugin's own names have to (`ARG-43`): there, whoever could
//! be confused with the author is the author.

use std::collections::HashMap;

use crate::ToolName;

/// The names that are taken, and by which entry.
#[derive(Clone, Default)]
pub(super) struct Names {
    exact: HashMap<ToolName, usize>,
    folded: HashMap<String, usize>,
    drawn: HashMap<String, usize>,
}

impl Names {
    /// The entry that has exactly this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied()
    }

    /// The entry whose name is this one or cannot be told from it.
    pub(super) fn taken(&self, name: &ToolName) -> Option<usize> {
        let found = self.find(name.as_str());
        let found = found.or_else(|| self.folded.get(&folded(name.as_str())).copied());
        found.or_else(|| self.drawn.get(&drawn(name.as_str())).copied())
    }

    /// Takes a name for an entry.
    pub(super) fn take(&mut self, name: &ToolName, entry: usize) {
        self.folded.insert(folded(name.as_str()), entry);
        self.drawn.insert(drawn(name.as_str()), entry);
        self.exact.insert(name.clone(), entry);
    }
}

/// A name without case, and with one separator for all of them.
pub(super) fn folded(name: &str) -> String {
    name.chars().map(fold).collect()
}

fn fold(character: char) -> char {
    match character {
        '-' | '.' => '_',
        other => other.to_ascii_lowercase(),
    }
}

/// What a name looks like: one character for all that are drawn nearly alike, then without case. `i` stays apart from
/// `l`, though `I` looks like one and is the other by case: else `mail` and `mall` would be one name.
pub(super) fn drawn(name: &str) -> String {
    let mut drawn = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0' => drawn.push('o'),
            '1' | 'I' => drawn.push('l'),
            'm' | 'M' => drawn.push_str("rn"),
            'w' | 'W' => drawn.push_str("vv"),
            other => drawn.push(fold(other)),
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        let (one, other) = (ToolName::new(one).unwrap(), ToolName::new(other).unwrap());
        let mut names = Names::default();
        names.take(&one, 7);
        let forwards = names.taken(&other);
        let mut names = Names::default();
        names.take(&other, 7);
        assert_eq!(forwards, names.taken(&one), "{one} and {other}, either way round");
        forwards == Some(7)
    }

    #[test]
    fn names_that_cannot_be_told_apart() {
        for (one, other) in [
            ("read_file", "read_file"),
            ("read_file", "Read_File"),
            ("read_file", "read-file"),
            ("read_file", "read.file"),
            ("read_file", "read_fi1e"),
            ("list", "Iist"),
            ("list", "1ist"),
            ("log0", "logO"),
            ("log0", "logo"),
            ("format", "forrnat"),
            ("write", "vvrite"),
            ("Read-fi1e", "read_file"),
        ] {
            assert!(are_alike(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn names_that_differ() {
        for (one, other) in [
            ("mail", "mall"),
            ("read_file", "read_files"),
            ("read_file", "readfile"),
            ("a_b", "ab"),
            ("get_v1", "get_v2"),
            ("burn", "bun"),
            ("sum", "sun"),
        ] {
            assert!(!are_alike(one, other), "{one} and {other}");
        }
    }
}
