//! Identity of a file's version, without reading the file.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Minimum age of the last change of a file for the next one to be detectable, in seconds. Times of
/// files are as coarse as ten milliseconds, or two seconds on FAT; a file that is changed twice in
/// one step of that clock looks as if it was changed once.
#[cfg(unix)]
const QUIESCENT_SECONDS: i64 = 2;

/// Metadata that differs between two versions of a file. A program that may write to the file can
/// set the time of the last change of its contents; only the system sets the time of the last
/// change of anything about it (`ctime`).
///
/// A program that has the file mapped into its memory can change it undetected until the system
/// writes it back, which can take half a minute. Decisions based on an identity must be harmless in
/// that case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of a regular file; `None` for anything else, or if the system has no
    /// such metadata.
    pub(crate) fn of_ambient(path: &Path) -> Option<Self> {
        Self::of_any_ambient(path)?
    }

    /// Returns the identity of a regular file, or `Some(None)` if it is missing.
    #[cfg(unix)]
    pub(crate) fn of_any_ambient(path: &Path) -> Option<Option<Self>> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(None),
            _ => return None,
        };
        Some(Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }))
    }

    /// Returns `None`: the system has no `ctime`.
    #[cfg(not(unix))]
    pub(crate) fn of_any_ambient(_path: &Path) -> Option<Option<Self>> {
        None
    }

    /// Returns all fields as bytes.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let Self { device, inode, bytes, modified, changed } = self;
        let times = [modified.0, modified.1, changed.0, changed.1];
        let numbers = [device, inode, bytes].map(u64::to_le_bytes);
        numbers.into_iter().chain(times.map(i64::to_le_bytes)).flatten().collect()
    }

    /// Returns true if any later change results in a different identity.
    #[cfg(unix)]
    pub(crate) fn is_quiescent(&self) -> bool {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.ok().and_then(|now| i64::try_from(now.as_secs()).ok()).unwrap_or(i64::MIN);
        now.saturating_sub(self.changed.0) > QUIESCENT_SECONDS
    }

    #[cfg(not(unix))]
    pub(crate) fn is_quiescent(&self) -> bool {
        false
    }
}

#[cfg(test)]
impl FileIdentity {
    /// Creates an identity with changes at the second `number`.
    pub(super) fn numbered(number: i64) -> Self {
        let (device, inode, bytes) = (1, u64::try_from(number).unwrap_or(0), 3);
        Self { device, inode, bytes, modified: (number, 4), changed: (number, 5) }
    }
}
