//! Counts what the directory holds, for its quota, by a look at every file.

use std::time::{Duration, Instant, SystemTime};

use super::tree::Tree;
use super::walk::{Kind, WalkEntry};
use crate::ledger::UsageLedger;
use crate::path::RESERVED_PREFIX;
use crate::quota::{Usage, UsageChange};
use crate::{EntryKind, FileError, Quota, Scope, StorePath};

/// Longer than any write takes, so that an older file with a temporary name belongs to no running
/// host.
const TEMPORARY_AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Maximum number of steps of the walk that looks for such files in a directory that is not
/// counted: some milliseconds.
const TIDY_STEPS_MAX: u64 = 20_000;

impl Tree {
    /// Returns the usage after `change`, if `quota` admits it. Does not enter it in the ledger.
    pub(super) fn admit(
        &self,
        ledger: &mut UsageLedger,
        quota: &Quota,
        change: UsageChange,
    ) -> Result<Usage, FileError> {
        let usage = self.usage(ledger)?;
        Ok(quota.admit(usage, change)?)
    }

    /// Returns the usage of the directory, counting it if the ledger has no current value.
    pub(super) fn usage(&self, ledger: &mut UsageLedger) -> Result<Usage, FileError> {
        if let Some(usage) = ledger.known() {
            return Ok(usage);
        }
        let started = Instant::now();
        let usage = count(self)?;
        Ok(ledger.counted(usage, started))
    }
}

impl Tree {
    /// Removes temporary files of a killed host, within the limits of a short walk. A store that
    /// counts everything does this with each count.
    pub(super) fn tidy(&self) {
        let Ok(root) = self.existing_directory(&StorePath::ROOT) else { return };
        // Another host finds the files that this walk misses, or they do no harm.
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

/// Counts everything that the store shows, and removes temporary files of a killed host.
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

fn bytes(found: &WalkEntry<'_>) -> u64 {
    found.directory.symlink_metadata(found.name).map_or(0, |metadata| metadata.len())
}

/// Returns whether `name` belongs to a file that is being written. What a commit moves has another
/// kind of name and must never be taken for a leftover.
fn is_temporary(name: &str) -> bool {
    name.strip_prefix(RESERVED_PREFIX).is_some_and(|rest| rest.starts_with('-'))
}

fn remove_if_stale(found: &WalkEntry<'_>) {
    if found.kind != Kind::File || !is_temporary(found.name) {
        return;
    }
    let modified =
        found.directory.symlink_metadata(found.name).and_then(|metadata| metadata.modified());
    let age = modified
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified.into_std()).ok());
    if age.is_some_and(|age| age > TEMPORARY_AGE_MAX) {
        // If another host removes the file first, it is gone too. If removing is not permitted, the
        // next count tries again.
        let _removed = found.directory.remove_file(found.name);
    }
}
