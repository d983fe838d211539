//! Changes of a file that several processes make: one reads, changes and writes it while the others
//! wait.
//!
//! The advisory lock is on the folder of the file, as the changes of a directory store have it: the
//! file itself is replaced by each change, and nothing has to be made for the lock or is left of
//! it.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;

/// Longest wait for the others.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// Held while a file is read, changed and written; dropping it lets the next process change it.
pub struct FolderLock(
    #[expect(dead_code, reason = "it is held, and closed when dropped")] Option<File>,
);

impl FolderLock {
    /// Waits until no other process changes files in the folder of `path`. A file system without
    /// such locks is used without.
    pub fn take(path: &Path) -> crate::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) else {
            return Ok(Self(None));
        };
        let started = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(Self(Some(folder))),
                Err(TryLockError::WouldBlock) if started.elapsed() > WAIT_MAX => {
                    let (path, seconds) = (path.display(), WAIT_MAX.as_secs());
                    return Err(Error::failed(format!(
                        "another process has locked the folder of {path} for {seconds} seconds; \
                         try again"
                    )));
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(_)) => return Ok(Self(None)),
            }
        }
    }
}
