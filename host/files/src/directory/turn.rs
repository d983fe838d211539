//! Changes of one directory by several hosts, or by several stores of one host, take turns.
//!
//! A change holds an advisory lock of the system on the root directory itself, so that nothing has
//! to be created for it and nothing is left when a host is killed. A file system that knows no such
//! locks is used without.

#[cfg(unix)]
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;

use crate::FileError;

/// How long a change waits for its turn. A commit that takes longer flushes more than any quota
/// allows by default.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two tries. Short, because nobody keeps a place in a queue.
const PAUSE: Duration = Duration::from_millis(1);

/// The root directory as something that can be locked.
pub(super) struct Turns {
    #[cfg(unix)]
    root: Option<OwnedFd>,
}

/// Nobody else changes the directory for as long as this exists.
pub(super) struct Turn<'t> {
    #[cfg(unix)]
    locked: Option<&'t OwnedFd>,
    #[cfg(not(unix))]
    _turns: &'t Turns,
}

impl Turns {
    #[cfg(unix)]
    pub(super) fn new(root: &Dir) -> Self {
        use rustix::fs::{Mode, OFlags, openat};
        // A handle of its own: locks belong to the handle, and clones of one handle would let each
        // other in.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self { root: openat(root, ".", flags, Mode::empty()).ok() }
    }

    #[cfg(not(unix))]
    pub(super) fn new(_: &Dir) -> Self {
        Self {}
    }

    /// Waits for a turn, at most [`WAIT_MAX`]. Blocks the thread.
    #[cfg(unix)]
    pub(super) fn take(&self) -> Result<Turn<'_>, FileError> {
        use rustix::fs::{FlockOperation, flock};
        use rustix::io::Errno;
        let Some(root) = &self.root else { return Ok(Turn { locked: None }) };
        let started = Instant::now();
        loop {
            match flock(root, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn { locked: Some(root) }),
                Err(Errno::WOULDBLOCK | Errno::INTR) if started.elapsed() > WAIT_MAX => {
                    return Err(FileError::Busy);
                }
                Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(PAUSE),
                // Not on this file system.
                Err(_) => return Ok(Turn { locked: None }),
            }
        }
    }

    #[cfg(not(unix))]
    pub(super) fn take(&self) -> Result<Turn<'_>, FileError> {
        let (_, _, _) = (WAIT_MAX, PAUSE, Instant::now());
        Ok(Turn { _turns: self })
    }
}

#[cfg(unix)]
impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(root) = self.locked {
            let _unlocked = rustix::fs::flock(root, rustix::fs::FlockOperation::Unlock);
        }
    }
}
