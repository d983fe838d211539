//! The secret of an installation: 32 random bytes that prove who wrote an entry.

use std::io::Read;
use std::path::Path;

use super::directory::{Directory, OpenFile};
use super::entry::unreadable;
use super::error::{CacheError, Rejection};

/// File name of the key in the cache directory.
pub(super) const KEY_NAME: &str = "key";
const KEY_BYTES: usize = blake3::KEY_LEN;
/// Maximum number of attempts to read a key that vanishes after it was created, because another
/// process deletes it.
const ATTEMPTS: u32 = 3;

/// The key. Has no `Debug`, so that it never reaches a log.
pub(super) struct InstallKey([u8; KEY_BYTES]);

impl InstallKey {
    /// Reads the key of the directory, or makes one. When several processes make one at a time, the
    /// first wins and all of them use it: what counts is always what is read back.
    pub(super) fn load_or_create(directory: &Directory, path: &Path) -> Result<Self, CacheError> {
        let refused = |reason| CacheError::key(path.join(KEY_NAME), reason);
        for _ in 0..ATTEMPTS {
            if let Some(mut file) = directory.open_file(KEY_NAME).map_err(refused)? {
                return read(&mut file).map(Self).map_err(refused);
            }
            create(directory, path)?;
        }
        Err(refused(Rejection::Unreadable(std::io::ErrorKind::NotFound)))
    }

    /// A hasher that only holders of the key can use.
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

/// Puts a new key in place unless there is one by now. It is linked to its name when it is complete
/// and on disk: a key that exists is whole, also after a crash.
fn create(directory: &Directory, path: &Path) -> Result<(), CacheError> {
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(|_| CacheError::NoRandomness)?;
    let io = |source| CacheError::io("make a key in", path, source);
    let temporary = directory.write_temporary(&[&key]).map_err(io)?;
    let linked = directory.sync(&temporary).and_then(|()| directory.link_new(&temporary, KEY_NAME));
    // Whether or not that worked, the temporary name is of no use to anybody.
    let _ = directory.remove(&temporary);
    linked.map_err(io)
}
