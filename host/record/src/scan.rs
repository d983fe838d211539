//! Reads one segment from its start to its end: line numbers, Merkle tree, and the heads of other
//! segments. Each line is read once; only a few roots are kept, whatever the number of lines.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::checkpoint::{LogCheckpoint, is_segment, read_checkpoint};
use crate::finding::{FindingKind, LogFinding};
use crate::heads::{HEADS_START, parse_heads};
use crate::merkle::{TreeAccumulator, TreeHash};
use crate::note::VerifierKey;
use crate::segments::{CLOSE_START, SegmentFile};

/// Maximum number of findings that are kept per segment.
const FINDINGS_MAX: usize = 100;
/// Maximum number of heads that are kept per segment. A server with a checkpoint per minute has
/// a few thousand in a day.
const HEADS_MAX: usize = 65_536;
/// Maximum bytes of a segment, compressed or not, so that a small file cannot keep a reader busy
/// for hours. Segments are rotated at a fraction of it.
const SEGMENT_BYTES_MAX: u64 = 16 * 1024 * 1024 * 1024;

/// Result of reading one segment.
#[derive(Debug, Default)]
pub(crate) struct SegmentScan {
    pub(crate) segment: String,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) tree: TreeAccumulator,
    /// Roots by size: behind each `heads` line, at the end, and at sizes that were asked for.
    pub(crate) roots: BTreeMap<u64, TreeHash>,
    /// Heads of other segments, with the number of their line from 1.
    pub(crate) heads: Vec<(u64, LogCheckpoint)>,
    pub(crate) has_torn_tail: bool,
    pub(crate) is_closed: bool,
    /// Note and state of the file beside the segment, if it is valid.
    pub(crate) checkpoint: Option<(String, LogCheckpoint)>,
    pub(crate) has_checkpoint_file: bool,
    pub(crate) findings: Vec<LogFinding>,
    pub(crate) findings_left_out: u64,
    next: u64,
}

/// Part of a line that all lines have.
#[derive(Deserialize)]
struct NumberedLine {
    n: u64,
}

impl SegmentScan {
    /// Reads a segment. None if it does not exist, such as one that was pruned meanwhile.
    pub(crate) fn read(
        file: &SegmentFile,
        key: &VerifierKey,
        sizes: BTreeSet<u64>,
    ) -> Option<Self> {
        let scan = Self::read_once(file, key, sizes.clone())?;
        // A process that has just started writes its first checkpoint behind its first lines.
        let is_new = !scan.has_checkpoint_file && has_checkpoint(file);
        if is_new { Self::read_once(file, key, sizes) } else { Some(scan) }
    }

    fn read_once(file: &SegmentFile, key: &VerifierKey, mut sizes: BTreeSet<u64>) -> Option<Self> {
        let mut scan = Self { segment: file.stem().to_owned(), ..Self::default() };
        // Before the lines: a checkpoint that a running process writes meanwhile is newer.
        scan.read_checkpoint(file, key);
        sizes.extend(scan.checkpoint.iter().map(|(_, state)| state.size));
        match scan.read_lines(file, &sizes) {
            Err(error) if error.is_not_found() => return None,
            Err(error) => scan.find(None, FindingKind::Unreadable(error.to_string())),
            Ok(()) => {}
        }
        if scan.has_torn_tail && scan.is_closed {
            scan.find(Some(scan.lines + 1), FindingKind::Torn);
        }
        scan.roots.insert(scan.lines, scan.tree.root());
        Some(scan)
    }

    fn read_checkpoint(&mut self, file: &SegmentFile, key: &VerifierKey) {
        if !is_segment(file.stem()) {
            return self.find(None, FindingKind::InvalidCheckpoint("invalid name".to_owned()));
        }
        let opened = match read_checkpoint(file.directory(), file.stem()) {
            Ok(None) => return,
            Ok(Some(note)) => LogCheckpoint::open(&note, key).map(|state| (note, state)),
            Err(error) => Err(error),
        };
        self.has_checkpoint_file = true;
        match opened {
            Ok((note, state)) if state.segment == self.segment => {
                self.checkpoint = Some((note, state));
            }
            Ok((_, state)) => {
                let error = format!("it is that of `{}`", state.segment);
                self.find(None, FindingKind::InvalidCheckpoint(error));
            }
            Err(error) => self.find(None, FindingKind::InvalidCheckpoint(error.to_string())),
        }
    }

    fn read_lines(
        &mut self,
        file: &SegmentFile,
        sizes: &BTreeSet<u64>,
    ) -> Result<(), crate::RecordError> {
        let mut lines = file.lines()?;
        while let Some(line) = lines.next_line()? {
            if self.has_torn_tail {
                // It was too long, not torn.
                self.has_torn_tail = false;
                self.find(Some(self.lines + 1), FindingKind::Malformed);
            }
            self.bytes += line.bytes.len() as u64 + 1;
            if self.bytes > SEGMENT_BYTES_MAX {
                self.find(None, FindingKind::Unreadable("it is larger than 16 GiB".to_owned()));
                break;
            }
            if !line.is_whole {
                self.has_torn_tail = true;
                continue;
            }
            self.add(line.bytes, sizes);
            if self.is_closed {
                self.find(Some(self.lines), FindingKind::AfterClose);
            }
            self.is_closed |= line.bytes.starts_with(CLOSE_START);
        }
        Ok(())
    }

    fn add(&mut self, line: &[u8], sizes: &BTreeSet<u64>) {
        self.tree.append(line);
        self.lines += 1;
        self.check_number(line);
        let is_heads = line.starts_with(HEADS_START);
        if is_heads {
            self.add_heads(line);
        }
        let is_asked_for = sizes.contains(&self.lines);
        if is_asked_for || (is_heads && self.roots.len() < HEADS_MAX) {
            self.roots.insert(self.lines, self.tree.root());
        }
    }

    fn check_number(&mut self, line: &[u8]) {
        let Ok(NumberedLine { n: found }) = serde_json::from_slice(line) else {
            self.next = self.next.saturating_add(1);
            return self.find(Some(self.lines), FindingKind::Malformed);
        };
        let expected = std::mem::replace(&mut self.next, found.saturating_add(1));
        if found > expected {
            self.find(Some(self.lines), FindingKind::Gap { expected, found });
        } else if found < expected {
            self.find(Some(self.lines), FindingKind::Repeat { expected, found });
        }
    }

    fn add_heads(&mut self, line: &[u8]) {
        match parse_heads(line) {
            Some(heads) if self.heads.len() + heads.len() <= HEADS_MAX => {
                self.heads.extend(heads.into_iter().map(|head| (self.lines, head)));
            }
            _ => self.find(Some(self.lines), FindingKind::Malformed),
        }
    }

    pub(crate) fn find(&mut self, line: Option<u64>, kind: FindingKind) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(LogFinding { segment: self.segment.clone(), line, kind });
        } else {
            self.findings_left_out += 1;
        }
    }
}

fn has_checkpoint(file: &SegmentFile) -> bool {
    read_checkpoint(file.directory(), file.stem()).is_ok_and(|note| note.is_some())
}
