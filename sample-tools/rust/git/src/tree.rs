//! Trees: the directories of a commit.

use crate::error::Error;
use crate::glob::Paths;
use crate::id::{ID_BYTES, Id};
use crate::objects::{Kind, Objects};

/// Maximum depth of directories.
const DEPTH_MAX: usize = 128;

/// Type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Link,
    /// A commit of another repository.
    Submodule,
}

/// Entry of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) is_executable: bool,
    pub(crate) id: Id,
}

/// Entries of a tree in their order, or an error and the end.
pub(crate) struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    fn parse(&mut self) -> Option<(&'a [u8], Entry)> {
        let space = self.rest.iter().position(|byte| *byte == b' ')?;
        let (mode, rest) = self.rest.split_at_checked(space)?;
        let rest = rest.get(1..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (name, rest) = rest.split_at_checked(end)?;
        let (id, rest) = rest.get(1..)?.split_at_checked(ID_BYTES)?;
        self.rest = rest;
        let kind = match mode {
            b"40000" | b"040000" => EntryKind::Directory,
            b"120000" => EntryKind::Link,
            b"160000" => EntryKind::Submodule,
            _ => EntryKind::File,
        };
        Some((name, Entry { kind, is_executable: mode == b"100755", id: Id::from_bytes(id)? }))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<(&'a [u8], Entry), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let parsed = self.parse().ok_or(Error::Damaged("a directory is invalid"));
        if parsed.is_err() {
            self.rest = &[];
        }
        Some(parsed)
    }
}

/// Returns the entry at a path below a tree.
pub(crate) fn find(objects: &Objects, tree: Id, path: &str) -> Result<Option<Entry>, Error> {
    let mut found = Entry { kind: EntryKind::Directory, is_executable: false, id: tree };
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if found.kind != EntryKind::Directory {
            return Ok(None);
        }
        let data = objects.read_as(&found.id, Kind::Tree)?;
        let mut next = None;
        for entry in Entries::new(&data) {
            let (entry_name, entry) = entry?;
            if entry_name == name.as_bytes() {
                next = Some(entry);
                break;
            }
        }
        match next {
            Some(entry) => found = entry,
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// Returns the names of a directory, with `/` at the end of those of directories.
pub(crate) fn names(objects: &Objects, tree: &Id) -> Result<Vec<String>, Error> {
    let data = objects.read_as(tree, Kind::Tree)?;
    Entries::new(&data)
        .map(|entry| {
            let (name, entry) = entry?;
            let slash = if entry.kind == EntryKind::Directory { "/" } else { "" };
            Ok(String::from_utf8_lossy(name).into_owned() + slash)
        })
        .collect()
}

/// Calls `visit` with each selected file of a tree, in the order of paths, until it returns false.
pub(crate) fn walk(
    objects: &Objects,
    tree: Id,
    paths: &Paths,
    visit: &mut impl FnMut(&str, Entry) -> Result<bool, Error>,
) -> Result<(), Error> {
    // Entries that are still to be visited; the next one is the last.
    let mut open =
        vec![(String::new(), Entry { kind: EntryKind::Directory, is_executable: false, id: tree })];
    while let Some((path, entry)) = open.pop() {
        if entry.kind != EntryKind::Directory {
            if paths.contains(&path) && !visit(&path, entry)? {
                return Ok(());
            }
            continue;
        }
        if !path.is_empty() && !paths.enters(&path) {
            continue;
        }
        if path.matches('/').count() > DEPTH_MAX {
            return Err(Error::Damaged("its directories are nested too deeply"));
        }
        let data = objects.read_as(&entry.id, Kind::Tree)?;
        let first = open.len();
        for child in Entries::new(&data) {
            let (name, child) = child?;
            open.push((join(&path, name), child));
        }
        if let Some(added) = open.get_mut(first..) {
            added.reverse();
        }
    }
    Ok(())
}

/// Joins the path of a directory and a name.
pub(crate) fn join(directory: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    if directory.is_empty() { name.into_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::{Entries, EntryKind};

    #[test]
    fn entries_are_parsed() {
        let id = [b'i'; 20];
        let data = [b"100755 a b\0", &id[..], b"40000 c\0", &id, b"160000 s\0", &id].concat();
        let entries: Result<Vec<_>, _> = Entries::new(&data).collect();
        let entries = entries.unwrap();
        assert_eq!(entries[0].0, b"a b");
        assert!(entries[0].1.is_executable);
        assert_eq!(entries[1].1.kind, EntryKind::Directory);
        assert_eq!(entries[2].1.kind, EntryKind::Submodule);
        for length in (1..data.len()).filter(|length| ![31, 59].contains(length)) {
            assert!(Entries::new(&data[..length]).any(|it| it.is_err()), "{length}");
        }
    }
}
