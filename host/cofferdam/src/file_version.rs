//! Versions of files, to notice that one was changed.

use std::path::Path;
use std::time::SystemTime;

/// Version of a file: a file with another one was written or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileVersion {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Inode number, where files have one.
    inode: u64,
}

impl FileVersion {
    /// Returns the version of a file, or `None` if the file does not exist.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Some(Self { bytes: metadata.len(), modified: metadata.modified().ok(), inode })
    }
}
