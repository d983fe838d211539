//! Limits the size of the cache.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use super::directory::{ListedFile, PrivateDirectory, TEMPORARY_PREFIX};
use super::entry;

/// Age above which an unfinished file has no writer any more. Writing an entry takes seconds.
const TEMPORARY_SECONDS_MAX: i64 = 60 * 60;

/// Result of pruning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PruneReport {
    /// Number of removed files.
    pub files: u64,
    /// Total size of the removed files, in bytes.
    pub bytes: u64,
    /// Total size of the remaining entries, in bytes.
    pub bytes_left: u64,
}

pub(super) fn prune(directory: &PrivateDirectory, bytes_max: u64) -> io::Result<PruneReport> {
    let (mut entries, others): (Vec<_>, Vec<_>) =
        directory.list()?.into_iter().partition(|file| entry::is_entry(&file.name));
    let mut pruned = PruneReport {
        bytes_left: entries.iter().map(|file| file.bytes).sum(),
        ..PruneReport::default()
    };
    for file in others.iter().filter(|file| is_abandoned(file)) {
        pruned.remove(directory, file);
    }
    entries.sort_by_key(|file| file.modified);
    for file in &entries {
        if pruned.bytes_left <= bytes_max {
            break;
        }
        if pruned.remove(directory, file) {
            pruned.bytes_left = pruned.bytes_left.saturating_sub(file.bytes);
        }
    }
    Ok(pruned)
}

impl PruneReport {
    /// Removes a file and returns whether that succeeded.
    fn remove(&mut self, directory: &PrivateDirectory, file: &ListedFile) -> bool {
        let removed = directory.remove(&file.name).is_ok();
        if removed {
            self.files = self.files.saturating_add(1);
            self.bytes = self.bytes.saturating_add(file.bytes);
        }
        removed
    }
}

fn is_abandoned(file: &ListedFile) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let age = i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(file.modified.0);
    file.name.starts_with(TEMPORARY_PREFIX) && age > TEMPORARY_SECONDS_MAX
}
