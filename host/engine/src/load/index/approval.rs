//! Mark in the index that identifies what its plugins were approved against.

use std::path::Path;

use super::FileIdentity;
use crate::cache::CacheKey;

/// Mark of a caller that has approved all plugins of a batch against a file, such as a lock file.
///
/// The mark is saved in the index of the [`PluginBatch`](crate::PluginBatch). If the next start
/// computes the same mark, the file and the context are unchanged, and the plugins that come from
/// the index need not be compared with the file again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approval([u8; 32]);

impl Approval {
    /// Computes the mark for the current version of `file`, which is not read, and for `context`,
    /// such as the names of the plugins that the file covers. Call this before reading the file, so
    /// that a change during the read results in a different mark.
    ///
    /// Returns `None` if the file is missing or was changed within the last seconds, because the
    /// next change might not be detectable then, or if the system does not distinguish versions of
    /// files.
    #[must_use]
    pub fn of_file_ambient(file: &Path, context: &[&[u8]]) -> Option<Self> {
        let identity =
            FileIdentity::of_ambient(file).filter(FileIdentity::is_quiescent)?.to_bytes();
        let mut parts = vec![identity.as_slice(), file.as_os_str().as_encoded_bytes()];
        parts.extend_from_slice(context);
        Some(Self(CacheKey::new(&parts).into_bytes()))
    }

    pub(super) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(super) fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}
