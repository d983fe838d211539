//! One entry: its name, its bytes on disk, and the proof that they are ours.

use std::io::{self, Read};

use super::directory::{Directory, OpenFile};
use super::error::{CacheError, Rejection};
use super::install_key::InstallKey;
use super::{CacheKey, EntryKind};

/// First bytes of every entry. A new layout gets a new number; the MAC covers them.
const MAGIC: [u8; 8] = *b"CFDCACH1";
/// Length of a MAC.
const MAC_BYTES: usize = blake3::OUT_LEN;
/// Header before the contents: magic and MAC.
const HEADER_BYTES: u64 = (MAGIC.len() + MAC_BYTES) as u64;
/// Longest machine code. It is a few times as long as its Wasm, of which the screen admits 64 MiB.
const CODE_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Longest description: a thousand tools with schemas of 16 KiB.
const DESCRIPTION_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Maximum length of an index: a thousand components with 64 KiB each. A longer one is not written.
const INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;

impl EntryKind {
    /// Returns the tag by which the MAC tells kinds apart. Never reused for another kind.
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

/// The file name of an entry.
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

/// Refuses contents that [`read`] would not accept.
pub(super) fn check_length(kind: EntryKind, length: u64) -> Result<(), CacheError> {
    let limit = kind.bytes_max();
    if length > limit { Err(CacheError::EntryTooLarge { length, limit }) } else { Ok(()) }
}

/// Writes an entry under another name and renames it: a rename is all or nothing.
pub(super) fn write(
    directory: &Directory,
    install_key: &InstallKey,
    key: &CacheKey,
    kind: EntryKind,
    contents: &[u8],
) -> io::Result<()> {
    let mac = mac(install_key, key, kind, contents);
    let temporary = directory.write_temporary(&[&MAGIC, mac.as_bytes(), contents])?;
    directory.rename(&temporary, &name(key, kind)).inspect_err(|_| {
        // The error that is reported is the first one; a file that stays is removed by the next
        // prune.
        let _ = directory.remove(&temporary);
    })
}

/// Reads an entry and proves it. `None` if there is no such entry.
pub(super) fn read(
    directory: &Directory,
    install_key: &InstallKey,
    key: &CacheKey,
    kind: EntryKind,
) -> Result<Option<Vec<u8>>, Rejection> {
    let Some(mut file) = directory.open_file(&name(key, kind))? else { return Ok(None) };
    let (mac_found, contents) = read_parts(&mut file, kind)?;
    // Comparing two hashes of `blake3` takes the same time wherever they differ.
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
    // A file that grows meanwhile is read no further than it was long; the MAC refuses the rest.
    file.reader.by_ref().take(contents_bytes).read_to_end(&mut contents).map_err(unreadable)?;
    Ok((mac, contents))
}

/// The proof. Every part but the last has a fixed length, so two different entries never hash the
/// same bytes.
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
