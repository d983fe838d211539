//! What the directory holds, for its quota: one look at every file.

use std::time::{Duration, Instant, SystemTime};

use super::tree::Tree;
use super::walk::{Found, Kind};
use crate::ledger::Ledger;
use crate::path::RESERVED_PREFIX;
use crate::quota::{Change, Usage};
use crate::{EntryKind, FileError, Quota, Scope, StorePath};

/// No write takes as long as this, so that what has a temporary name for longer belongs to nobody.
const TEMPORARY_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Steps of the walk that looks for such files in a directory that is not counted: some
/// milliseconds.
const TIDY_STEPS_MAX: u64 = 20_000;

impl Tree {
    /// The usage after `change`, if `quota` admits it. Nothing is entered yet.
    pub(super) fn admit(
        &self,
        ledger: &mut Ledger,
        quota: &Quota,
        change: Change,
    ) -> Result<Usage, FileError> {
        let usage = self.usage(ledger)?;
        Ok(quota.admit(usage, change)?)
    }

    /// What the directory holds.
    pub(super) fn usage(&self, ledger: &mut Ledger) -> Result<Usage, FileError> {
        if let Some(usage) = ledger.known() {
            return Ok(usage);
        }
        let started = Instant::now();
        let usage = count(self)?;
        Ok(ledger.counted(usage, started))
    }
}

impl Tree {
    /// Removes what a killed host has left, as far as a short walk comes to it. A store that counts
    /// everything does this with each count.
    pub(super) fn tidy(&self) {
        let Ok(root) = self.existing_directory(&StorePath::ROOT) else { return };
        // What is not found this time is found by another host, or does no harm.
        let _complete = self.walk_within(
            TIDY_STEPS_MAX,
            (&StorePath::ROOT, root),
            Scope::Recursive,
            &mut |found| {
                if found.entry_kind().is_none() {
                    remove_if_stale(&found);
                }
            },
        );
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

/// Whether a name is one of a file that is being written. What a commit moves about has another
/// kind of name, and nobody may take that for left over.
fn is_temporary(name: &str) -> bool {
    name.strip_prefix(RESERVED_PREFIX).is_some_and(|rest| rest.starts_with('-'))
}

fn remove_if_stale(found: &Found<'_>) {
    if found.kind != Kind::File || !is_temporary(found.name) {
        return;
    }
    let modified =
        found.directory.symlink_metadata(found.name).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified.into_std()).ok());
    if age.is_some_and(|age| age > TEMPORARY_AGE_MAX) {
        // Whoever removes it first, it is gone; and if nobody may, the next count tries again.
        let _removed = found.directory.remove_file(found.name);
    }
}
