//! Plan of a change to the keys, computed before anything is sent.
//!
//! A draft starts with the objects that a change involves, each at its key. Moves and removals then
//! only change names, and the difference in the end is what has to be sent.

use std::collections::{BTreeMap, BTreeSet};

use object_store::UpdateVersion;

use super::keys::{self, Key};
use super::requests::PutCondition;
use crate::StorePath;

/// The keys that a change involves.
#[derive(Debug, Default)]
pub(super) struct ObjectDraft {
    /// Existing objects, with their state if it is known.
    before: BTreeMap<Key, Option<UpdateVersion>>,
    now: BTreeMap<Key, PlannedContent>,
}

/// Planned content of a key.
#[derive(Debug)]
enum PlannedContent {
    /// The object that was at this key before.
    Object(Key),
    Content(Vec<u8>),
    /// Marker that keeps a directory. It may already exist.
    Marker,
}

/// Requests that have to be sent.
#[derive(Debug, Default)]
pub(super) struct ObjectChanges {
    pub(super) puts: Vec<ObjectPut>,
    /// Copies, each from the key of an object to its new key.
    pub(super) copies: Vec<(Key, Key)>,
    pub(super) markers: Vec<Key>,
    pub(super) deletes: Vec<Key>,
    /// Keys of objects that are replaced.
    pub(super) replaced: BTreeSet<Key>,
}

#[derive(Debug)]
pub(super) struct ObjectPut {
    pub(super) key: Key,
    pub(super) content: Vec<u8>,
    pub(super) condition: PutCondition,
}

impl ObjectDraft {
    /// Adds the object at `key`; `state` is the state that a put replacing it must find.
    pub(super) fn record_version(&mut self, key: &str, state: Option<UpdateVersion>) {
        let known = self.before.entry(key.to_owned()).or_default();
        *known = known.take().or(state);
        self.now.entry(key.to_owned()).or_insert_with(|| PlannedContent::Object(key.to_owned()));
    }

    /// Returns whether the draft knows of an object at `key`.
    pub(super) fn is_known(&self, key: &str) -> bool {
        self.before.contains_key(key)
    }

    /// Deletes a file.
    pub(super) fn delete(&mut self, path: &StorePath) {
        self.now.remove(path.as_str());
        self.keep_parent(path);
    }

    /// Removes an empty directory. Everything below it must be known.
    pub(super) fn remove_directory(&mut self, path: &StorePath) {
        self.now.remove(&keys::marker(path));
        self.keep_parent(path);
    }

    /// Moves a file, or everything below a directory, to another path. All of it must be known.
    pub(super) fn rename(&mut self, from: &StorePath, to: &StorePath) {
        let moved: Vec<Key> = self.keys_at(from).cloned().collect();
        for key in moved {
            if let Some(holds) = self.now.remove(&key) {
                let rest = key.strip_prefix(from.as_str()).unwrap_or_default();
                self.now.insert(format!("{to}{rest}"), holds);
            }
        }
        self.keep_parent(from);
    }

    /// Creates a directory.
    pub(super) fn create_directory(&mut self, path: &StorePath) {
        self.now.entry(keys::marker(path)).or_insert(PlannedContent::Marker);
    }

    /// Writes a file.
    pub(super) fn write(&mut self, path: &StorePath, content: Vec<u8>) {
        self.now.insert(path.as_str().to_owned(), PlannedContent::Content(content));
    }

    /// Keeps a directory when its last entry is removed (`FILE-12`). Always writes its marker,
    /// because another host may be removing the other entries at the same time.
    fn keep_parent(&mut self, path: &StorePath) {
        if let Some((parent, _)) = path.split().filter(|(parent, _)| !parent.is_root()) {
            self.create_directory(&parent);
        }
    }

    fn keys_at(&self, path: &StorePath) -> impl Iterator<Item = &Key> {
        let is_at = |key: &str| key == path.as_str() || keys::rest(key, path.as_str()).is_some();
        self.now.keys().filter(move |key| is_at(key))
    }

    /// Returns the requests that have to be sent.
    pub(super) fn into_difference(self) -> ObjectChanges {
        let deletes =
            self.before.keys().filter(|key| !self.now.contains_key(*key)).cloned().collect();
        let mut difference = ObjectChanges { deletes, ..ObjectChanges::default() };
        for (key, holds) in self.now {
            let there = self.before.get(&key);
            match holds {
                PlannedContent::Object(from) if from == key => continue,
                PlannedContent::Object(from) => difference.copies.push((from, key.clone())),
                PlannedContent::Content(content) => {
                    let condition = match there {
                        None => PutCondition::Missing,
                        Some(None) => PutCondition::Always,
                        Some(Some(state)) => PutCondition::Unchanged(state.clone()),
                    };
                    difference.puts.push(ObjectPut { key: key.clone(), content, condition });
                }
                PlannedContent::Marker if there.is_some() => continue,
                PlannedContent::Marker => difference.markers.push(key.clone()),
            }
            if there.is_some() {
                difference.replaced.insert(key);
            }
        }
        difference
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> StorePath {
        StorePath::directory(text).unwrap()
    }

    fn draft(keys: &[&str]) -> ObjectDraft {
        let mut draft = ObjectDraft::default();
        keys.iter().for_each(|key| draft.record_version(key, None));
        draft
    }

    fn shown(draft: ObjectDraft) -> String {
        let difference = draft.into_difference();
        let puts = difference.puts.iter().map(|put| format!("put {}", put.key));
        let copies = difference.copies.iter().map(|(from, to)| format!("copy {from} to {to}"));
        let markers = difference.markers.iter().map(|key| format!("mark {key}"));
        let deletes = difference.deletes.iter().map(|key| format!("delete {key}"));
        puts.chain(copies).chain(markers).chain(deletes).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn two_names_that_are_swapped_are_two_copies() {
        let mut draft = draft(&["a", "b"]);
        draft.rename(&path("a"), &path("t"));
        draft.rename(&path("b"), &path("a"));
        draft.rename(&path("t"), &path("b"));
        assert_eq!(draft.into_difference().replaced.len(), 2);
    }

    #[test]
    fn a_directory_keeps_its_marker_when_the_last_file_goes() {
        let mut draft = draft(&["d/a"]);
        draft.delete(&path("d/a"));
        assert_eq!(shown(draft), "mark d/.~cofferdam-directory, delete d/a");
    }

    #[test]
    fn a_directory_that_goes_with_its_files_leaves_no_marker() {
        let mut draft = draft(&["x/d/a", "x/d/.~cofferdam-directory"]);
        draft.delete(&path("x/d/a"));
        draft.remove_directory(&path("x/d"));
        assert_eq!(
            shown(draft),
            "mark x/.~cofferdam-directory, delete x/d/.~cofferdam-directory, delete x/d/a"
        );
    }

    #[test]
    fn what_moves_away_and_back_is_not_sent() {
        let mut draft = draft(&["d/a"]);
        draft.rename(&path("d"), &path("e"));
        draft.rename(&path("e"), &path("d"));
        assert_eq!(shown(draft), "");
    }
}
