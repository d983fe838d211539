//! What the directory holds, for its quota.
//!
//! The first change counts everything in the directory: one look at every file. Later changes go by that count and
//! what they did themselves. Because others may change the directory too, a count is trusted for fifty times as long
//! as it took and at least a second, so that counting takes a fiftieth of the time at most.

use std::time::{Duration, Instant, SystemTime};

use super::tree::Tree;
use super::walk::{Found, Kind};
use crate::path::RESERVED_PREFIX;
use crate::quota::{Change, Usage};
use crate::{EntryKind, FileError, Quota, Scope, StorePath};

const TRUSTED_MIN: Duration = Duration::from_secs(1);
const TRUSTED_PER_COUNT: u32 = 50;

/// No write takes as long as this, so that what has a temporary name for longer belongs to nobody.
const TEMPORARY_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// The usage of a directory as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    known: Option<Known>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    usage: Usage,
    trusted_until: Instant,
}

impl Ledger {
    /// The usage after `change`, if `quota` admits it. Nothing is entered yet.
    pub(super) fn admit(&mut self, tree: &Tree, quota: &Quota, change: Change) -> Result<Usage, FileError> {
        let usage = self.usage(tree)?;
        Ok(quota.admit(usage, change)?)
    }

    /// Enters what a change that took place has left.
    pub(super) fn enter(&mut self, usage: Usage) {
        if let Some(known) = &mut self.known {
            known.usage = usage;
        }
    }

    /// Enters that a file of `bytes` is gone.
    pub(super) fn enter_deletion(&mut self, bytes: u64) {
        if let Some(known) = &mut self.known {
            known.usage = known.usage.without_file(bytes);
        }
    }

    /// Enters that a directory is gone.
    pub(super) fn enter_removal(&mut self) {
        if let Some(known) = &mut self.known {
            known.usage = known.usage.without_directory();
        }
    }

    /// After a change that failed half-way nobody knows what is there.
    pub(super) fn forget(&mut self) {
        self.known = None;
    }

    /// What the directory holds.
    pub(super) fn usage(&mut self, tree: &Tree) -> Result<Usage, FileError> {
        let started = Instant::now();
        if let Some(known) = self.known.filter(|known| started < known.trusted_until) {
            return Ok(known.usage);
        }
        let usage = count(tree)?;
        let trusted = started.elapsed().saturating_mul(TRUSTED_PER_COUNT).max(TRUSTED_MIN);
        self.known = Instant::now().checked_add(trusted).map(|trusted_until| Known { usage, trusted_until });
        Ok(usage)
    }
}

/// Counts everything that the store shows, and removes what a killed host has left.
fn count(tree: &Tree) -> Result<Usage, FileError> {
    let mut usage = Usage::default();
    let root = tree.existing_directory(&StorePath::ROOT)?;
    tree.walk((&StorePath::ROOT, root), Scope::Recursive, &mut |found| match found.entry_kind() {
        Some(kind) => {
            usage.entries = usage.entries.saturating_add(1);
            if kind == EntryKind::File {
                usage.bytes = usage.bytes.saturating_add(bytes(&found));
            }
        }
        None if tree.options.is_read_only => {}
        None => remove_if_stale(&found),
    })?;
    Ok(usage)
}

fn bytes(found: &Found<'_>) -> u64 {
    found.directory.symlink_metadata(found.name).map_or(0, |metadata| metadata.len())
}

/// Whether a name is one of a file that is being written. What a commit moves about has another kind of name, and nobody
/// may take that for left over.
fn is_temporary(name: &str) -> bool {
    name.strip_prefix(RESERVED_PREFIX).is_some_and(|rest| rest.starts_with('-'))
}

fn remove_if_stale(found: &Found<'_>) {
    if found.kind != Kind::File || !is_temporary(found.name) {
        return;
    }
    let modified = found.directory.symlink_metadata(found.name).and_then(|metadata| metadata.modified());
    let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified.into_std()).ok());
    if age.is_some_and(|age| age > TEMPORARY_AGE_MAX) {
        // Whoever removes it first, it is gone; and if nobody may, the next count tries again.
        let _removed = found.directory.remove_file(found.name);
    }
}
