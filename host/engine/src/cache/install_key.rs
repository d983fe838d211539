//! Secret key of an installation: 32 random bytes that authenticate its entries.

use std::io::Read;
use std::path::Path;

use super::directory::{OpenFile, PrivateDirectory};
use super::entry::unreadable;
use super::error::{CacheError, Rejection};

/// File name of the key in the cache directory.
pub(super) const KEY_NAME: &str = "key";
const KEY_BYTES: usize = blake3::KEY_LEN;
/// Maximum number of attempts to read a key that disappears after it was created because another
/// process deletes it.
const ATTEMPTS: u32 = 3;

/// Key of the installation. Has no `Debug`, so that it never reaches a log.
pub(super) struct InstallKey([u8; KEY_BYTES]);

impl InstallKey {
    /// Reads the key of the directory, or creates one. If several processes create one at the same
    /// time, the first wins and all of them use its key, because each reads the key back.
    pub(super) fn load_or_create(
        directory: &PrivateDirectory,
        path: &Path,
    ) -> Result<Self, CacheError> {
        for _ in 0..ATTEMPTS {
            if let Some(key) = Self::load(directory, path)? {
                return Ok(key);
            }
            create(directory, path)?;
        }
        let missing = Rejection::Unreadable(std::io::ErrorKind::NotFound);
        Err(CacheError::key(path.join(KEY_NAME), missing))
    }

    /// Reads the key of the directory. Returns `None` if there is none.
    pub(super) fn load(
        directory: &PrivateDirectory,
        path: &Path,
    ) -> Result<Option<Self>, CacheError> {
        let refused = |reason| CacheError::key(path.join(KEY_NAME), reason);
        let Some(mut file) = directory.open_file(KEY_NAME).map_err(refused)? else {
            return Ok(None);
        };
        read(&mut file).map(|key| Some(Self(key))).map_err(refused)
    }

    /// Returns a hasher that only holders of the key can use.
    pub(super) fn hasher(&self) -> blake3::Hasher {
        blake3::Hasher::new_keyed(&self.0)
    }
}

fn read(file: &mut OpenFile) -> Result<[u8; KEY_BYTES], Rejection> {
    let (length, expected) = (file.length, KEY_BYTES as u64);
    if length < expected {
        return Err(Rejection::CutShort { length });
    }
    if length > expected {
        return Err(Rejection::TooLarge { length });
    }
    let mut key = [0; KEY_BYTES];
    file.reader.read_exact(&mut key).map_err(unreadable)?;
    Ok(key)
}

/// Creates a new key, unless one exists by then. The key gets its name once it is complete and on
/// disk, so an existing key is complete even after a crash.
fn create(directory: &PrivateDirectory, path: &Path) -> Result<(), CacheError> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|_| CacheError::NoRandomness)?;
    let io = |source| CacheError::io("make a key in", path, source);
    let temporary = directory.write_temporary(&[&key]).map_err(io)?;
    let linked = directory.sync(&temporary).and_then(|()| directory.link_new(&temporary, KEY_NAME));
    // The temporary name is no longer needed in any case.
    let _ = directory.remove(&temporary);
    linked.map_err(io)
}
