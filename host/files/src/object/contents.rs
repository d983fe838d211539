//! Maps the keys of a bucket to files and directories.
//!
//! A directory exists if anything is below it. If others have put an object at a path and more
//! objects below it, the store shows the file and hides everything below it, unless the object is
//! empty: that is how some tools create directories.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use object_store::ObjectMeta;

use super::keys::{self, Keys};
use super::requests::{Bucket, Level};
use crate::path::RESERVED_PREFIX;
use crate::{
    EntryKind, FileError, Listing, ListingEntry, OmittedNames, PathError, RefusedName, Scope,
    StorePath, Usage,
};

/// Contents of a directory, by path relative to it.
#[derive(Debug, Default)]
pub(super) struct DirectoryContents {
    pub(super) files: BTreeMap<String, u64>,
    pub(super) directories: BTreeSet<String>,
    pub(super) is_truncated: bool,
    pub(super) hides_entries: bool,
    not_shown: OmittedNames,
}

impl Bucket {
    /// Returns the contents of `directory` that paths can denote.
    pub(super) async fn contents(
        &self,
        directory: &StorePath,
        scope: Scope,
    ) -> Result<DirectoryContents, FileError> {
        match scope {
            Scope::Children => {
                Ok(DirectoryContents::of_level(&self.keys, directory, self.level(directory).await?))
            }
            Scope::Recursive => {
                let (objects, is_truncated) = self.all(directory).await?;
                Ok(DirectoryContents::of_objects(&self.keys, directory, &objects, is_truncated))
            }
        }
    }
}

impl DirectoryContents {
    /// Maps objects below `directory` to files and directories.
    pub(super) fn of_objects(
        keys: &Keys,
        directory: &StorePath,
        objects: &[ObjectMeta],
        is_truncated: bool,
    ) -> Self {
        let mut contents = Self { is_truncated, ..Self::default() };
        for object in objects {
            let name = keys
                .key(&object.location)
                .and_then(|key| keys::rest(key, directory.as_str()))
                .unwrap_or("");
            contents.enter(directory, name, object.size);
        }
        contents.settle();
        contents
    }

    fn of_level(keys: &Keys, directory: &StorePath, level: Level) -> Self {
        let mut contents = Self::of_objects(keys, directory, &level.objects, level.is_truncated);
        for location in &level.directories {
            let name = keys
                .key(location)
                .and_then(|key| keys::rest(key, directory.as_str()))
                .unwrap_or("");
            match directory.child(name) {
                Ok(_) => drop(contents.directories.insert(name.to_owned())),
                Err(_) if name.is_empty() => {}
                Err(error) => contents.hide(directory, directory, name, &error),
            }
        }
        contents.settle();
        contents
    }

    /// Adds a file or the directory of a marker, and all directories on the way.
    fn enter(&mut self, directory: &StorePath, name: &str, bytes: u64) {
        let mut above = directory.clone();
        let mut segments = name.split('/').peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            if segment.is_empty() || (is_last && keys::is_reserved(segment)) {
                return;
            }
            let path = match above.child(segment) {
                Ok(path) => path,
                Err(error) => return self.hide(directory, &above, segment, &error),
            };
            let below = path.below(directory).unwrap_or_default().to_owned();
            if is_last {
                self.files.insert(below, bytes);
            } else {
                self.directories.insert(below);
            }
            above = path;
        }
    }

    /// Records that `name` in `above` is refused. If it is a directory, what is below it is not
    /// recorded.
    fn hide(&mut self, directory: &StorePath, above: &StorePath, name: &str, error: &PathError) {
        self.hides_entries = true;
        if name.starts_with(RESERVED_PREFIX) {
            return;
        }
        let above = above.below(directory).unwrap_or_default();
        let refused = RefusedName::new(above, OsStr::new(name), error.rule());
        // Keys are sorted, so that those of one directory are adjacent.
        if self.not_shown.names.last() != Some(&refused) {
            self.not_shown.add(|| refused);
        }
    }

    /// Resolves names that are both a file and a directory.
    fn settle(&mut self) {
        let both: Vec<String> =
            self.files.keys().filter(|n| self.directories.contains(*n)).cloned().collect();
        for name in both {
            if self.files.get(&name) == Some(&0) {
                self.files.remove(&name);
                continue;
            }
            self.hides_entries = true;
            self.directories.remove(&name);
            let is_beside = |other: &str| keys::rest(other, &name).is_none();
            self.files.retain(|other, _| is_beside(other));
            self.directories.retain(|other| is_beside(other));
        }
    }

    /// Returns the usage that counts against the quota.
    pub(super) fn usage(&self) -> Usage {
        let count = |entries: usize| u64::try_from(entries).unwrap_or(u64::MAX);
        Usage {
            bytes: self.files.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            entries: count(self.files.len()).saturating_add(count(self.directories.len())),
        }
    }

    /// Returns the entries, sorted.
    pub(super) fn into_listing(self) -> Listing {
        let directories =
            self.directories.into_iter().map(|name| ListingEntry::new(name, EntryKind::Directory));
        let files = self.files.into_keys().map(|name| ListingEntry::new(name, EntryKind::File));
        let mut listing = Listing::sorted(directories.chain(files).collect(), self.is_truncated);
        listing.hides_entries = self.hides_entries;
        listing.not_shown = self.not_shown;
        listing
    }

    /// Returns the number of segments of the deepest path.
    pub(super) fn depth(&self) -> u64 {
        let depth = |name: &String| name.split('/').fold(0_u64, |depth, _| depth.saturating_add(1));
        self.files.keys().chain(&self.directories).map(depth).max().unwrap_or(0)
    }
}
