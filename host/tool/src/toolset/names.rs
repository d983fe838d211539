//! Finds names of a toolset that a user or a model could confuse.
//!
//! Tools of different sources come from different authors, and one author may want to imitate
//! another. So names of different sources must differ by more than case, by more than `-`, `_` and
//! `.`, and by more than characters of the alphabet that look alike. This is stricter than for the
//! names of a single plugin (`ARG-43`), whose author could only imitate themselves.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

/// Index of the taken names by entry. It stores no names: callers pass a function that returns the
/// name of an entry.
#[derive(Clone, Default)]
pub(super) struct NameIndex {
    exact: HashTable<usize>,
    folded: HashTable<usize>,
    drawn: HashTable<usize>,
    random: RandomState,
}

impl NameIndex {
    /// Returns the entry that has exactly this name.
    pub(super) fn find<'n>(&self, name: &str, name_of: impl Fn(usize) -> &'n str) -> Option<usize> {
        let hash = self.random.hash_one(name);
        self.exact.find(hash, |entry| name_of(*entry) == name).copied()
    }

    /// Returns the entry whose name is equal to or confusable with this one.
    pub(super) fn taken<'n>(
        &self,
        name: &str,
        name_of: impl Fn(usize) -> &'n str,
    ) -> Option<usize> {
        // Equal names are also equal without case, so these two tables suffice.
        let alike = |table: &HashTable<usize>, look: NameFold| {
            let looked = look(name);
            let hash = self.random.hash_one(looked.bytes());
            table.find(hash, |entry| look(name_of(*entry)).bytes() == looked.bytes()).copied()
        };
        alike(&self.folded, folded).or_else(|| alike(&self.drawn, confusable_fold))
    }

    /// Adds the name of an entry, replacing an earlier entry of the same name.
    pub(super) fn take<'n>(&mut self, entry: usize, name_of: impl Fn(usize) -> &'n str) {
        let (name, random) = (name_of(entry), &self.random);
        let exact = random.hash_one(name);
        match self.exact.find_mut(exact, |other| name_of(*other) == name) {
            Some(other) => *other = entry,
            None => drop(
                self.exact.insert_unique(exact, entry, |entry| random.hash_one(name_of(*entry))),
            ),
        }
        for (table, look) in
            [(&mut self.folded, folded as NameFold), (&mut self.drawn, confusable_fold)]
        {
            let looked = look(name);
            let hash_of = |entry: &usize| random.hash_one(look(name_of(*entry)).bytes());
            let hash = random.hash_one(looked.bytes());
            match table.find_mut(hash, |other| look(name_of(*other)).bytes() == looked.bytes()) {
                Some(other) => *other = entry,
                None => drop(table.insert_unique(hash, entry, hash_of)),
            }
        }
    }

    /// Reserves capacity for the names of `entries` in total.
    pub(super) fn reserve<'n>(&mut self, entries: usize, name_of: impl Fn(usize) -> &'n str) {
        let more = entries.saturating_sub(self.exact.len());
        let random = &self.random;
        self.exact.reserve(more, |entry| random.hash_one(name_of(*entry)));
        self.folded.reserve(more, |entry| random.hash_one(folded(name_of(*entry)).bytes()));
        self.drawn.reserve(more, |entry| random.hash_one(confusable_fold(name_of(*entry)).bytes()));
    }
}

/// Maps a name to a key that is equal for confusable names.
pub(super) type NameFold = fn(&str) -> FoldedName;

/// Key of a name, stored on the stack because a toolset computes thousands.
pub(super) struct FoldedName {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl FoldedName {
    /// Maximum length: two bytes for each character of the longest name (`ARG-38`). Longer keys are
    /// truncated, which validated names never need.
    const BYTES_MAX: usize = 256;

    fn new() -> Self {
        Self { bytes: [0; Self::BYTES_MAX], length: 0 }
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.length) {
            *slot = byte;
            self.length += 1;
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&self.bytes)
    }
}

/// Returns a name in lower case and with one separator instead of all.
pub(super) fn folded(name: &str) -> FoldedName {
    let mut folded = FoldedName::new();
    name.bytes().for_each(|byte| folded.push(fold(byte)));
    folded
}

fn fold(byte: u8) -> u8 {
    match byte {
        b'-' | b'.' => b'_',
        other => other.to_ascii_lowercase(),
    }
}

/// Returns the appearance of a name: one character instead of all that look alike, then without
/// case. `i` stays different from `l`, although `I` looks like `l` and equals `i` without case:
/// otherwise `mail` and `mall` would be one name.
pub(super) fn confusable_fold(name: &str) -> FoldedName {
    let mut drawn = FoldedName::new();
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
            let mut names = NameIndex::default();
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
        let mut taken = NameIndex::default();
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
    fn names_that_are_too_similar() {
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
