//! From the keys of a bucket to files and directories.
//!
//! A directory is there if anything is below it. Where somebody else has put an object at a path
//! and others below it, the file is shown and what is below it is not, unless the object is empty:
//! that is how some tools create directories.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;

use object_store::ObjectMeta;

use super::keys::{self, Keys};
use super::requests::{Bucket, Level};
use crate::path::RESERVED_PREFIX;
use crate::{
    Entry, EntryKind, FileError, Listing, NotShown, PathError, RefusedName, Scope, StorePath, Usage,
};

/// What is in a directory, by path as seen from there.
#[derive(Debug, Default)]
pub(super) struct Contents {
    pub(super) files: BTreeMap<String, u64>,
    pub(super) directories: BTreeSet<String>,
    pub(super) is_truncated: bool,
    pub(super) hides_entries: bool,
    not_shown: NotShown,
}

impl Bucket {
    /// What is in `directory` as far as paths denote it.
    pub(super) async fn contents(
        &self,
        directory: &StorePath,
        scope: Scope,
    ) -> Result<Contents, FileError> {
        match scope {
            Scope::Children => {
                Ok(Contents::of_level(&self.keys, directory, self.level(directory).await?))
            }
            Scope::Recursive => {
                let (objects, is_truncated) = self.all(directory).await?;
                Ok(Contents::of_objects(&self.keys, directory, &objects, is_truncated))
            }
        }
    }
}

impl Contents {
    /// What objects below `directory` stand for.
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

    /// Enters a file, or what a marker keeps, and all directories on the way.
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

    /// Notes that `name` in `above` is refused. Of what is below a refused directory only that
    /// directory is told.
    fn hide(&mut self, directory: &StorePath, above: &StorePath, name: &str, error: &PathError) {
        self.hides_entries = true;
        if name.starts_with(RESERVED_PREFIX) {
            return;
        }
        let above = above.below(directory).unwrap_or_default();
        let refused = RefusedName::new(above, OsStr::new(name), error.rule());
        // Keys come in their order, so that those of one directory follow each other.
        if self.not_shown.names.last() != Some(&refused) {
            self.not_shown.add(|| refused);
        }
    }

    /// Makes each name a file or a directory.
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

    /// What counts against the quota.
    pub(super) fn usage(&self) -> Usage {
        let count = |entries: usize| u64::try_from(entries).unwrap_or(u64::MAX);
        Usage {
            bytes: self.files.values().fold(0, |sum, bytes| sum.saturating_add(*bytes)),
            entries: count(self.files.len()).saturating_add(count(self.directories.len())),
        }
    }

    /// The entries in their order.
    pub(super) fn into_listing(self) -> Listing {
        let directories =
            self.directories.into_iter().map(|name| Entry::new(name, EntryKind::Directory));
        let files = self.files.into_keys().map(|name| Entry::new(name, EntryKind::File));
        let mut listing = Listing::sorted(directories.chain(files).collect(), self.is_truncated);
        listing.hides_entries = self.hides_entries;
        listing.not_shown = self.not_shown;
        listing
    }

    /// How many segments the deepest path has.
    pub(super) fn depth(&self) -> u64 {
        let depth = |name: &String| name.split('/').fold(0_u64, |depth, _| depth.saturating_add(1));
        self.files.keys().chain(&self.directories).map(depth).max().unwrap_or(0)
    }
}
