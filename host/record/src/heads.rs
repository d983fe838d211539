//! Lines that tie the segments of a log together: a `heads` line states the newest checkpoints of
//! other segments, so that a checkpoint of this segment covers theirs.
//!
//! The folder `heads` has an empty file `<segment>@<size>` for each checkpoint that no other
//! segment covers yet. A process lists them, writes their states into its own segment, and removes
//! them once its own checkpoint is on disk. Names contain the size, so that a process never removes
//! the mark of a newer checkpoint, and no lock is needed. A crash leaves a mark too many, never too
//! few.

use serde::{Deserialize, Serialize};

use crate::checkpoint::{LogCheckpoint, decode_hash, encode_hash, is_segment, read_checkpoint};
use crate::directory::LogDirectory;
use crate::note::VerifierKey;
use crate::{RecordError, UtcTime};

/// Kind of the lines that list the heads of other segments.
pub(crate) const HEADS_KIND: &str = "heads";
/// Start of these lines, for a search before they are parsed.
pub(crate) const HEADS_START: &[u8] = br#"{"v":1,"kind":"heads","#;
/// Maximum number of heads in a line: 40 KB. More are covered by the lines that follow.
const HEADS_MAX: usize = 256;
/// Maximum number of marks that are considered for a line.
const MARKS_MAX: usize = 4096;
const FOLDER: &str = "heads";

/// Mark of a checkpoint that no other segment covers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeadMark {
    pub(crate) segment: String,
    pub(crate) size: u64,
}

#[derive(Serialize, Deserialize)]
struct HeadsLine<'a> {
    v: u8,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
    n: u64,
    at: UtcTime,
    heads: Vec<HeadEntry>,
}

#[derive(Serialize, Deserialize)]
struct HeadEntry {
    segment: String,
    size: u64,
    root: String,
}

impl HeadMark {
    fn file_name(&self) -> String {
        format!("{FOLDER}/{}@{}", self.segment, self.size)
    }

    fn parse(name: &str) -> Option<Self> {
        let (segment, size) = name.rsplit_once('@')?;
        let size = size.parse().ok()?;
        is_segment(segment).then(|| Self { segment: segment.to_owned(), size })
    }

    /// Creates the mark. One that exists is fine.
    pub(crate) fn create(&self, directory: &LogDirectory) -> Result<(), RecordError> {
        directory.create_folder(FOLDER)?;
        directory.append_file(&self.file_name()).map(drop)
    }

    /// Removes the mark. One that does not exist is fine.
    pub(crate) fn remove(&self, directory: &LogDirectory) -> Result<(), RecordError> {
        directory.remove(&self.file_name())
    }

    /// Lists marks, the oldest segments first.
    pub(crate) fn list(directory: &LogDirectory) -> Result<Vec<Self>, RecordError> {
        let names = directory.names(FOLDER)?;
        let mut marks: Vec<_> = names.iter().filter_map(|name| Self::parse(name)).collect();
        marks.sort();
        Ok(marks)
    }
}

/// Reads the checkpoints that no other segment covers, without that of `segment` itself, and
/// returns them with the marks to remove once this segment's checkpoint covers them. Checkpoints
/// without a valid signature are passed over: `verify` reports them.
pub(crate) fn uncovered(
    directory: &LogDirectory,
    segment: &str,
    key: &VerifierKey,
) -> Result<(Vec<LogCheckpoint>, Vec<HeadMark>), RecordError> {
    let (mut heads, mut marks): (Vec<LogCheckpoint>, Vec<HeadMark>) = (Vec::new(), Vec::new());
    for mark in HeadMark::list(directory)?.into_iter().take(MARKS_MAX) {
        if mark.segment == segment {
            continue;
        }
        if let Some(last) = heads.last()
            && last.segment == mark.segment
        {
            marks.extend((mark.size <= last.size).then_some(mark));
            continue;
        }
        if heads.len() == HEADS_MAX {
            break;
        }
        let note = read_checkpoint(directory, &mark.segment).ok().flatten();
        let head = note.and_then(|note| LogCheckpoint::open(&note, key).ok());
        let is_head = |head: &LogCheckpoint| head.segment == mark.segment && head.size >= mark.size;
        if let Some(head) = head.filter(is_head) {
            heads.push(head);
            marks.push(mark);
        }
    }
    Ok((heads, marks))
}

/// Writes a `heads` line, without its line end.
pub(crate) fn heads_line(number: u64, heads: &[LogCheckpoint]) -> Vec<u8> {
    let entry = |head: &LogCheckpoint| HeadEntry {
        segment: head.segment.clone(),
        size: head.size,
        root: encode_hash(&head.root),
    };
    let heads = heads.iter().map(entry).collect();
    let line = HeadsLine { v: 1, kind: HEADS_KIND.into(), n: number, at: UtcTime::now(), heads };
    serde_json::to_vec(&line).unwrap_or_default()
}

/// Parses a `heads` line; none if it is malformed or has too many entries.
pub(crate) fn parse_heads(line: &[u8]) -> Option<Vec<LogCheckpoint>> {
    let line: HeadsLine<'_> = serde_json::from_slice(line).ok()?;
    if line.kind != HEADS_KIND || line.heads.len() > HEADS_MAX {
        return None;
    }
    let head = |HeadEntry { segment, size, root }| {
        let root = decode_hash(&root)?;
        is_segment(&segment).then_some(LogCheckpoint { segment, size, root })
    };
    line.heads.into_iter().map(head).collect()
}
