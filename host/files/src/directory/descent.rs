//! All the way down to a directory in one step, where the kernel can do that without following a
//! link.
//!
//! Linux has `openat2`, which refuses links at every segment and what leads out of the directory
//! that it starts from. That is check and use in one step, as opening each segment relative to the
//! one before is. It only ever says yes: for anything else, whatever the reason, the caller goes
//! down step by step and finds out.

use cap_std::fs::Dir;

use crate::StorePath;

/// The directory at `path` below `root`, if the kernel opens it.
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
