//! Compiled code on disk, which is trusted only with proof.
//!
//! Deserializing compiled code means running it, so the cache trusts no byte that it did not write
//! itself. An installation has a random key of 32 bytes, stored next to its entries. Every entry
//! carries a MAC (keyed BLAKE3) over format, kind, cache key, length and contents. It is checked
//! before a byte leaves this module, so that an entry that was patched, cut, renamed to another key
//! or kind, or written by another installation is a miss.
//!
//! The key is only as secret as its directory. A directory or key that is a link, belongs to
//! another user, or is open to group or others is rejected, and the error names the command that
//! repairs it; an entry like that is removed. The directory is held open by handle: swapping it
//! afterwards has no effect. Programs of the same user can read the key; no grant of a plugin may
//! overlap `Cache::directory`, which the caller must check.
//!
//! A cache is never required: a full disk, a lost key or a broken entry costs a compilation. After
//! a lost key, a new one is created, and every old entry is rejected once and written again.
//! Entries are not synced to disk, because after a crash the MAC rejects whatever is incomplete;
//! the key is synced. Reading costs one pass of BLAKE3 over the contents.
//!
//! On Windows, the access lists of directory and files replace permission bits.

#[cfg_attr(windows, path = "cache/directory_windows.rs")]
mod directory;
mod entry;
mod error;
mod install_key;
mod prune;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::directory::PrivateDirectory;
use self::install_key::InstallKey;

pub use self::error::{CacheError, Rejection};
pub use self::prune::PruneReport;

/// BLAKE3 context of [`CacheKey`], so that no other hash of the same parts is a cache key.
const CACHE_KEY_CONTEXT: &str = "cofferdam 2026-11-21 key of a cache entry";

/// Maximum size of the whole cache; beyond it the oldest entries are removed. Enough for several
/// hundred interpreters or ten thousand small plugins.
const BYTES_MAX: u64 = 8 << 30;
/// Number of bytes that a process writes between two checks of the size of the cache, each of which
/// reads the whole directory.
const PRUNED_EVERY_BYTES: u64 = 64 << 20;

/// Removes the oldest entries of the cache at `directory` until the rest has at most `bytes_max`
/// bytes, and files that crashed writers left behind. Processes that use the cache compile again
/// what they do not find.
///
/// # Errors
/// Errors of the directory, as when an engine opens it; [`CacheError::Io`] if it cannot be listed.
pub fn prune_ambient(directory: &Path, bytes_max: u64) -> Result<PruneReport, CacheError> {
    Cache::open_ambient(directory)?.prune(bytes_max)
}

/// Checks an existing cache at `directory` as opening it does, and changes nothing.
///
/// # Errors
/// [`CacheError::Refused`] if other users can access the directory or its key;
/// [`CacheError::Io`] if the directory does not exist or cannot be opened.
pub fn check_ambient(directory: &Path) -> Result<(), CacheError> {
    let (directory, path) = PrivateDirectory::open_existing_ambient(directory)?;
    InstallKey::load(&directory, &path).map(drop)
}

/// Authenticated directory of compiled code and descriptions. Cloning is cheap; clones share state.
#[derive(Clone)]
pub(crate) struct Cache {
    inner: Arc<CacheState>,
}

struct CacheState {
    path: PathBuf,
    directory: PrivateDirectory,
    key: InstallKey,
    /// Number of bytes that may be written before the cache is pruned again.
    until_pruned: AtomicU64,
}

/// Key of an entry: a hash of everything that its contents depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey([u8; 32]);

/// Kind of the contents of an entry. Entries of different kinds may share a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum EntryKind {
    /// Machine code of a component.
    Code,
    /// Imports and declarations of a component.
    Description,
    /// Index of the plugins of one start.
    Index,
}

/// Result of looking up an entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Authenticated contents.
    Hit(Vec<u8>),
    /// No entry.
    Miss,
    /// An entry that cannot be trusted. It has been removed, unless it could not even be read.
    Rejected(Rejection),
}

impl CacheKey {
    /// Hashes `parts` so that two different lists of parts never result in the same key: `["ab"]`
    /// differs from `["a", "b"]`.
    #[must_use]
    pub(crate) fn new(parts: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CACHE_KEY_CONTEXT);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    pub(crate) fn into_bytes(self) -> [u8; 32] {
        self.0
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CacheKey({})", blake3::Hash::from_bytes(self.0))
    }
}

impl Cache {
    /// Opens the cache at `directory`, an unconfined path of the host. Creates the directory,
    /// private to this user, and the key in it if they do not exist. Safe while other processes do
    /// the same.
    ///
    /// # Errors
    /// [`CacheError::Refused`] if other users can access the directory or its key, with the way to
    /// repair it; [`CacheError::Io`] if the system fails.
    pub(crate) fn open_ambient(directory: &Path) -> Result<Self, CacheError> {
        let (directory, path) = PrivateDirectory::open_ambient(directory)?;
        let key = InstallKey::load_or_create(&directory, &path)?;
        let until_pruned = AtomicU64::new(0);
        Ok(Self { inner: Arc::new(CacheState { path, directory, key, until_pruned }) })
    }

    /// Returns the directory of the cache, without links. No grant may overlap it.
    #[must_use]
    pub(crate) fn directory(&self) -> &Path {
        &self.inner.path
    }

    /// Looks up an entry, and removes it if it cannot be trusted.
    #[must_use]
    pub(crate) fn get(&self, key: &CacheKey, kind: EntryKind) -> Lookup {
        let CacheState { directory, key: install_key, .. } = &*self.inner;
        match entry::read(directory, install_key, key, kind) {
            Ok(Some(contents)) => Lookup::Hit(contents),
            Ok(None) => Lookup::Miss,
            Err(rejection) => {
                // An entry that is currently unreadable for this process may be valid for the next
                // one.
                if !matches!(rejection, Rejection::Unreadable(_)) {
                    // An entry that cannot be removed is rejected again next time, which is
                    // sufficient.
                    let _ = directory.remove(&entry::name(key, kind));
                }
                Lookup::Rejected(rejection)
            }
        }
    }

    /// Writes or replaces an entry atomically: a reader sees the old contents, the new ones, or
    /// none.
    ///
    /// # Errors
    /// [`CacheError::EntryTooLarge`] for contents that no [`Cache::get`] would accept;
    /// [`CacheError::Io`] if the system fails, for example because the disk is full. Leaves nothing
    /// behind in that case.
    pub(crate) fn put(
        &self,
        key: &CacheKey,
        kind: EntryKind,
        contents: &[u8],
    ) -> Result<(), CacheError> {
        let CacheState { path, directory, key: install_key, .. } = &*self.inner;
        entry::check_length(kind, contents.len() as u64)?;
        entry::write(directory, install_key, key, kind, contents)
            .map_err(|source| CacheError::io("write an entry into", path, source))
    }

    /// Writes an entry like [`Cache::put`], and prunes the cache with the first entry that a
    /// process writes, and occasionally later.
    ///
    /// # Errors
    /// Errors of [`Cache::put`] and [`Cache::prune`].
    pub(crate) fn insert(
        &self,
        key: &CacheKey,
        kind: EntryKind,
        contents: &[u8],
    ) -> Result<(), CacheError> {
        self.put(key, kind, contents)?;
        let (written, left) = (contents.len() as u64, &self.inner.until_pruned);
        let spend = |left: u64| left.checked_sub(written);
        if left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_err() {
            left.store(PRUNED_EVERY_BYTES, Ordering::Relaxed);
            self.prune(BYTES_MAX)?;
        }
        Ok(())
    }

    /// Removes the oldest entries until the rest has at most `bytes_max` bytes, and files that
    /// crashed writers left behind.
    ///
    /// # Errors
    /// [`CacheError::Io`] if the directory cannot be read. Entries that cannot be removed stay and
    /// are counted.
    pub(crate) fn prune(&self, bytes_max: u64) -> Result<PruneReport, CacheError> {
        prune::prune(&self.inner.directory, bytes_max)
            .map_err(|source| CacheError::io("list", &self.inner.path, source))
    }
}

impl fmt::Debug for Cache {
    /// Shows the directory but never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("directory", &self.inner.path).finish_non_exhaustive()
    }
}
