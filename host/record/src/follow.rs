//! Reading of lines as they are written.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

use crate::directory::LogDirectory;
use crate::entry::CallLineKind;
use crate::search::line_kind;
use crate::segments::{LINE_BYTES_MAX, SegmentFile};
use crate::{CallEntry, RUNNING, RecordError};

/// Reads the calls that are recorded from its creation on.
#[derive(Debug)]
pub struct LogFollower {
    directory: LogDirectory,
    /// Bytes of each segment that were read, by stem.
    positions: HashMap<String, u64>,
}

impl LogFollower {
    pub(crate) fn new(directory: &LogDirectory) -> Result<Self, RecordError> {
        let mut positions = HashMap::new();
        for segment in SegmentFile::list(directory)? {
            let facts = directory.facts(&segment.name());
            // Closed segments do not grow.
            let end = if segment.is_compressed() { u64::MAX } else { facts.map_or(0, |f| f.bytes) };
            positions.insert(segment.stem().to_owned(), end);
        }
        Ok(Self { directory: directory.clone(), positions })
    }

    /// Returns the calls that were recorded since the last poll, by segment. A call that was
    /// running comes twice: as `running`, and with its outcome.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn poll(&mut self) -> Result<Vec<CallEntry>, RecordError> {
        let segments = SegmentFile::list(&self.directory)?;
        let is_there = |stem: &String| segments.iter().any(|segment| segment.stem() == stem);
        self.positions.retain(|stem, _| is_there(stem));
        let mut entries = Vec::new();
        for segment in &segments {
            let position = self.positions.entry(segment.stem().to_owned()).or_default();
            match read_from(segment, *position) {
                Ok(bytes) => *position = position.saturating_add(add_lines(&bytes, &mut entries)),
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
            if segment.is_compressed() {
                *position = u64::MAX;
            }
        }
        Ok(entries)
    }
}

/// Reads the rest of a segment. At most twice the longest line, unless it is complete.
fn read_from(segment: &SegmentFile, position: u64) -> Result<Vec<u8>, RecordError> {
    let name = segment.name();
    if position == u64::MAX {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    let mut file = segment.directory().open_file(&name)?;
    let limit = u64::try_from(2 * LINE_BYTES_MAX).unwrap_or(u64::MAX);
    let read = if segment.is_compressed() {
        let mut decoder = MultiGzDecoder::new(file);
        std::io::copy(&mut decoder.by_ref().take(position), &mut std::io::sink())
            .and_then(|_| decoder.take(16 * limit).read_to_end(&mut bytes))
    } else {
        file.seek(SeekFrom::Start(position)).and_then(|_| file.take(limit).read_to_end(&mut bytes))
    };
    read.map_err(|error| RecordError::file(&name, error))?;
    Ok(bytes)
}

/// Adds the calls of whole lines. Returns the number of bytes that they take.
fn add_lines(bytes: &[u8], entries: &mut Vec<CallEntry>) -> u64 {
    let Some(end) = memchr::memrchr(b'\n', bytes) else { return 0 };
    for line in bytes.get(..end).unwrap_or_default().split(|byte| *byte == b'\n') {
        let kind = line_kind(line);
        if kind.is_some()
            && let Some(mut entry) = CallEntry::parse(line)
        {
            if kind == Some(CallLineKind::Begin) {
                entry.outcome = RUNNING.to_owned();
            }
            entries.push(entry);
        }
    }
    u64::try_from(end + 1).unwrap_or(u64::MAX)
}
