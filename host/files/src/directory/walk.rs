//! Going through everything below a directory.
//!
//! A walk holds one directory open at a time, whatever the depth, by starting from the root for
//! each directory. It is bounded in steps, because others may have put more into the directory than
//! any quota allows.

use std::ffi::OsString;

use cap_std::fs::Dir;

use super::tree::{Reached, Tree};
use crate::path::RESERVED_PREFIX;
use crate::{EntryKind, FileError, NameRules, RefusedName, Scope, StorePath};

/// Least number of steps of a walk, a step being one name read or one directory opened: about a
/// second.
const STEPS_MIN: u64 = 1_000_000;
/// Steps per entry that the quota allows. Most entries of real trees are less than eight levels
/// down.
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
    /// The path of the directory.
    parent: &'w StorePath,
    /// The path of the entry, or the rule that its name breaks. Then it does not exist for a store.
    path: Result<&'w StorePath, &'w NameRefusal>,
}

/// A name that no path denotes.
pub(super) struct NameRefusal {
    name: OsString,
    rule: String,
}

impl Found<'_> {
    /// What the store shows of the entry, if anything.
    pub(super) fn entry_kind(&self) -> Option<EntryKind> {
        self.path.ok()?;
        match self.kind {
            Kind::File => Some(EntryKind::File),
            Kind::Directory => Some(EntryKind::Directory),
            Kind::Link | Kind::Special => None,
        }
    }

    /// Its path as seen from `directory`.
    pub(super) fn path_below(&self, directory: &StorePath) -> Option<&str> {
        self.path.ok()?.below(directory)
    }

    /// The name as people can be told of it, if it is one of a file or a directory that is refused.
    /// Paths in it are as seen from `directory`.
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
    /// Shows `visit` every entry of the directory `start`, with [`Scope::Recursive`] everything
    /// below it, in no order. Gives `false` when it stopped at the limit of steps. Directories
    /// below that cannot be read are passed over.
    pub(super) fn walk(
        &self,
        start: (&StorePath, Dir),
        scope: Scope,
        visit: &mut dyn FnMut(Found<'_>),
    ) -> Result<bool, FileError> {
        self.walk_within(self.steps_max(), start, scope, visit)
    }

    /// Does what [`walk`](Self::walk) does, with a limit of steps of the caller's.
    pub(super) fn walk_within(
        &self,
        steps_max: u64,
        start: (&StorePath, Dir),
        scope: Scope,
        visit: &mut dyn FnMut(Found<'_>),
    ) -> Result<bool, FileError> {
        let mut walk =
            Walk { names: self.options.names, pending: Vec::new(), steps_left: steps_max, visit };
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
    names: NameRules,
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
            let Ok(kind) = entry.file_type() else { continue };
            let (kind, os_name) = (Kind::of(kind), entry.file_name());
            let name = os_name.to_string_lossy();
            let child = match os_name.to_str() {
                Some(name) => path.child_under(name, self.names).map_err(|error| error.rule()),
                None => Err("The name is not UTF-8.".to_owned()),
            };
            let child = child.map_err(|rule| NameRefusal { name: os_name.clone(), rule });
            (self.visit)(Found {
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
