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

/// What a name is to somebody who does not look closely. Two names that share either are taken for one another.
pub(super) struct Looks {
    /// Without case, and with one separator for all of them.
    pub(super) folded: String,
    /// As it is drawn.
    pub(super) drawn: String,
}

impl Looks {
    pub(super) fn of(name: &ToolName) -> Self {
        Self { folded: folded(name.as_str()), drawn: drawn(name.as_str()) }
    }
}

impl Names {
    /// The entry that has exactly this name.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.exact.get(name).copied()
    }

    /// The entry whose name is one that looks like this, or cannot be told from it.
    pub(super) fn taken(&self, looks: &Looks) -> Option<usize> {
        // Names that are the same look the same.
        self.folded.get(&looks.folded).or_else(|| self.drawn.get(&looks.drawn)).copied()
    }

    /// Takes a name for an entry.
    pub(super) fn take(&mut self, name: &ToolName, looks: Looks, entry: usize) {
        self.folded.insert(looks.folded, entry);
        self.drawn.insert(looks.drawn, entry);
        self.exact.insert(name.clone(), entry);
    }

    /// Makes room for so many names more.
    pub(super) fn reserve(&mut self, names: usize) {
        self.exact.reserve(names);
        self.folded.reserve(names);
        self.drawn.reserve(names);
    }
}

/// A name without case, and with one separator for all of them.
fn folded(name: &str) -> String {
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
fn drawn(name: &str) -> String {
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
        names.take(&one, Looks::of(&one), 7);
        let forwards = names.taken(&Looks::of(&other));
        let mut names = Names::default();
        names.take(&other, Looks::of(&other), 7);
        assert_eq!(forwards, names.taken(&Looks::of(&one)), "{one} and {other}, either way round");
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
