//! The segment that a process is writing.
//!
//! Lines gather in a buffer, and go to the file in one write. A failed write is undone by cutting
//! the file, so that no torn line stays between whole ones.

use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::directory::{LogDirectory, lock};
use crate::entry::CallLineKind;
use crate::lines::{CloseLine, DropsLine, EventLine, OpenLine};
use crate::note::SigningKey;
use crate::sealer::Sealer;
use crate::segments::OPEN_SUFFIX;
use crate::zone::ZoneMap;
use crate::{CallEntry, EvidenceError, RecordError, UtcTime};

/// Bytes of lines that are gathered for one write.
const BUFFER_BYTES: usize = 256 * 1024;
/// Time after which a segment is replaced.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Time between two checkpoints.
const SEAL_TIME: Duration = Duration::from_secs(60);
/// Longest line that is written with all its lists.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// An open segment.
pub(crate) struct SegmentWriter {
    stem: String,
    /// Holds the lock that shows others that the segment is in use.
    file: File,
    opened: Instant,
    /// Number of the next line.
    next: u64,
    bytes: u64,
    zone: ZoneMap,
    sealer: Sealer,
    sealed: Instant,
    buffer: Vec<u8>,
    /// Ends of the lines in the buffer.
    ends: Vec<usize>,
    buffered: LostRecords,
}

/// Records that were lost because their lines could not be written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LostRecords {
    /// Number of calls that have ended, and of events.
    pub(crate) records: u64,
    /// Number of records that a line had counted as lost before.
    pub(crate) drops: u64,
}

/// A segment that has ended and waits for compression. The file holds its lock.
pub(crate) struct ClosedSegment {
    pub(crate) stem: String,
    pub(crate) zone: ZoneMap,
    pub(crate) _lock: File,
}

impl SegmentWriter {
    /// Creates a segment and writes its first line.
    pub(crate) fn create(
        directory: &LogDirectory,
        process: &str,
        previous: Option<&str>,
        key: &Arc<SigningKey>,
    ) -> Result<Self, EvidenceError> {
        let stem = format!("{}-{}-{process}", UtcTime::now().compact(), std::process::id());
        let name = format!("{stem}{OPEN_SUFFIX}");
        let file = directory.create_file(&name)?;
        lock(&file);
        let now = Instant::now();
        let mut segment = Self {
            sealer: Sealer::new(directory, &stem, Arc::clone(key)),
            stem,
            file,
            opened: now,
            next: 0,
            bytes: 0,
            zone: ZoneMap::default(),
            sealed: now,
            buffer: Vec::new(),
            ends: Vec::new(),
            buffered: LostRecords::default(),
        };
        segment.add(&OpenLine::new(process, previous));
        match segment.seal(now) {
            Ok(()) => Ok(segment),
            Err(error) => {
                // On a full disk, each attempt would leave another file.
                segment.sealer.discard();
                directory.remove(&name)?;
                Err(error)
            }
        }
    }

    pub(crate) fn stem(&self) -> &str {
        &self.stem
    }

    /// Returns the number of the next line.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Adds the line of an event.
    pub(crate) fn add_event(&mut self, line: &EventLine) {
        self.add(line);
        self.buffered.records += 1;
    }

    /// Adds the line that counts lost records.
    pub(crate) fn add_drops(&mut self, count: u64) {
        self.add(&DropsLine::new(self.next, count));
        self.buffered.drops += count;
    }

    /// Adds a line to the buffer.
    fn add<T: Serialize>(&mut self, line: &T) {
        let start = self.buffer.len();
        if serde_json::to_writer(&mut self.buffer, line).is_err() {
            self.buffer.truncate(start);
            return;
        }
        self.end_line();
    }

    /// Adds a line about a call. Lists that make it too long are left out.
    pub(crate) fn add_call(&mut self, entry: &mut CallEntry) {
        entry.n = self.next;
        let start = self.buffer.len();
        let mut is_written = serde_json::to_writer(&mut self.buffer, &*entry).is_ok();
        if self.buffer.len() - start > LINE_BYTES_MAX {
            self.buffer.truncate(start);
            let files = std::mem::take(&mut entry.files).len();
            entry.files_left_out += u64::try_from(files).unwrap_or(u64::MAX);
            entry.refused.clear();
            entry.hosts.clear();
            is_written = serde_json::to_writer(&mut self.buffer, &*entry).is_ok();
        }
        if is_written {
            self.end_line();
            self.zone.add(entry);
            // A call that has begun is not lost before its end is.
            self.buffered.records += u64::from(entry.kind != CallLineKind::Begin);
        }
    }

    fn end_line(&mut self) {
        self.ends.push(self.buffer.len());
        self.buffer.push(b'\n');
        self.next += 1;
    }

    /// Returns whether the buffer should be written now.
    pub(crate) fn is_full(&self, segment_bytes_max: u64) -> bool {
        let max = usize::try_from(segment_bytes_max).unwrap_or(BUFFER_BYTES);
        self.buffer.len() >= BUFFER_BYTES.min(max)
    }

    /// Writes the buffer. Returns whether it had lines. After an error its lines are lost.
    pub(crate) fn flush(&mut self) -> Result<bool, (RecordError, LostRecords)> {
        if self.buffer.is_empty() {
            return Ok(false);
        }
        let lines = u64::try_from(self.ends.len()).unwrap_or(u64::MAX);
        let written = self.file.write_all(&self.buffer);
        if written.is_ok() {
            let mut start = 0;
            for end in &self.ends {
                self.sealer.append(self.buffer.get(start..*end).unwrap_or_default());
                start = end + 1;
            }
            self.bytes += u64::try_from(self.buffer.len()).unwrap_or(0);
        } else {
            let _ = self.file.set_len(self.bytes);
            self.next -= lines;
        }
        self.buffer.clear();
        self.ends.clear();
        let lost = std::mem::take(&mut self.buffered);
        written.map(|()| true).map_err(|error| (RecordError::file(&self.stem, error), lost))
    }

    /// Waits until everything is on disk.
    pub(crate) fn sync(&self) -> Result<(), RecordError> {
        self.file.sync_data().map_err(|error| RecordError::file(&self.stem, error))
    }

    /// Returns whether the file still has its name in the directory.
    pub(crate) fn exists(&self) -> bool {
        self.sealer.directory().contains(&self.file, &format!("{}{OPEN_SUFFIX}", self.stem))
    }

    /// Returns whether the segment is to be replaced.
    pub(crate) fn is_spent(&self, bytes_max: u64) -> bool {
        self.bytes >= bytes_max || self.opened.elapsed() >= AGE_MAX
    }

    /// Returns the time at which the segment is to be replaced because of its age.
    pub(crate) fn spent_at(&self) -> Instant {
        self.opened + AGE_MAX
    }

    /// Returns the time of the next checkpoint, if one is due.
    pub(crate) fn seal_due(&self) -> Option<Instant> {
        self.sealer.is_due().then(|| self.sealed + SEAL_TIME)
    }

    /// Writes a checkpoint of everything so far.
    pub(crate) fn seal(&mut self, now: Instant) -> Result<(), EvidenceError> {
        self.sealed = now;
        self.add_heads()?;
        self.sync()?;
        self.sealer.checkpoint()?;
        Ok(())
    }

    /// Writes the line that covers the checkpoints of other processes.
    fn add_heads(&mut self) -> Result<(), EvidenceError> {
        let line = self.sealer.heads_line(self.next);
        self.buffer.extend_from_slice(&line);
        self.end_line();
        self.flush().map_err(|(error, _)| error)?;
        Ok(())
    }

    /// Writes the last lines. The segment is complete even if the last checkpoint fails.
    pub(crate) fn close(mut self) -> (ClosedSegment, Result<(), EvidenceError>) {
        let result = self.close_lines();
        let Self { stem, zone, file, .. } = self;
        (ClosedSegment { stem, zone, _lock: file }, result)
    }

    fn close_lines(&mut self) -> Result<(), EvidenceError> {
        self.add_heads()?;
        let zone = std::mem::take(&mut self.zone);
        self.add(&CloseLine::new(self.next, &zone));
        self.zone = zone;
        self.flush().map_err(|(error, _)| error)?;
        self.sync()?;
        self.sealer.checkpoint()?;
        Ok(())
    }
}
