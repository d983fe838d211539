//! Opens a directory at any depth in one step, if the kernel can do that without following a link.
//!
//! Linux has `openat2`, which refuses links in every segment and any path that leads out of the
//! directory that it starts from. Check and use are one step, as they are when each segment is
//! opened relative to the one before. Only success counts: after any failure, whatever the reason,
//! the caller goes down step by step and finds the cause.

use cap_std::fs::Dir;

use crate::StorePath;

/// Opens the directory at `path` below `root`, if the kernel can.
#[cfg(target_os = "linux")]
pub(super) fn open(root: &Dir, path: &StorePath) -> Option<Dir> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let directory = openat2(root, path.as_str(), how, Mode::empty(), resolve).ok()?;
    Some(Dir::from_std_file(directory.into()))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn open(_: &Dir, _: &StorePath) -> Option<Dir> {
    None
}
