//! Seals a segment while it is written: keeps its Merkle tree, and signs checkpoints.
//!
//! The writer hands over every line that it writes, and asks for a checkpoint when the segment
//! begins, every 60 seconds, at rotation and at close. A checkpoint is signed only if calls were
//! written since the last one, so that two idle processes do not keep each other awake.

use std::sync::Arc;

use crate::RecordError;
use crate::checkpoint::{
    CheckpointPurpose, EvidenceError, LogCheckpoint, append_tombstone, checkpoint_name,
    read_checkpoint,
};
use crate::directory::LogDirectory;
use crate::heads::{HEADS_START, HeadMark, heads_line, uncovered};
use crate::merkle::{TreeAccumulator, TreeHash};
use crate::note::SigningKey;
use crate::segments::SegmentFile;

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
    /// Marks of the newest `heads` line, which may not have been written.
    offered: Vec<HeadMark>,
    /// Marks of the lines that were written, to be removed with the next checkpoint.
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
            offered: Vec::new(),
            covered: Vec::new(),
        }
    }

    /// Returns the directory of the log.
    pub(crate) fn directory(&self) -> &LogDirectory {
        &self.directory
    }

    /// Adds a line, given without its line end.
    pub(crate) fn append(&mut self, line: &[u8]) {
        self.tree.append(line);
        if line.starts_with(HEADS_START) {
            self.covered.append(&mut self.offered);
        } else {
            self.lines_of_writer += 1;
        }
    }

    /// Returns true if lines were written since the last checkpoint, so that another one is useful.
    pub(crate) fn is_due(&self) -> bool {
        self.sealed_lines_of_writer != Some(self.lines_of_writer)
    }

    /// Returns the line that covers the checkpoints of other segments, without its line end. The
    /// writer must write it as line `number` and then append it like any other. It stands in front
    /// of each checkpoint, even without heads: `verify` remembers the roots behind it.
    pub(crate) fn heads_line(&mut self, number: u64) -> Vec<u8> {
        // Nothing is lost without them: the marks stay for the next checkpoint.
        let others = uncovered(&self.directory, &self.segment, self.key.verifier());
        let (heads, marks) = others.unwrap_or_default();
        self.offered = marks;
        heads_line(number, &heads)
    }

    /// Signs the state of the segment and replaces the file beside it. All lines must be on disk
    /// already: after a power failure, a checkpoint ahead of its segment looks like tampering.
    pub(crate) fn checkpoint(&mut self) -> Result<String, EvidenceError> {
        let (size, root) = (self.tree.size(), self.tree.root());
        let state = LogCheckpoint { segment: self.segment.clone(), size, root };
        let (note, mark) = publish(&self.directory, &state, &self.key)?;
        self.sealed_lines_of_writer = Some(self.lines_of_writer);
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

    /// Removes what the sealer wrote, because the segment could not be started and is removed.
    pub(crate) fn discard(&self) {
        let _ = remove_checkpoint(&self.directory, &self.segment);
    }
}

/// Removes the checkpoint and the marks of a segment.
fn remove_checkpoint(directory: &LogDirectory, segment: &str) -> Result<(), RecordError> {
    directory.remove(&checkpoint_name(segment))?;
    let marks = HeadMark::list(directory)?.into_iter();
    marks.filter(|mark| mark.segment == segment).try_for_each(|mark| mark.remove(directory))
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
    Ok(remove_checkpoint(directory, segment)?)
}

/// Seals the last lines of segments whose process was killed, so that later changes of them show.
/// A segment that does not match its checkpoint stays as it is, for `verify` to report.
pub(crate) fn seal_orphans(
    directory: &LogDirectory,
    key: &SigningKey,
) -> Result<(), EvidenceError> {
    for file in SegmentFile::list(directory)? {
        if may_be_unsealed(directory, &file) {
            match seal_orphan(directory, &file, key) {
                // Another process has compressed or pruned it.
                Err(EvidenceError::Record(error)) if error.is_not_found() => {}
                sealed => sealed?,
            }
        }
    }
    Ok(())
}

/// Returns true if a segment was written after its checkpoint by a process that is gone.
fn may_be_unsealed(directory: &LogDirectory, file: &SegmentFile) -> bool {
    if file.is_compressed() {
        return false;
    }
    let checkpoint = directory.facts(&checkpoint_name(file.stem()));
    let segment = directory.facts(&file.name());
    // The times have seconds, so a process that was killed at once is read once more.
    let is_newer =
        segment.zip(checkpoint).is_some_and(|(lines, sealed)| lines.modified >= sealed.modified);
    is_newer && !file.is_live()
}

fn seal_orphan(
    directory: &LogDirectory,
    file: &SegmentFile,
    key: &SigningKey,
) -> Result<(), EvidenceError> {
    let note = read_checkpoint(directory, file.stem())?;
    let old = note.and_then(|note| LogCheckpoint::open(&note, key.verifier()).ok());
    let Some(old) = old.filter(|old| old.segment == file.stem()) else { return Ok(()) };
    let (mut tree, mut root, mut lines) = (TreeAccumulator::default(), None, file.lines()?);
    while let Some(line) = lines.next_line()?.filter(|line| line.is_whole) {
        tree.append(line.bytes);
        if tree.size() == old.size {
            root = Some(tree.root());
        }
    }
    if root != Some(old.root) {
        return Ok(());
    }
    if tree.size() == old.size {
        // Written in the same second. A later time keeps other processes from reading it again.
        directory.touch(&checkpoint_name(&old.segment));
        return Ok(());
    }
    let (segment, size) = (old.segment, tree.size());
    let state = LogCheckpoint { segment, size, root: tree.root() };
    publish(directory, &state, key)?;
    HeadMark { segment: state.segment, size: old.size }.remove(directory)?;
    Ok(())
}

/// Signs a state, replaces the file beside the segment, and marks the state as not covered.
fn publish(
    directory: &LogDirectory,
    state: &LogCheckpoint,
    key: &SigningKey,
) -> Result<(String, HeadMark), EvidenceError> {
    let note = state.sign(CheckpointPurpose::State, key)?;
    directory.write_synced(&checkpoint_name(&state.segment), note.as_bytes())?;
    let mark = HeadMark { segment: state.segment.clone(), size: state.size };
    mark.create(directory)?;
    Ok((note, mark))
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
