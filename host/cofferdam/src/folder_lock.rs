//! Serializes changes of a file by several processes: one process reads, changes and writes it
//! while the others wait.
//!
//! The advisory lock is on the folder of the file, like the lock of a directory store. The file
//! itself is replaced by each change, and the lock needs no file of its own.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use crate::Error;
use crate::error::Context as _;

/// Maximum time to wait for other processes, each of which may wait for a slow disk.
const WAIT_MAX: Duration = Duration::from_secs(30);

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
    /// Returns an error if another process holds the lock for longer than 30 seconds.
    pub fn take(path: &Path) -> crate::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) else {
            return Ok(Self(None));
        };
        match folder.try_lock() {
            Ok(()) => return Ok(Self(Some(folder))),
            Err(TryLockError::Error(_)) => return Ok(Self(None)),
            Err(TryLockError::WouldBlock) => {}
        }
        // The system serves those that block in order. One that tries again and again may never
        // get the lock.
        let (send, received) = mpsc::channel();
        let waiting = move || {
            let locked = folder.lock().map(|()| folder);
            // Fails after the wait, and then the lock is released.
            let _ = send.send(locked.ok());
        };
        let thread = std::thread::Builder::new().spawn(waiting);
        thread.context("cannot wait for a lock")?;
        received.recv_timeout(WAIT_MAX).map(Self).map_err(|_| {
            let (path, seconds) = (path.display(), WAIT_MAX.as_secs());
            Error::failed(format!(
                "another process has locked the folder of {path} for {seconds} seconds; try again"
            ))
        })
    }
}
