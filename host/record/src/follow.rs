//! Reading of lines as they are written.

use std::collections::HashMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

use crate::directory::LogDirectory;
use crate::segments::{LINE_BYTES_MAX, SegmentFile};
use crate::{CallEntry, LogItem, RecordError};

/// Maximum bytes that a poll reads of a segment.
const POLL_BYTES_MAX: u64 = LINE_BYTES_MAX as u64 + 1;

/// Reads the calls and events that are recorded from its creation on.
///
/// A poll returns what at most 8 MiB of each segment hold, so that a follower that is behind does
/// not take more memory than one that is not; polling again returns the rest.
#[derive(Debug)]
pub struct LogFollower {
    directory: LogDirectory,
    /// Process whose segments are read, if not all are.
    process: Option<String>,
    /// Bytes of each segment that were read, by stem.
    positions: HashMap<String, u64>,
    is_behind: bool,
}

/// Bytes of a segment from a position on.
struct SegmentPart {
    bytes: Vec<u8>,
    /// True if nothing followed.
    is_last: bool,
}

impl LogFollower {
    pub(crate) fn new(
        directory: &LogDirectory,
        process: Option<&str>,
    ) -> Result<Self, RecordError> {
        let mut positions = HashMap::new();
        for segment in SegmentFile::list_all(directory)? {
            let facts = segment.facts();
            // Closed segments do not grow.
            let end = if segment.is_compressed() { u64::MAX } else { facts.map_or(0, |f| f.bytes) };
            positions.insert(segment.stem().to_owned(), end);
        }
        let process = process.map(str::to_owned);
        Ok(Self { directory: directory.clone(), process, positions, is_behind: false })
    }

    /// Returns the calls that were recorded since the last poll, by segment. A call that was
    /// running comes twice: as `running`, and with its outcome.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn poll(&mut self) -> Result<Vec<CallEntry>, RecordError> {
        let calls = self.poll_items()?.into_iter().filter_map(|item| match item {
            LogItem::Call(call) => Some(*call),
            LogItem::Event(_) => None,
        });
        Ok(calls.collect())
    }

    /// Returns the calls and events that were recorded since the last poll, as
    /// [`poll`](Self::poll).
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub(crate) fn poll_items(&mut self) -> Result<Vec<LogItem>, RecordError> {
        let mut segments = SegmentFile::list_all(&self.directory)?;
        if let Some(process) = &self.process {
            segments.retain(|segment| segment.process() == process);
        }
        let is_there = |stem: &String| segments.iter().any(|segment| segment.stem() == stem);
        self.positions.retain(|stem, _| is_there(stem));
        self.is_behind = false;
        let mut items = Vec::new();
        for segment in &segments {
            let position = self.positions.entry(segment.stem().to_owned()).or_default();
            match read_from(segment, *position) {
                Ok(Some(part)) => {
                    *position = position.saturating_add(add_lines(segment, &part, &mut items));
                    if part.is_last && segment.is_compressed() {
                        *position = u64::MAX;
                    }
                    self.is_behind |= !part.is_last;
                }
                Ok(None) => {}
                // Compressed or pruned since the listing.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(items)
    }

    /// Returns whether the last poll has left something for the next one.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }
}

/// Reads a part of a segment. Returns `None` if all of it was read and it does not grow.
fn read_from(segment: &SegmentFile, position: u64) -> Result<Option<SegmentPart>, RecordError> {
    let name = segment.name();
    if position == u64::MAX {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut file = segment.directory().open_file(&name)?;
    let read = if segment.is_compressed() {
        let mut decoder = MultiGzDecoder::new(BufReader::new(file));
        std::io::copy(&mut decoder.by_ref().take(position), &mut std::io::sink())
            .and_then(|_| decoder.take(POLL_BYTES_MAX).read_to_end(&mut bytes))
    } else {
        file.seek(SeekFrom::Start(position))
            .and_then(|_| file.take(POLL_BYTES_MAX).read_to_end(&mut bytes))
    };
    let read = read.map_err(|error| RecordError::file(&name, error))?;
    let is_last = u64::try_from(read).unwrap_or(u64::MAX) < POLL_BYTES_MAX;
    Ok(Some(SegmentPart { bytes, is_last }))
}

/// Adds the items of whole lines. Returns the number of bytes that they take. A line that is longer
/// than any that is read is passed over.
fn add_lines(segment: &SegmentFile, part: &SegmentPart, items: &mut Vec<LogItem>) -> u64 {
    let bytes = &part.bytes;
    let length = |bytes: usize| u64::try_from(bytes).unwrap_or(u64::MAX);
    let Some(end) = memchr::memrchr(b'\n', bytes) else {
        return if part.is_last { 0 } else { length(bytes.len()) };
    };
    let lines = bytes.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
    items.extend(lines.filter_map(|line| LogItem::parse(segment.stem(), line)));
    length(end + 1)
}
