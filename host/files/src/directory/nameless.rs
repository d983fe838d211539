//! Files that get their name when their content is complete.
//!
//! Content that is too large for memory waits in such a file, in the file system in which it is
//! wanted; giving it a name costs nothing, however long it is. Nobody else can open it before, and
//! a host that is killed leaves nothing. Linux can do that; elsewhere content waits in another
//! place and is copied.

use std::fs::File;
use std::io;

use cap_std::fs::Dir;

/// A new file that is in no directory. It gets its group and access rights from `directory`, like a
/// file that is created there.
#[cfg(target_os = "linux")]
pub(super) fn create(directory: &Dir) -> Option<File> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    // What a new file gets. The system takes away what the process does not want to give.
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    openat(directory, ".", flags, mode).ok().map(File::from)
}

/// Gives `file` the name `name` in `directory`.
///
/// # Errors
/// When the name is taken, and where the system cannot do it: another file system, no `/proc`.
#[cfg(target_os = "linux")]
pub(super) fn give_name(file: &File, directory: &Dir, name: &str) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, linkat};
    // The other way, by the handle alone, takes a privilege on older systems.
    let handle = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, handle, directory, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn create(_: &Dir) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(super) fn give_name(_: &File, _: &Dir, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
