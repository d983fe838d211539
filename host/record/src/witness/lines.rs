//! Lines of the file `witnessed`: segment, number of lines and root, of each checkpoint.
//!
//! Lines that say nothing more are removed, and lines `- <height> <root>` stand for them: the root
//! of a complete subtree of 2^height lines.

use std::collections::BTreeMap;
#[cfg(feature = "witness")]
use std::collections::BTreeSet;
#[cfg(feature = "witness")]
use std::ops::Range;

use crate::EvidenceError;
#[cfg(feature = "witness")]
use crate::RecordError;
#[cfg(feature = "witness")]
use crate::checkpoint::{CHECKPOINT_SUFFIX, encode_hash, read_checkpoint};
use crate::checkpoint::{LogCheckpoint, decode_hash, is_segment};
use crate::directory::LogDirectory;
use crate::merkle::{SparseTree, TreeHash};
#[cfg(feature = "witness")]
use crate::note::SigningKey;
#[cfg(feature = "witness")]
use crate::verify::last_states;
#[cfg(feature = "witness")]
use crate::witness::note::signed_sizes;

/// File with a line for each checkpoint that witnesses are to sign.
pub(crate) const WITNESSED: &str = "witnessed";
/// File that a process locks while it changes the lines.
#[cfg(feature = "witness")]
const LOCK: &str = "witnessed.lock";
/// Maximum bytes of the file: half a million lines.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Number of lines above which those that say nothing more are removed: 2 MB.
#[cfg(feature = "witness")]
const LINES_MAX: usize = 20_000;
/// Number of the newest lines that stay in any case, because a witness may have signed a state
/// among them whose signature was not stored.
#[cfg(feature = "witness")]
const LINES_RECENT: usize = 10_000;

/// Lines that witnesses sign, in order.
#[derive(Debug, Default)]
pub(crate) struct WitnessedLines {
    tree: SparseTree,
    lines: Vec<WitnessedLine>,
    /// True if the last line has no end: a process was killed while it wrote.
    is_torn: bool,
    /// True if a removed subtree is not where it can be.
    is_invalid: bool,
}

/// Line that is not removed.
#[derive(Debug)]
struct WitnessedLine {
    /// Position among all lines.
    index: usize,
    #[cfg(feature = "witness")]
    bytes: Vec<u8>,
    /// Checkpoint; `None` for a line that a crash has torn.
    state: Option<LogCheckpoint>,
}

impl WitnessedLines {
    /// Reads the lines; none if there is no file.
    pub(crate) fn read(directory: &LogDirectory) -> Result<Self, EvidenceError> {
        match directory.read(WITNESSED, BYTES_MAX) {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(error) if error.is_not_found() => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    fn parse(bytes: &[u8]) -> Self {
        let mut lines = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_suffix(b"\n") {
                Some(line) => lines.add(line),
                None => lines.is_torn = true,
            }
        }
        lines
    }

    /// Adds the checkpoints of a log that have no line yet, and returns all lines.
    #[cfg(feature = "witness")]
    pub(crate) fn update(
        directory: &LogDirectory,
        key: &SigningKey,
    ) -> Result<Self, EvidenceError> {
        use std::io::Write as _;

        let failure = |error: std::io::Error| RecordError::file(WITNESSED, error);
        // One process at a time, so that none adds the same checkpoint. A file system without locks
        // works as well.
        let lock = directory.append_file(LOCK)?;
        let _ = lock.lock();
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
            let mut file = directory.append_file(WITNESSED)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).map_err(failure)?;
            lines = Self::read(directory)?;
        }
        if lines.lines.len() > LINES_MAX {
            let tombstones = last_states(directory, key.verifier(), |_| {})?;
            let is_removed = |state: &LogCheckpoint| {
                tombstones.get(&state.segment).is_some_and(|last| last.size >= state.size)
            };
            if let Some(bytes) =
                lines.compacted(&signed_sizes(directory)?, is_removed, LINES_RECENT)
            {
                directory.write_synced(WITNESSED, &bytes)?;
                lines = Self::parse(&bytes);
            }
        }
        Ok(lines)
    }

    /// Returns the file without lines that say nothing more: those of segments that retention has
    /// removed, and those that a newer line replaces in each of the states `signed` and at the end.
    /// The newest `recent` lines stay. `None` if nothing can be removed.
    #[cfg(feature = "witness")]
    fn compacted(
        &self,
        signed: &BTreeSet<usize>,
        is_removed: impl Fn(&LogCheckpoint) -> bool,
        recent: usize,
    ) -> Option<Vec<u8>> {
        let old = self.lines.len().checked_sub(recent)?;
        let mut needed = BTreeSet::new();
        for size in signed.iter().copied().chain([self.tree.size()]) {
            let within = self.lines.iter().take_while(|line| line.index < size);
            let newest =
                within.filter_map(|line| Some((&line.state.as_ref()?.segment, line.index)));
            needed.extend(newest.collect::<BTreeMap<_, _>>().into_values());
        }
        let stays = |position: usize, line: &WitnessedLine| {
            let is_removed = line.state.as_ref().is_none_or(&is_removed);
            position >= old || (needed.contains(&line.index) && !is_removed)
        };
        let (mut bytes, mut from) = (Vec::new(), 0);
        for (position, line) in self.lines.iter().enumerate() {
            if stays(position, line) {
                self.add_removed(from..line.index, signed, &mut bytes)?;
                bytes.extend_from_slice(&line.bytes);
                bytes.push(b'\n');
                from = line.index + 1;
            }
        }
        self.add_removed(from..self.tree.size(), signed, &mut bytes)?;
        Some(bytes)
    }

    /// Adds the lines that stand for removed ones, so that the states `signed` can still be
    /// computed.
    #[cfg(feature = "witness")]
    fn add_removed(
        &self,
        range: Range<usize>,
        signed: &BTreeSet<usize>,
        bytes: &mut Vec<u8>,
    ) -> Option<()> {
        let ends = signed.range(range.start..range.end).copied().chain([range.end]);
        let mut from = range.start;
        for end in ends {
            for (height, root) in self.tree.subtrees(from..end)? {
                bytes.extend_from_slice(format!("- {height} {}\n", encode_hash(&root)).as_bytes());
            }
            from = end;
        }
        Some(())
    }

    fn add(&mut self, line: &[u8]) {
        let index = self.tree.size();
        if let Some((height, root)) = parse_removed(line) {
            self.is_invalid |= !self.tree.append(height, root);
            return;
        }
        self.tree.append(0, TreeHash::leaf(line));
        self.lines.push(WitnessedLine {
            index,
            #[cfg(feature = "witness")]
            bytes: line.to_vec(),
            state: parse(line),
        });
    }

    /// Returns the number of lines, with those that are removed.
    pub(crate) fn len(&self) -> u64 {
        u64::try_from(self.tree.size()).unwrap_or(u64::MAX)
    }

    /// Returns the root of the tree over the first `size` lines, if it can be computed.
    pub(crate) fn root(&self, size: u64) -> Option<TreeHash> {
        if self.is_invalid {
            return None;
        }
        self.tree.root(0..usize::try_from(size).ok()?)
    }

    /// Returns the proof that the first `size` lines are the start of all lines.
    #[cfg(feature = "witness")]
    pub(crate) fn proof(&self, size: u64) -> Option<Vec<TreeHash>> {
        self.tree.consistency_path(usize::try_from(size).ok()?)
    }

    /// Returns the newest state of each segment in the first `size` lines.
    pub(crate) fn newest(&self, size: u64) -> BTreeMap<String, LogCheckpoint> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let lines = self.lines.iter().take_while(|line| line.index < size);
        let states = lines.filter_map(|line| line.state.as_ref());
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

/// Returns height and root of removed lines.
fn parse_removed(line: &[u8]) -> Option<(u32, TreeHash)> {
    let (height, root) = std::str::from_utf8(line).ok()?.strip_prefix("- ")?.split_once(' ')?;
    Some((height.parse().ok()?, decode_hash(root)?))
}
