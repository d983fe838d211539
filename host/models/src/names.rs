//! Translation of names into ones that a provider accepts.
//!
//! Every provider restricts names of functions and ids of calls to `A-Z a-z 0-9 _ -` and a maximum
//! length. Our names may have dots and 128 characters, and an id may come from any model. A name
//! that does not fit is replaced in the request and restored in the reply. A name that fits is sent
//! unchanged, so that a conversation reads the same for every model.

use std::collections::HashMap;

/// Table of names and their replacements.
#[derive(Debug, Clone)]
pub(super) struct NameMap {
    chars_max: usize,
    to_wire: HashMap<String, String>,
    to_ours: HashMap<String, String>,
}

impl NameMap {
    /// Creates a table for names of at most `chars_max` characters.
    pub(super) fn new(chars_max: usize) -> Self {
        Self { chars_max, to_wire: HashMap::new(), to_ours: HashMap::new() }
    }

    /// Adds names of equal rank: those that fit stay unchanged, whatever the order.
    pub(super) fn add_all<'n>(&mut self, names: impl Iterator<Item = &'n str> + Clone) {
        let chars_max = self.chars_max;
        let (fitting, others) = (names.clone(), names);
        fitting.filter(|name| fits(name, chars_max)).for_each(|name| self.add(name));
        others.filter(|name| !fits(name, chars_max)).for_each(|name| self.add(name));
    }

    /// Returns whether [`add`](Self::add) would have an effect: a name that fits and does not
    /// replace another needs no entry.
    pub(super) fn needs(&self, name: &str) -> bool {
        !self.to_wire.contains_key(name)
            && (!fits(name, self.chars_max) || self.to_ours.contains_key(name))
    }

    /// Finds a replacement for `name` and stores it.
    pub(super) fn add(&mut self, name: &str) {
        if self.to_wire.contains_key(name) {
            return;
        }
        let fitting = fitting(name, self.chars_max);
        let mut wire = fitting.clone();
        let mut number = 2_usize;
        while self.to_ours.contains_key(&wire) {
            let suffix = format!("_{number}");
            let start: String =
                fitting.chars().take(self.chars_max.saturating_sub(suffix.len())).collect();
            wire = start + &suffix;
            number = number.saturating_add(1);
        }
        self.to_ours.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }

    /// Returns the replacement of a name, or the name itself.
    pub(super) fn wire<'n>(&'n self, name: &'n str) -> &'n str {
        self.to_wire.get(name).map_or(name, String::as_str)
    }

    /// Returns the name that a provider's name replaces. An unknown name is the model's invention
    /// and is returned unchanged.
    pub(super) fn ours<'n>(&'n self, wire: &'n str) -> &'n str {
        self.to_ours.get(wire).map_or(wire, String::as_str)
    }
}

fn is_fitting(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn fits(name: &str, chars_max: usize) -> bool {
    !name.is_empty() && name.len() <= chars_max && name.chars().all(is_fitting)
}

fn fitting(name: &str, chars_max: usize) -> String {
    if name.is_empty() {
        return "_".to_owned();
    }
    name.chars().take(chars_max).map(|c| if is_fitting(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_that_fits_is_itself_whatever_else_there_is() {
        let mut names = NameMap::new(64);
        names.add_all(["files.read", "files_read", "plain", "files:read"].into_iter());
        let wires: Vec<_> = ["files_read", "plain", "files.read", "files:read"]
            .iter()
            .map(|name| names.wire(name))
            .collect();
        assert_eq!(wires, ["files_read", "plain", "files_read_2", "files_read_3"]);
        assert_eq!(names.ours("files_read_2"), "files.read");
        assert_eq!(names.ours("files.read"), "files.read");
        assert_eq!(names.ours("invented"), "invented");
        assert!(names.needs("files_read_2"), "it stands for another one already");
        assert!(!names.needs("unknown-and-fine"));
    }

    proptest! {
        #[test]
        fn every_name_fits_and_leads_back(names in proptest::collection::vec("[a._é-]{0,6}|[ab]{60,140}", 1..40)) {
            let mut table = NameMap::new(64);
            table.add_all(names.iter().map(String::as_str));
            for name in &names {
                let wire = table.wire(name);
                prop_assert!(fits(wire, 64), "{} for {}", wire, name);
                prop_assert_eq!(table.ours(wire), name);
            }
        }
    }
}
