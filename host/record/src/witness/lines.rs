//! Lines of the file `witnessed`: segment, number of lines and root, of each checkpoint.

use std::collections::BTreeMap;
#[cfg(feature = "witness")]
use std::io::Write as _;

use crate::EvidenceError;
#[cfg(feature = "witness")]
use crate::RecordError;
#[cfg(feature = "witness")]
use crate::checkpoint::{CHECKPOINT_SUFFIX, encode_hash, read_checkpoint};
use crate::checkpoint::{LogCheckpoint, decode_hash, is_segment};
use crate::directory::LogDirectory;
#[cfg(feature = "witness")]
use crate::directory::lock;
use crate::merkle::{TreeAccumulator, TreeHash};
#[cfg(feature = "witness")]
use crate::note::SigningKey;

/// File with a line for each checkpoint that witnesses are to sign.
pub(crate) const WITNESSED: &str = "witnessed";
/// Maximum bytes of the file: half a million checkpoints, one a minute for a year.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Lines that witnesses sign, in order.
#[derive(Debug, Default)]
pub(crate) struct WitnessedLines {
    leaves: Vec<TreeHash>,
    states: Vec<Option<LogCheckpoint>>,
    /// True if the last line has no end: a process was killed while it wrote.
    is_torn: bool,
}

impl WitnessedLines {
    /// Reads the lines; none if there is no file.
    pub(crate) fn read(directory: &LogDirectory) -> Result<Self, EvidenceError> {
        let bytes = match directory.read(WITNESSED, BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.is_not_found() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let mut lines = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => lines.add(line),
                None => lines.is_torn = true,
            }
        }
        Ok(lines)
    }

    /// Adds the checkpoints of a log that have no line yet, and returns all lines.
    #[cfg(feature = "witness")]
    pub(crate) fn update(
        directory: &LogDirectory,
        key: &SigningKey,
    ) -> Result<Self, EvidenceError> {
        let failure = |error: std::io::Error| RecordError::file(WITNESSED, error);
        let mut file = directory.append_file(WITNESSED)?;
        // One process at a time, so that none adds the same checkpoint.
        lock(&file);
        let mut lines = Self::read(directory)?;
        let known = lines.newest(u64::MAX);
        let mut text = if lines.is_torn { "\n".to_owned() } else { String::new() };
        let mut names = directory.names(".")?;
        names.sort();
        for name in names {
            let Some(segment) = name.strip_suffix(CHECKPOINT_SUFFIX) else { continue };
            let note = read_checkpoint(directory, segment)?;
            let state = note.and_then(|note| LogCheckpoint::open(&note, key.verifier()).ok());
            let Some(LogCheckpoint { segment, size, root }) = state else { continue };
            if known.get(&segment).is_none_or(|known| known.size < size) {
                text.push_str(&format!("{segment} {size} {}\n", encode_hash(&root)));
            }
        }
        if !text.is_empty() {
            file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(failure)?;
            lines = Self::read(directory)?;
        }
        Ok(lines)
    }

    fn add(&mut self, line: &[u8]) {
        self.leaves.push(TreeHash::leaf(line));
        self.states.push(parse(line));
    }

    /// Returns the number of lines.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.leaves.len()).unwrap_or(u64::MAX)
    }

    /// Returns the root of the tree over the first `size` lines, if there are that many.
    pub(crate) fn root(&self, size: u64) -> Option<TreeHash> {
        let leaves = self.leaves.get(..usize::try_from(size).ok()?)?;
        let mut tree = TreeAccumulator::default();
        leaves.iter().for_each(|leaf| tree.append_hash(*leaf));
        Some(tree.root())
    }

    /// Returns the proof that the first `size` lines are the start of all lines.
    #[cfg(feature = "witness")]
    pub(crate) fn proof(&self, size: u64) -> Option<Vec<TreeHash>> {
        crate::merkle::consistency_path(&self.leaves, usize::try_from(size).ok()?)
    }

    /// Returns the newest state of each segment in the first `size` lines.
    pub(crate) fn newest(&self, size: u64) -> BTreeMap<String, LogCheckpoint> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let states = self.states.iter().take(size).flatten();
        states.map(|state| (state.segment.clone(), state.clone())).collect()
    }
}

fn parse(line: &[u8]) -> Option<LogCheckpoint> {
    let mut parts = std::str::from_utf8(line).ok()?.split(' ');
    let (segment, size, root) = (parts.next()?, parts.next()?, parts.next()?);
    let state = LogCheckpoint {
        segment: segment.to_owned(),
        size: size.parse().ok()?,
        root: decode_hash(root)?,
    };
    (is_segment(segment) && parts.next().is_none()).then_some(state)
}
