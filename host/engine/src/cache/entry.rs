//! Cache entry: its name, its bytes on disk, and their authentication.

use std::io::{self, Read};

use super::directory::{OpenFile, PrivateDirectory};
use super::error::{CacheError, Rejection};
use super::install_key::InstallKey;
use super::{CacheKey, EntryKind};

/// First bytes of every entry. A new layout gets a new number. The MAC covers them.
const MAGIC: [u8; 8] = *b"CFDCACH1";
/// Length of a MAC.
const MAC_BYTES: usize = blake3::OUT_LEN;
/// Length of the header before the contents: magic and MAC.
const HEADER_BYTES: u64 = (MAGIC.len() + MAC_BYTES) as u64;
/// Maximum length of machine code. It is several times as long as its Wasm, of which the screen
/// admits 64 MiB.
const CODE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Maximum length of a description: a thousand tools with schemas of 16 KiB.
const DESCRIPTION_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum length of an index: a thousand components with 64 KiB each. A longer one is not written.
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl EntryKind {
    /// Returns the tag that distinguishes kinds in the MAC. Never reused for another kind.
    fn tag(self) -> u8 {
        match self {
            Self::Code => 1,
            Self::Description => 2,
            Self::Index => 3,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Description => "description",
            Self::Index => "known",
        }
    }

    fn bytes_max(self) -> u64 {
        match self {
            Self::Code => CODE_BYTES_MAX,
            Self::Description => DESCRIPTION_BYTES_MAX,
            Self::Index => INDEX_BYTES_MAX,
        }
    }
}

/// Returns the file name of an entry.
pub(super) fn name(key: &CacheKey, kind: EntryKind) -> String {
    format!("{}.{}", blake3::Hash::from_bytes(key.0).to_hex(), kind.extension())
}

/// Returns true if a file of the directory is an entry by its name.
pub(super) fn is_entry(name: &str) -> bool {
    let Some((key, extension)) = name.split_once('.') else { return false };
    let known = [EntryKind::Code, EntryKind::Description, EntryKind::Index]
        .iter()
        .any(|kind| kind.extension() == extension);
    known && blake3::Hash::from_hex(key).is_ok()
}

/// Rejects contents that [`read`] would not accept.
pub(super) fn check_length(kind: EntryKind, length: u64) -> Result<(), CacheError> {
    let limit = kind.bytes_max();
    if length > limit { Err(CacheError::EntryTooLarge { length, limit }) } else { Ok(()) }
}

/// Writes an entry under a temporary name and renames it, which is atomic.
pub(super) fn write(
    directory: &PrivateDirectory,
    install_key: &InstallKey,
    key: &CacheKey,
    kind: EntryKind,
    contents: &[u8],
) -> io::Result<()> {
    let mac = mac(install_key, key, kind, contents);
    let temporary = directory.write_temporary(&[&MAGIC, mac.as_bytes(), contents])?;
    directory.rename(&temporary, &name(key, kind)).inspect_err(|_| {
        // The first error is the one that is reported; the next prune removes a leftover file.
        let _ = directory.remove(&temporary);
    })
}

/// Reads and authenticates an entry. Returns `None` if it does not exist.
pub(super) fn read(
    directory: &PrivateDirectory,
    install_key: &InstallKey,
    key: &CacheKey,
    kind: EntryKind,
) -> Result<Option<Vec<u8>>, Rejection> {
    let Some(mut file) = directory.open_file(&name(key, kind))? else { return Ok(None) };
    let (mac_found, contents) = read_parts(&mut file, kind)?;
    // `blake3` compares hashes in constant time.
    if blake3::Hash::from_bytes(mac_found) != mac(install_key, key, kind, &contents) {
        return Err(Rejection::NotAuthentic);
    }
    Ok(Some(contents))
}

fn read_parts(
    file: &mut OpenFile,
    kind: EntryKind,
) -> Result<([u8; MAC_BYTES], Vec<u8>), Rejection> {
    let length = file.length;
    let Some(contents_bytes) = length.checked_sub(HEADER_BYTES) else {
        return Err(Rejection::CutShort { length });
    };
    // Checked before anything of that size is allocated.
    if contents_bytes > kind.bytes_max() {
        return Err(Rejection::TooLarge { length });
    }
    let (mut magic, mut mac) = ([0; MAGIC.len()], [0; MAC_BYTES]);
    file.reader.read_exact(&mut magic).map_err(unreadable)?;
    if magic != MAGIC {
        return Err(Rejection::Format);
    }
    file.reader.read_exact(&mut mac).map_err(unreadable)?;
    let mut contents = Vec::with_capacity(usize::try_from(contents_bytes).unwrap_or_default());
    // If the file grows meanwhile, only its original length is read; the MAC rejects it then.
    file.reader.by_ref().take(contents_bytes).read_to_end(&mut contents).map_err(unreadable)?;
    Ok((mac, contents))
}

/// Computes the MAC of an entry. Every part but the last has a fixed length, so two different
/// entries never hash the same bytes.
fn mac(install_key: &InstallKey, key: &CacheKey, kind: EntryKind, contents: &[u8]) -> blake3::Hash {
    let mut hasher = install_key.hasher();
    hasher.update(&MAGIC);
    hasher.update(&[kind.tag()]);
    hasher.update(&key.0);
    hasher.update(&(contents.len() as u64).to_le_bytes());
    hasher.update(contents);
    hasher.finalize()
}

pub(super) fn unreadable(error: io::Error) -> Rejection {
    Rejection::Unreadable(error.kind())
}
