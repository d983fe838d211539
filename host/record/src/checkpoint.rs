//! Checkpoints of segments (C2SP `tlog-checkpoint`): origin, number of lines and root, signed.
//!
//! The origin is the name of the key, a slash and the segment, so that a checkpoint holds for one
//! segment of one log only. The newest checkpoint of a segment is in the file
//! `<segment>.checkpoint` beside it. A tombstone has the same form, with `/pruned/` in its origin:
//! neither can pass for the other.

use std::io::{BufRead as _, BufReader, Read as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::RecordError;
use crate::directory::LogDirectory;
use crate::merkle::TreeHash;
use crate::note::{NOTE_BYTES_MAX, NoteError, SigningKey, VerifierKey};

/// Suffix of the files that hold the newest checkpoints.
pub(crate) const CHECKPOINT_SUFFIX: &str = ".checkpoint";
/// File with one tombstone per line, as a JSON string.
pub(crate) const TOMBSTONES: &str = "pruned";
/// Maximum number of tombstones that are read, of which each has about 270 bytes.
const TOMBSTONES_MAX: usize = 4_000_000;
/// Maximum bytes of a segment's name. Ours have about 40.
const SEGMENT_BYTES_MAX: usize = 128;
/// File with the private key.
const SIGNING_KEY: &str = "signing-key";
const SIGNING_KEY_BYTES_MAX: u64 = 1024;

/// Error of the evidence of a log: its key, checkpoints and proofs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A note or a key is invalid.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The text of a note is not a checkpoint.
    #[error("expected a checkpoint (origin, size, root), found {0}")]
    Checkpoint(&'static str),
    /// The directory has no key.
    #[error(
        "the log has no file `signing-key`; name the key that `cofferdam log checkpoint` printed"
    )]
    NoKey,
    /// A thread ended before its work was done.
    #[error("reading the log was interrupted; run the command again")]
    Interrupted,
    /// There is no line to prove.
    #[error("{0}")]
    Unprovable(String),
    /// A proof does not hold.
    #[error("the proof does not hold: {0}")]
    Proof(&'static str),
}

/// State of a segment: its first `size` lines and the root of the tree over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogCheckpoint {
    /// Segment without its suffix.
    pub segment: String,
    /// Number of lines.
    pub size: u64,
    /// Root of the Merkle tree over the lines.
    pub root: TreeHash,
}

/// Kinds of notes that a log signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckpointPurpose {
    /// State of a segment.
    State,
    /// Last state of a segment that retention removed.
    Tombstone,
}

impl CheckpointPurpose {
    const fn separator(self) -> &'static str {
        match self {
            Self::State => "/",
            Self::Tombstone => "/pruned/",
        }
    }
}

impl LogCheckpoint {
    /// Signs the checkpoint and returns the note.
    pub(crate) fn sign(
        &self,
        purpose: CheckpointPurpose,
        key: &SigningKey,
    ) -> Result<String, NoteError> {
        let (name, separator) = (key.verifier().name(), purpose.separator());
        let Self { segment, size, root } = self;
        key.sign(&format!("{name}{separator}{segment}\n{size}\n{}\n", encode_hash(root)))
    }

    /// Checks a note and parses its text.
    ///
    /// # Errors
    ///
    /// Returns an error if the note is not signed by `key`, or not a checkpoint of its log.
    pub fn open(note: &str, key: &VerifierKey) -> Result<Self, EvidenceError> {
        Self::open_as(note, CheckpointPurpose::State, key)
    }

    pub(crate) fn open_as(
        note: &str,
        purpose: CheckpointPurpose,
        key: &VerifierKey,
    ) -> Result<Self, EvidenceError> {
        let text = key.open(note)?;
        let origin = text.lines().next().unwrap_or_default();
        let segment = origin.strip_prefix(key.name());
        let segment = segment.and_then(|rest| rest.strip_prefix(purpose.separator()));
        let segment = segment.filter(|segment| is_segment(segment));
        let segment = segment.ok_or(EvidenceError::Checkpoint("the origin of another log"))?;
        Self::parse_state(segment, text)
    }

    /// Parses the text of a note without checking any signature.
    pub(crate) fn parse_unsigned(note: &str) -> Result<Self, EvidenceError> {
        let origin = note.lines().next().unwrap_or_default();
        let segment = origin.rsplit_once('/').map(|(_, segment)| segment);
        let segment = segment.filter(|segment| is_segment(segment));
        Self::parse_state(segment.ok_or(EvidenceError::Checkpoint("another origin"))?, note)
    }

    fn parse_state(segment: &str, text: &str) -> Result<Self, EvidenceError> {
        let (size, root) = parse_state_of(text)?;
        Ok(Self { segment: segment.to_owned(), size, root })
    }
}

/// Parses size and root of the text of a checkpoint.
pub(crate) fn parse_state_of(text: &str) -> Result<(u64, TreeHash), EvidenceError> {
    let mut lines = text.lines().skip(1);
    let size = lines.next().and_then(parse_size);
    let size = size.ok_or(EvidenceError::Checkpoint("an invalid size"))?;
    let root = lines.next().and_then(decode_hash);
    let root = root.ok_or(EvidenceError::Checkpoint("an invalid root"))?;
    Ok((size, root))
}

impl SigningKey {
    /// Reads the key of a log, and makes one if it is missing. Of several processes that do so at
    /// the same time, the first one wins.
    pub(crate) fn load_or_create(directory: &LogDirectory) -> Result<Self, EvidenceError> {
        if let Some(key) = Self::load(directory)? {
            return Ok(key);
        }
        let (key, text) = Self::generate()?;
        if directory.write_new(SIGNING_KEY, text.as_bytes())? {
            return Ok(key);
        }
        Self::load(directory)?.ok_or(NoteError::Key("nothing").into())
    }

    /// Reads the key of a log, if there is one.
    pub(crate) fn load(directory: &LogDirectory) -> Result<Option<Self>, EvidenceError> {
        match directory.read(SIGNING_KEY, SIGNING_KEY_BYTES_MAX) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).map_err(|_| NoteError::Key("no text"))?;
                Ok(Some(Self::parse(&text)?))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the name of the file with the newest checkpoint of a segment.
pub(crate) fn checkpoint_name(segment: &str) -> String {
    format!("{segment}{CHECKPOINT_SUFFIX}")
}

/// Reads the note beside a segment, if there is one.
pub(crate) fn read_checkpoint(
    directory: &LogDirectory,
    segment: &str,
) -> Result<Option<String>, EvidenceError> {
    match directory.read(&checkpoint_name(segment), NOTE_BYTES_MAX as u64) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Appends a tombstone in one write, so that several processes can do so at the same time.
pub(crate) fn append_tombstone(directory: &LogDirectory, note: &str) -> Result<(), EvidenceError> {
    use std::io::Write as _;

    let failure = |error: std::io::Error| RecordError::file(TOMBSTONES, error);
    let mut file = directory.append_file(TOMBSTONES)?;
    // The line end in front separates it from one that a crash has torn.
    let line = format!("\n{}\n", serde_json::Value::from(note));
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(failure)?;
    Ok(())
}

/// Reads the tombstones. Each other line is returned as its number, counted from 1.
pub(crate) fn read_tombstones(
    directory: &LogDirectory,
    key: &VerifierKey,
) -> Result<Vec<Result<LogCheckpoint, u64>>, EvidenceError> {
    let file = match directory.open_file(TOMBSTONES) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let open = |(line, number): (Vec<u8>, u64)| {
        let note: String = serde_json::from_slice(&line).map_err(|_| number)?;
        LogCheckpoint::open_as(&note, CheckpointPurpose::Tombstone, key).map_err(|_| number)
    };
    let (mut reader, mut tombstones) = (BufReader::new(file), Vec::new());
    for number in 1.. {
        let mut line = Vec::new();
        let read = (&mut reader).take(NOTE_BYTES_MAX as u64).read_until(b'\n', &mut line);
        if read.map_err(|error| RecordError::file(TOMBSTONES, error))? == 0
            || tombstones.len() >= TOMBSTONES_MAX
        {
            break;
        }
        if line.ends_with(b"\n") {
            line.pop();
        }
        if !line.is_empty() {
            tombstones.push(open((line, number)));
        }
    }
    Ok(tombstones)
}

/// Returns true if a text can be the name of a segment, and thus the start of a file name.
pub(crate) fn is_segment(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty()
        && text.len() <= SEGMENT_BYTES_MAX
        && !text.starts_with('.')
        && text.chars().all(is_plain)
}

pub(crate) fn encode_hash(hash: &TreeHash) -> String {
    STANDARD.encode(hash.as_bytes())
}

pub(crate) fn decode_hash(text: &str) -> Option<TreeHash> {
    STANDARD.decode(text).ok()?.try_into().ok().map(TreeHash::new)
}

/// Parses a decimal number without sign and leading zeros, as the specification demands.
fn parse_size(text: &str) -> Option<u64> {
    text.parse().ok().filter(|size: &u64| size.to_string() == text)
}
