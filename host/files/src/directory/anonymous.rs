//! Anonymous files, which get a name once their content is complete.
//!
//! Content that is too large for memory is stored in such a file, in the file system of its
//! destination; linking it costs nothing, however long it is. No other process can open it before,
//! and a killed host leaves nothing behind. Linux can do that (`O_TMPFILE`); elsewhere the content
//! is stored elsewhere and copied.

use std::fs::File;
use std::io;

use cap_std::fs::Dir;

/// Creates a file without a directory entry. It gets its group and access rights from `directory`,
/// like a file that is created there.
#[cfg(target_os = "linux")]
pub(super) fn create(directory: &Dir) -> Option<File> {
    use rustix::fs::{Mode, OFlags, openat};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    // Default mode of a new file. The kernel applies the umask of the process.
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    openat(directory, ".", flags, mode).ok().map(File::from)
}

/// Links `file` as `name` in `directory`.
///
/// # Errors
/// If the name is taken, or the system cannot do it (another file system, no `/proc`).
#[cfg(target_os = "linux")]
pub(super) fn give_name(file: &File, directory: &Dir, name: &str) -> io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, linkat};
    // Linking by the handle itself (`AT_EMPTY_PATH`) needs a privilege on older systems.
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
