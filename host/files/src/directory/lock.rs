//! Lock that makes several hosts, or several stores of one host, change one directory in turn.
//!
//! A change holds an advisory lock of the system on the root directory itself, so that nothing has
//! to be created for it and nothing is left when a host is killed. A file system without such locks
//! is used without locking.

#[cfg(unix)]
use std::os::fd::OwnedFd;
#[cfg(unix)]
use std::sync::Arc;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use crate::FileError;

/// Maximum time that a change waits for the lock. A commit that takes longer flushes more than any
/// quota allows by default.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two attempts. Short, because the lock has no queue.
const PAUSE: Duration = Duration::from_millis(1);

/// Lockable handle of the root directory.
pub(super) struct Turns {
    #[cfg(unix)]
    root: Option<Arc<OwnedFd>>,
}

/// Guard of the lock: no other host or store changes the directory while it exists.
pub(super) struct DirectoryLock {
    #[cfg(unix)]
    locked: Option<Arc<OwnedFd>>,
}

impl Turns {
    #[cfg(unix)]
    pub(super) fn new(root: &Dir) -> Self {
        use rustix::fs::{Mode, OFlags, openat};
        // A separate handle: locks belong to the handle, and clones of one handle would not exclude
        // each other.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self { root: openat(root, ".", flags, Mode::empty()).ok().map(Arc::new) }
    }

    #[cfg(not(unix))]
    pub(super) fn new(_: &Dir) -> Self {
        Self {}
    }

    /// Waits for the lock, at most [`WAIT_MAX`]. Blocks the thread.
    #[cfg(unix)]
    pub(super) fn take(&self) -> Result<DirectoryLock, FileError> {
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;
        let Some(root) = &self.root else { return Ok(DirectoryLock { locked: None }) };
        let started = Instant::now();
        loop {
            match flock(root, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(DirectoryLock { locked: Some(Arc::clone(root)) }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if started.elapsed() > WAIT_MAX => {
                    return Err(FileError::Busy);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(PAUSE),
                // This file system has no locks.
                Err(_) => return Ok(DirectoryLock { locked: None }),
            }
        }
    }

    #[cfg(not(unix))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "there are no locks")]
    pub(super) fn take(&self) -> Result<DirectoryLock, FileError> {
        let (_, _, _) = (WAIT_MAX, PAUSE, Instant::now());
        Ok(DirectoryLock {})
    }
}

#[cfg(unix)]
impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if let Some(root) = &self.locked {
            let _unlocked = rustix::fs::flock(root, rustix::fs::FlockOperation::Unlock);
        }
    }
}
