//! Seals a segment while it is written: keeps its Merkle tree, and signs checkpoints.
//!
//! The writer hands over every line that it writes, and asks for a checkpoint when the segment
//! begins, every 60 seconds, at rotation and at close. A checkpoint is signed only if calls were
//! written since the last one, so that two idle processes do not keep each other awake.

use std::io::Write as _;
use std::sync::Arc;

use crate::RecordError;
use crate::checkpoint::{
    CHECKPOINT_SUFFIX, CheckpointPurpose, EvidenceError, LogCheckpoint, append_tombstone,
    read_checkpoint,
};
use crate::directory::{LogDirectory, random};
use crate::heads::{HeadMark, heads_line, uncovered};
use crate::merkle::{TreeAccumulator, TreeHash};
use crate::note::SigningKey;

/// Merkle tree and checkpoints of the segment that a process writes.
#[derive(Debug)]
pub(crate) struct Sealer {
    directory: LogDirectory,
    segment: String,
    key: Arc<SigningKey>,
    tree: TreeAccumulator,
    /// Number of lines without those that this module made.
    lines_of_writer: u64,
    sealed_lines_of_writer: Option<u64>,
    mark: Option<HeadMark>,
    covered: Vec<HeadMark>,
}

impl Sealer {
    /// Starts the tree of a segment without lines.
    pub(crate) fn new(directory: &LogDirectory, segment: &str, key: Arc<SigningKey>) -> Self {
        Self {
            directory: directory.clone(),
            segment: segment.to_owned(),
            key,
            tree: TreeAccumulator::default(),
            lines_of_writer: 0,
            sealed_lines_of_writer: None,
            mark: None,
            covered: Vec::new(),
        }
    }

    /// Adds a line, given without its line end.
    pub(crate) fn append(&mut self, line: &[u8]) {
        self.tree.append(line);
        self.lines_of_writer += 1;
    }

    /// Returns true if lines were written since the last checkpoint, so that another one is useful.
    pub(crate) fn is_due(&self) -> bool {
        self.sealed_lines_of_writer != Some(self.lines_of_writer)
    }

    /// Makes the line that covers the checkpoints of other segments, adds it to the tree, and
    /// returns it without its line end. The writer must write it as line `number`. It stands in
    /// front of each checkpoint, even without heads: `verify` remembers the roots behind it.
    pub(crate) fn append_heads(&mut self, number: u64) -> Result<Vec<u8>, EvidenceError> {
        let (heads, marks) = uncovered(&self.directory, &self.segment, self.key.verifier())?;
        let line = heads_line(number, &heads);
        self.covered.extend(marks);
        self.tree.append(&line);
        Ok(line)
    }

    /// Signs the state of the segment and replaces the file beside it. All lines must be on disk
    /// already: after a power failure, a checkpoint ahead of its segment looks like tampering.
    pub(crate) fn checkpoint(&mut self) -> Result<String, EvidenceError> {
        let (size, root) = (self.tree.size(), self.tree.root());
        let state = LogCheckpoint { segment: self.segment.clone(), size, root };
        let note = state.sign(CheckpointPurpose::State, &self.key)?;
        replace(&self.directory, &format!("{}{CHECKPOINT_SUFFIX}", self.segment), &note)?;
        self.sealed_lines_of_writer = Some(self.lines_of_writer);
        let mark = HeadMark { segment: self.segment.clone(), size };
        mark.create(&self.directory)?;
        if let Some(old) = self.mark.replace(mark.clone())
            && old != mark
        {
            old.remove(&self.directory)?;
        }
        for covered in std::mem::take(&mut self.covered) {
            covered.remove(&self.directory)?;
        }
        Ok(note)
    }
}

/// Writes a file under a temporary name, waits for the disk, and renames it.
fn replace(directory: &LogDirectory, name: &str, text: &str) -> Result<(), RecordError> {
    let suffix = data_encoding::HEXLOWER.encode(&random::<4>()?);
    let temporary = format!("{name}.{suffix}.tmp");
    let mut file = directory.create_file(&temporary)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    written
        .map_err(|error| RecordError::file(name, error))
        .and_then(|()| directory.rename(&temporary, name))
        .inspect_err(|_| directory.remove(&temporary).unwrap_or(()))
}

/// Signs that retention removes a segment, and removes its checkpoint. The caller removes the
/// segment afterwards: a crash in between leaves a segment that `verify` still accepts.
pub(crate) fn record_pruned(
    directory: &LogDirectory,
    segment: &str,
    key: &SigningKey,
) -> Result<(), EvidenceError> {
    let note = read_checkpoint(directory, segment)?;
    let state = note.and_then(|note| LogCheckpoint::open(&note, key.verifier()).ok());
    let state = state.filter(|state| state.segment == segment).unwrap_or(LogCheckpoint {
        segment: segment.to_owned(),
        size: 0,
        root: TreeHash::empty(),
    });
    append_tombstone(directory, &state.sign(CheckpointPurpose::Tombstone, key)?)?;
    directory.remove(&format!("{segment}{CHECKPOINT_SUFFIX}"))?;
    for mark in HeadMark::list(directory)?.into_iter().filter(|mark| mark.segment == segment) {
        mark.remove(directory)?;
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
