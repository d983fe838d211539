//! Which names of a toolset a person or a model would take for one another.
//!
//! Tools of different sources come from different authors, and one of them may want to be taken for
//! the other. So names of different sources must differ by more than case, by more than `-`, `_`
//! and `.`, and by more than the characters of the alphabet that look alike. That is more than a
//! single plugin's own names have to (`ARG-43`): there, whoever could be confused with the author
//! is the author.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

/// The names that are taken, and by which entry. It holds no name itself: whoever asks gives the
/// names of the entries.
#[derive(Clone, Default)]
pub(super) struct Names {
    exact: HashTable<usize>,
    folded: HashTable<usize>,
    drawn: HashTable<usize>,
    random: RandomState,
}

impl Names {
    /// The entry that has exactly this name.
    pub(super) fn find<'n>(&self, name: &str, name_of: impl Fn(usize) -> &'n str) -> Option<usize> {
        let hash = self.random.hash_one(name);
        self.exact.find(hash, |entry| name_of(*entry) == name).copied()
    }

    /// The entry whose name is this one or cannot be told from it.
    pub(super) fn taken<'n>(
        &self,
        name: &str,
        name_of: impl Fn(usize) -> &'n str,
    ) -> Option<usize> {
        // Names that are the same are the same without case.
        let alike = |table: &HashTable<usize>, look: Look| {
            let looked = look(name);
            let hash = self.random.hash_one(looked.bytes());
            table.find(hash, |entry| look(name_of(*entry)).bytes() == looked.bytes()).copied()
        };
        alike(&self.folded, folded).or_else(|| alike(&self.drawn, drawn))
    }

    /// Takes the name of an entry. Where it is taken, the later entry has it.
    pub(super) fn take<'n>(&mut self, entry: usize, name_of: impl Fn(usize) -> &'n str) {
        let (name, random) = (name_of(entry), &self.random);
        let exact = random.hash_one(name);
        match self.exact.find_mut(exact, |other| name_of(*other) == name) {
            Some(other) => *other = entry,
            None => drop(
                self.exact.insert_unique(exact, entry, |entry| random.hash_one(name_of(*entry))),
            ),
        }
        for (table, look) in [(&mut self.folded, folded as Look), (&mut self.drawn, drawn)] {
            let looked = look(name);
            let hash_of = |entry: &usize| random.hash_one(look(name_of(*entry)).bytes());
            let hash = random.hash_one(looked.bytes());
            match table.find_mut(hash, |other| look(name_of(*other)).bytes() == looked.bytes()) {
                Some(other) => *other = entry,
                None => drop(table.insert_unique(hash, entry, hash_of)),
            }
        }
    }

    /// Makes room for the names of `entries` in all.
    pub(super) fn reserve<'n>(&mut self, entries: usize, name_of: impl Fn(usize) -> &'n str) {
        let more = entries.saturating_sub(self.exact.len());
        let random = &self.random;
        self.exact.reserve(more, |entry| random.hash_one(name_of(*entry)));
        self.folded.reserve(more, |entry| random.hash_one(folded(name_of(*entry)).bytes()));
        self.drawn.reserve(more, |entry| random.hash_one(drawn(name_of(*entry)).bytes()));
    }
}

/// How a name is looked at by somebody who does not look closely.
pub(super) type Look = fn(&str) -> Looked;

/// A name as it was looked at, on the stack: a toolset looks at thousands.
pub(super) struct Looked {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl Looked {
    /// Two for each character of the longest name (`ARG-38`). What is longer is cut: names are
    /// checked before.
    const BYTES_MAX: usize = 256;

    fn new() -> Self {
        Self { bytes: [0; Self::BYTES_MAX], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
}

/// A name without case, and with one separator for all of them.
pub(super) fn folded(name: &str) -> Looked {
    let mut folded = Looked::new();
    name.bytes().for_each(|byte| folded.push(fold(byte)));
    folded
}

fn fold(byte: u8) -> u8 {
    match byte {
        b'-' | b'.' => b'_',
        other => other.to_ascii_lowercase(),
    }
}

/// What a name looks like: one character for all that are drawn nearly alike, then without case.
/// `i` stays apart from `l`, though `I` looks like one and is the other by case: else `mail` and
/// `mall` would be one name.
pub(super) fn drawn(name: &str) -> Looked {
    let mut drawn = Looked::new();
    for byte in name.bytes() {
        match byte {
            b'0' => drawn.push(b'o'),
            b'1' | b'I' => drawn.push(b'l'),
            b'm' | b'M' => b"rn".iter().for_each(|byte| drawn.push(*byte)),
            b'w' | b'W' => b"vv".iter().for_each(|byte| drawn.push(*byte)),
            other => drawn.push(fold(other)),
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_alike(one: &str, other: &str) -> bool {
        let taken = |taken: &str, name: &str| {
            let mut names = Names::default();
            names.take(7, |_| taken);
            names.taken(name, |_| taken)
        };
        let forwards = taken(one, other);
        assert_eq!(forwards, taken(other, one), "{one} and {other}, either way round");
        forwards == Some(7)
    }

    #[test]
    fn the_longest_names_are_looked_at_as_a_whole() {
        let (one, other) = (format!("{}a", "m".repeat(127)), format!("{}b", "m".repeat(127)));
        assert!(!are_alike(&one, &other));
        assert!(are_alike(&one, &one.to_uppercase()));
    }

    #[test]
    fn a_name_is_found_among_many() {
        let names: Vec<String> = (0..1000).map(|number| format!("tool{number}")).collect();
        let name_of = |entry: usize| names[entry].as_str();
        let mut taken = Names::default();
        taken.reserve(10, name_of);
        (0..names.len()).for_each(|entry| taken.take(entry, name_of));
        for (entry, name) in names.iter().enumerate() {
            assert_eq!(taken.find(name, name_of), Some(entry));
            assert_eq!(taken.find(&name.to_uppercase(), name_of), None);
        }
        assert_eq!((taken.find("tool", name_of), taken.taken("toolx", name_of)), (None, None));
        assert!(taken.taken("TOOL999", name_of).is_some());
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
