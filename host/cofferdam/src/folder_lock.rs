//! Serializes changes of a file by several processes: one process reads, changes and writes it
//! while the others wait.
//!
//! The advisory lock is on the folder of the file, like the lock of a directory store. The file
//! itself is replaced by each change, and the lock needs no file of its own.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;

/// Maximum time to wait for other processes.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(2);

/// Lock on a folder. Hold it while a file is read, changed and written; dropping it releases the
/// lock.
pub struct FolderLock(
    #[expect(dead_code, reason = "it is held, and closed when dropped")] Option<File>,
);

impl FolderLock {
    /// Waits until no other process holds the lock on the folder of `path`. Succeeds without a lock
    /// if the file system does not support locks.
    ///
    /// # Errors
    /// Returns an error if another process holds the lock for longer than 10 seconds.
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
