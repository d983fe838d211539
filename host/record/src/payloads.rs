//! Payloads: what calls took and returned, as digests or as blobs.
//!
//! A digest is keyed with 32 random bytes of the directory, so that a payload of few possible
//! values cannot be guessed from its digest alone. Blobs are named by digest, so that equal
//! payloads are stored once. Payloads are redacted before they are hashed.

use std::borrow::Cow;
use std::io::{Read, Write};

use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::cleaner::Cleaner;
use crate::components::ComponentFiles;
use crate::directory::{LogDirectory, random};
use crate::entry::PayloadDigest;
use crate::{CallEntry, PayloadKind, RecordError};

/// Folder with the blobs.
pub(crate) const BLOBS: &str = "blobs";
/// Suffix of compressed blobs.
const COMPRESSED: &str = ".z";
/// File with the key of the digests.
const KEY: &str = "key";
/// Longest payload that is stored without compression.
const PLAIN_BYTES_MAX: usize = 4096;
/// Longest payload that is read back, beyond any limit that a recorder has.
pub(crate) const BLOB_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Treatment of payloads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayloadMode {
    /// Nothing is kept.
    None,
    /// Lines hold digests and lengths.
    #[default]
    Digests,
    /// Redacted payloads are stored in the directory as well.
    Local,
}

/// Content of a payload, not redacted.
#[derive(Debug, Clone, Default)]
pub(crate) struct RawPayload {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_cut: bool,
    pub(crate) is_json: bool,
}

/// Makes digests of payloads and stores them.
pub(crate) struct PayloadStore {
    directory: LogDirectory,
    mode: PayloadMode,
    key: [u8; 32],
    bytes_written: u64,
    /// Components that recordings may be of.
    pub(crate) components: ComponentFiles,
    /// Maximum bytes of the log.
    pub(crate) log_bytes_max: u64,
}

impl PayloadStore {
    /// Opens the store, and creates the key of the directory if it has none.
    pub(crate) fn open(
        directory: &LogDirectory,
        mode: PayloadMode,
        log_bytes_max: u64,
    ) -> Result<Self, RecordError> {
        let key = read_or_create_key(directory)?;
        if mode == PayloadMode::Local {
            directory.create_folder(BLOBS)?;
        }
        let directory = directory.clone();
        Ok(Self {
            directory,
            mode,
            key,
            bytes_written: 0,
            components: ComponentFiles::default(),
            log_bytes_max,
        })
    }

    /// Starts to count the written bytes again.
    pub(crate) fn reset_bytes_written(&mut self) {
        self.bytes_written = 0;
    }

    /// Returns the bytes of blobs written since the last reset.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Redacts and hashes a payload, and stores it if the mode is `local`. A blob that cannot be
    /// written is an error beside the digest.
    pub(crate) fn add(
        &mut self,
        payload: &RawPayload,
        cleaner: &Cleaner,
    ) -> (Option<PayloadDigest>, Option<RecordError>) {
        if self.mode == PayloadMode::None || payload.bytes.is_empty() {
            return (None, None);
        }
        // `from_utf8` is faster than `from_utf8_lossy` on valid input.
        let text = std::str::from_utf8(&payload.bytes)
            .map_or_else(|_| String::from_utf8_lossy(&payload.bytes), Cow::Borrowed);
        let clean: Cow<'_, str> =
            if payload.is_json { cleaner.json(&text) } else { cleaner.text(&text) };
        let hash = blake3::keyed_hash(&self.key, clean.as_bytes());
        let error = match self.mode {
            PayloadMode::Local => self.store(hash, clean.as_bytes()).err(),
            _ => None,
        };
        let digest = PayloadDigest {
            hash: HEXLOWER.encode(hash.as_bytes()),
            bytes: u64::try_from(clean.len()).unwrap_or(u64::MAX),
            is_cut: payload.is_cut,
        };
        (Some(digest), error)
    }

    /// Stores bytes whatever the mode, and returns their digest.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<PayloadDigest, RecordError> {
        let hash = blake3::keyed_hash(&self.key, bytes);
        self.store(hash, bytes)?;
        Ok(PayloadDigest {
            hash: HEXLOWER.encode(hash.as_bytes()),
            bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            is_cut: false,
        })
    }

    /// Makes retention keep a blob longer. Returns false if the blob is gone.
    pub(crate) fn keep_again(&self, hash: &str) -> bool {
        blob_name(hash).is_some_and(|(_, name)| {
            self.directory.touch(&name) || self.directory.touch(&format!("{name}{COMPRESSED}"))
        })
    }

    fn store(&mut self, hash: blake3::Hash, bytes: &[u8]) -> Result<(), RecordError> {
        let hex = hash.to_hex();
        let Some((folder, mut name)) = blob_name(hex.as_str()) else { return Ok(()) };
        let is_compressed = bytes.len() > PLAIN_BYTES_MAX;
        if is_compressed {
            name.push_str(COMPRESSED);
        }
        // Each use counts, because retention removes the oldest first, also that of other
        // processes.
        if self.directory.touch(&name) {
            return Ok(());
        }
        let content = if is_compressed { compressed(bytes) } else { Cow::Borrowed(bytes) };
        self.write(&folder, &name, &content)
    }

    fn write(&mut self, folder: &str, name: &str, content: &[u8]) -> Result<(), RecordError> {
        let written = match self.directory.write(name, content) {
            Err(error) if error.is_not_found() => {
                self.directory.create_folder(BLOBS)?;
                self.directory.create_folder(folder)?;
                self.directory.write(name, content)
            }
            written => written,
        };
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        self.bytes_written = self.bytes_written.saturating_add(bytes);
        written
    }
}

/// Reads a stored payload. Returns `None` if it was not stored, or removed by retention.
pub(crate) fn read_payload(
    directory: &LogDirectory,
    entry: &CallEntry,
    kind: PayloadKind,
) -> Result<Option<Vec<u8>>, RecordError> {
    entry.payload(kind).map_or(Ok(None), |digest| read_blob(directory, &digest.hash))
}

/// Reads stored bytes. Returns `None` if there are none with this digest.
pub(crate) fn read_blob(
    directory: &LogDirectory,
    hash: &str,
) -> Result<Option<Vec<u8>>, RecordError> {
    let Some((_, name)) = blob_name(hash) else { return Ok(None) };
    match directory.read(&name, BLOB_BYTES_MAX) {
        Ok(bytes) => return Ok(Some(bytes)),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    let name = format!("{name}{COMPRESSED}");
    let file = match directory.open_file(&name) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    let decoder = ZlibDecoder::new(file);
    let read = decoder.take(BLOB_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| RecordError::file(&name, error))?;
    Ok(Some(bytes))
}

/// Returns folder and path of a blob, or `None` if the digest has another form.
fn blob_name(hash: &str) -> Option<(String, String)> {
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let start = hash.get(..2).filter(|_| is_hash)?;
    let folder = format!("{BLOBS}/{start}");
    let name = format!("{folder}/{hash}");
    Some((folder, name))
}

fn compressed(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(bytes);
    Cow::Owned(encoder.finish().unwrap_or_default())
}

fn read_or_create_key(directory: &LogDirectory) -> Result<[u8; 32], RecordError> {
    for _ in 0..2 {
        match directory.read(KEY, 33) {
            Ok(bytes) => {
                let found = bytes.len();
                return bytes.try_into().map_err(|_| RecordError::Key { bytes: found });
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        directory.write_new(KEY, &random::<32>()?)?;
    }
    Err(RecordError::Key { bytes: 0 })
}

/// Returns random digits for the names of a process.
pub(crate) fn process_digits() -> Result<String, RecordError> {
    Ok(HEXLOWER.encode(&random::<4>()?))
}
