//! Walks through everything below a directory.
//!
//! A walk holds one directory open at a time, whatever the depth, by starting from the root for
//! each directory. The number of steps is bounded, because other programs may have put more into
//! the directory than any quota allows.

use std::ffi::OsString;

use cap_std::fs::Dir;

use super::tree::{ReachedDepth, Tree};
use crate::path::RESERVED_PREFIX;
use crate::{EntryKind, FileError, NameRules, RefusedName, Scope, StorePath};

/// Minimum number of steps of a walk, where a step is one name read or one directory opened: about
/// a second.
const STEPS_MIN: u64 = 1_000_000;
/// Number of steps per entry that the quota allows. Most entries of real trees are less than eight
/// levels down.
const STEPS_PER_ENTRY: u64 = 8;

/// Kind of an entry, links not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Special,
}

/// Entry that a walk passes to its visitor.
pub(super) struct WalkEntry<'w> {
    pub(super) directory: &'w Dir,
    pub(super) name: &'w str,
    pub(super) kind: Kind,
    /// Path of the directory.
    parent: &'w StorePath,
    /// Path of the entry, or the rule that its name breaks. In the latter case the entry does not
    /// exist for a store.
    path: Result<&'w StorePath, &'w NameRefusal>,
}

/// A name that no path can denote.
pub(super) struct NameRefusal {
    name: OsString,
    rule: String,
}

impl WalkEntry<'_> {
    /// Returns the kind that the store shows, or `None` if it hides the entry.
    pub(super) fn entry_kind(&self) -> Option<EntryKind> {
        self.path.ok()?;
        match self.kind {
            Kind::File => Some(EntryKind::File),
            Kind::Directory => Some(EntryKind::Directory),
            Kind::Link | Kind::Special => None,
        }
    }

    /// Returns the path of the entry relative to `directory`.
    pub(super) fn path_below(&self, directory: &StorePath) -> Option<&str> {
        self.path.ok()?.below(directory)
    }

    /// Returns the refused name for display to users, if it belongs to a file or a directory. Paths
    /// in it are relative to `directory`.
    pub(super) fn refused_below(&self, directory: &StorePath) -> Option<RefusedName> {
        let refusal = self.path.err()?;
        let is_shown = matches!(self.kind, Kind::File | Kind::Directory);
        let is_own = self.name.starts_with(RESERVED_PREFIX);
        (is_shown && !is_own).then(|| {
            RefusedName::new(
                self.parent.below(directory).unwrap_or_default(),
                &refusal.name,
                &refusal.rule,
            )
        })
    }
}

impl Tree {
    /// Calls `visit` with every entry of the directory `start`, and with [`Scope::Recursive`]
    /// everything below it, in no particular order. Returns `false` if it stopped at the limit of
    /// steps. Directories below `start` that cannot be read are skipped.
    pub(super) fn walk(
        &self,
        start: (&StorePath, Dir),
        scope: Scope,
        visit: &mut dyn FnMut(WalkEntry<'_>),
    ) -> Result<bool, FileError> {
        self.walk_within(self.steps_max(), start, scope, visit)
    }

    /// Like [`walk`](Self::walk), with a limit of steps set by the caller.
    pub(super) fn walk_within(
        &self,
        steps_max: u64,
        start: (&StorePath, Dir),
        scope: Scope,
        visit: &mut dyn FnMut(WalkEntry<'_>),
    ) -> Result<bool, FileError> {
        let mut walk =
            Walk { names: self.options.names, pending: Vec::new(), steps_left: steps_max, visit };
        walk.read(start.0, &start.1)?;
        while let (Scope::Recursive, Some(path)) = (scope, walk.pending.pop()) {
            walk.spend(path.depth());
            if let Ok(ReachedDepth::Directory(directory)) = self.descend(&path) {
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
    names: NameRules,
    pending: Vec<StorePath>,
    steps_left: u64,
    visit: &'v mut dyn FnMut(WalkEntry<'_>),
}

impl Walk<'_> {
    fn spend(&mut self, steps: u64) {
        self.steps_left = self.steps_left.saturating_sub(steps);
    }

    /// Visits the entries of one directory and queues the directories among them.
    fn read(&mut self, path: &StorePath, directory: &Dir) -> Result<(), FileError> {
        for entry in directory.entries()? {
            if self.steps_left == 0 {
                self.pending.clear();
                return Ok(());
            }
            self.spend(1);
            let entry = entry?;
            let Ok(kind) = entry.file_type() else { continue };
            let (kind, os_name) = (Kind::of(kind), entry.file_name());
            let name = os_name.to_string_lossy();
            let child = match os_name.to_str() {
                Some(name) => path.child_under(name, self.names).map_err(|error| error.rule()),
                None => Err("The name is not UTF-8.".to_owned()),
            };
            let child = child.map_err(|rule| NameRefusal { name: os_name.clone(), rule });
            (self.visit)(WalkEntry {
                directory,
                name: &name,
                kind,
                parent: path,
                path: child.as_ref(),
            });
            if kind == Kind::Directory {
                self.pending.extend(child);
            }
        }
        Ok(())
    }
}
