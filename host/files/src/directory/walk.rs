//! Going through everything below a directory.
//!
//! A walk holds one directory open at a time, whatever the depth, by starting from the root for each directory. It is
//! bounded in steps, because others may have put more into the directory than any quota allows.

use cap_std::fs::Dir;

use super::tree::{Reached, Tree};
use crate::{EntryKind, FileError, Scope, StorePath};

/// Least number of steps of a walk, a step being one name read or one directory opened: about a second.
const STEPS_MIN: u64 = 1_000_000;
/// Steps per entry that the quota allows. Most entries of real trees are less than eight levels down.
const STEPS_PER_ENTRY: u64 = 8;

/// What an entry is, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Special,
}

/// An entry that a walk has come to.
pub(super) struct Found<'w> {
    pub(super) directory: &'w Dir,
    pub(super) name: &'w str,
    pub(super) kind: Kind,
    /// `None` when no path denotes it; then it does not exist for a store.
    path: Option<&'w StorePath>,
}

impl Found<'_> {
    /// What the store shows of the entry, if anything.
    pub(super) fn entry_kind(&self) -> Option<EntryKind> {
        self.path?;
        match self.kind {
            Kind::File => Some(EntryKind::File),
            Kind::Directory => Some(EntryKind::Directory),
            Kind::Link | Kind::Special => None,
        }
    }

    /// Its path as seen from `directory`.
    pub(super) fn path_below(&self, directory: &StorePath) -> Option<&str> {
        self.path?.below(directory)
    }
}

impl Tree {
    /// Shows `visit` every entry of the directory `start`, with [`Scope::Recursive`] everything below it, in no order.
    /// Gives `false` when it stopped at the limit of steps. Directories below that cannot be read are passed over.
    pub(super) fn walk(
        &self,
        start: (&StorePath, Dir),
        scope: Scope,
        visit: &mut dyn FnMut(Found<'_>),
    ) -> Result<bool, FileError> {
        let mut walk = Walk { pending: Vec::new(), steps_left: self.steps_max(), visit };
        walk.read(start.0, &start.1)?;
        while let (Scope::Recursive, Some(path)) = (scope, walk.pending.pop()) {
            walk.spend(path.depth());
            if let Ok(Reached::Directory(directory)) = self.descend(&path) {
                let _unreadable = walk.read(&path, &directory);
            }
        }
        Ok(walk.steps_left > 0)
    }

    fn steps_max(&self) -> u64 {
        self.options.quota.entries_max.saturating_mul(STEPS_PER_ENTRY).max(STEPS_MIN)
    }
}

struct Walk<'v> {
    pending: Vec<StorePath>,
    steps_left: u64,
    visit: &'v mut dyn FnMut(Found<'_>),
}

impl Walk<'_> {
    fn spend(&mut self, steps: u64) {
        self.steps_left = self.steps_left.saturating_sub(steps);
    }

    /// Shows the entries of one directory and remembers the directories among them.
    fn read(&mut self, path: &StorePath, directory: &Dir) -> Result<(), FileError> {
        for entry in directory.entries()? {
            if self.steps_left == 0 {
                self.pending.clear();
                return Ok(());
            }
            self.spend(1);
            let entry = entry?;
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            let kind = Kind::of(kind);
            let path = path.child(&name).ok();
            (self.visit)(Found { directory, name: &name, kind, path: path.as_ref() });
            if kind == Kind::Directory {
                self.pending.extend(path);
            }
        }
        Ok(())
    }
}
