//! Locks of saved sessions and of runs with checkpoints, which one process uses at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::Context as _;

use crate::exit::UsageError;
use crate::print;

/// Locks a file for this process. `what` is what the file stands for. Returns `None`, with a
/// warning, if the file system has no locks.
pub(super) fn lock(path: &Path, what: &str) -> anyhow::Result<Option<File>> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path).with_context(|| format!("{what} cannot be locked"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            Err(UsageError(format!("{what} is in use by another process")).into())
        }
        Err(TryLockError::Error(error)) => {
            print::note(&format!(
                "warning: {what} cannot be locked ({error}); use it in one process at a time"
            ));
            Ok(None)
        }
    }
}
