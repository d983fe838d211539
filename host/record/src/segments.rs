//! Segments: the files that hold the lines of a log.
//!
//! A segment `<UTC time>-<pid>-<8 random hex>.jsonl` belongs to one process. All segments of one
//! process end in the same eight digits. A closed segment ends with a `close` line, and is then
//! compressed to `….jsonl.gz`. The process holds an exclusive `flock` on its open segment, so
//! that others see whether it is alive, in another container too; nothing waits for that lock.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

use crate::checkpoint::is_segment;
use crate::copy::copies;
use crate::directory::{FileFacts, LogDirectory, is_written};
use crate::{RecordError, UtcTime};

/// Longest line that is read. A longer one counts as torn.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes at the end of an open segment that are searched for its `close` line.
const TAIL_BYTES: u64 = 256 * 1024;
/// Bytes of a block of lines.
const BLOCK_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) const OPEN_SUFFIX: &str = ".jsonl";
pub(crate) const CLOSED_SUFFIX: &str = ".jsonl.gz";
pub(crate) const ZONE_SUFFIX: &str = ".index.json";
/// Start of the last line of a closed segment.
pub(crate) const CLOSE_START: &[u8] = br#"{"v":1,"kind":"close","#;

/// A segment of a log.
#[derive(Debug, Clone)]
pub struct SegmentFile {
    directory: LogDirectory,
    stem: String,
    is_compressed: bool,
}

/// A line as it stands in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLine<'l> {
    /// Bytes of the line, without the line feed.
    pub bytes: &'l [u8],
    /// False for a torn line: the end of a segment without a line feed, or a line that is too long.
    pub is_whole: bool,
}

/// Lines of a segment in their order.
pub struct SegmentLines {
    name: String,
    reader: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    /// Bytes of `line` that were returned as a block.
    used: usize,
    has_torn: bool,
    failure: Option<io::Error>,
}

impl SegmentFile {
    /// Lists the segments of a directory by their names, which start with the time: oldest first.
    pub(crate) fn list(directory: &LogDirectory) -> Result<Vec<Self>, RecordError> {
        let mut segments: Vec<Self> = directory
            .names(".")?
            .iter()
            .filter_map(|name| Self::from_name(directory, name))
            .collect();
        // While a segment is compressed, both of its files exist. The compressed one is complete.
        segments.sort_by(|a, b| (&a.stem, b.is_compressed).cmp(&(&b.stem, a.is_compressed)));
        segments.dedup_by(|later, earlier| later.stem == earlier.stem);
        Ok(segments)
    }

    /// Lists the segments of a directory and of the copies of other logs in it, the oldest first.
    pub(crate) fn list_all(directory: &LogDirectory) -> Result<Vec<Self>, RecordError> {
        let mut segments = Self::list(directory)?;
        for (_, copy) in copies(directory)? {
            segments.extend(Self::list(&copy)?);
        }
        segments.sort_by(|a, b| a.stem.cmp(&b.stem));
        Ok(segments)
    }

    /// Returns the segment with a name, if it exists.
    pub(crate) fn named(directory: &LogDirectory, stem: &str) -> Option<Self> {
        process_of(stem)?;
        let names = [CLOSED_SUFFIX, OPEN_SUFFIX].map(|suffix| format!("{stem}{suffix}"));
        let name = names.iter().find(|name| directory.facts(name).is_some())?;
        Self::from_name(directory, name)
    }

    fn from_name(directory: &LogDirectory, name: &str) -> Option<Self> {
        let (stem, is_compressed) = match name.strip_suffix(CLOSED_SUFFIX) {
            Some(stem) => (stem, true),
            None => (name.strip_suffix(OPEN_SUFFIX)?, false),
        };
        process_of(stem)?;
        Some(Self { directory: directory.clone(), stem: stem.to_owned(), is_compressed })
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn name(&self) -> String {
        let suffix = if self.is_compressed { CLOSED_SUFFIX } else { OPEN_SUFFIX };
        format!("{}{suffix}", self.stem)
    }

    /// Returns the name without its suffixes, which stays when the segment is compressed.
    #[must_use]
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// Returns the eight digits of the process that wrote the segment, with which the ids of its
    /// calls start.
    #[must_use]
    pub fn process(&self) -> &str {
        process_of(&self.stem).unwrap_or_default()
    }

    /// Returns the time at which the segment was created. Its lines were written later.
    pub(crate) fn created(&self) -> Option<UtcTime> {
        UtcTime::parse_compact(self.stem.split('-').next()?)
    }

    /// Returns whether the segment is complete: compressed, or with a `close` line at its end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_compressed || self.has_close_line().unwrap_or(false)
    }

    /// Returns whether the process that writes the segment is running.
    #[must_use]
    pub fn is_live(&self) -> bool {
        if self.is_compressed {
            return false;
        }
        // Without locks, assume the best: nothing of a live process is ever removed.
        is_written(&self.directory, &self.name())
            .unwrap_or_else(|| !self.has_close_line().unwrap_or(false))
    }

    /// Opens the segment for reading its lines, compressed or not.
    ///
    /// # Errors
    /// If the file cannot be opened, such as one that was pruned meanwhile.
    pub fn lines(&self) -> Result<SegmentLines, RecordError> {
        match self.open_lines() {
            // Compressed between listing and opening.
            Err(error) if error.is_not_found() && !self.is_compressed => {
                Self { is_compressed: true, ..self.clone() }.open_lines()
            }
            opened => opened,
        }
    }

    fn open_lines(&self) -> Result<SegmentLines, RecordError> {
        let name = self.name();
        let file = self.directory.open_file(&name)?;
        let reader: Box<dyn BufRead + Send> = if self.is_compressed {
            let compressed = BufReader::with_capacity(CHUNK_BYTES, file);
            Box::new(BufReader::with_capacity(CHUNK_BYTES, MultiGzDecoder::new(compressed)))
        } else {
            Box::new(BufReader::with_capacity(CHUNK_BYTES, file))
        };
        Ok(SegmentLines::new(name, reader))
    }

    pub(crate) fn directory(&self) -> &LogDirectory {
        &self.directory
    }

    /// Returns size and age of the file, or `None` if it does not exist any more.
    pub(crate) fn facts(&self) -> Option<FileFacts> {
        self.directory.facts(&self.name())
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.is_compressed
    }

    fn has_close_line(&self) -> io::Result<bool> {
        let mut file = self.directory.open_file(&self.name()).map_err(io::Error::other)?;
        let tail = tail(&mut file)?;
        let Some(lines) = tail.strip_suffix(b"\n") else { return Ok(false) };
        let start = memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1);
        Ok(lines.get(start..).is_some_and(|line| line.starts_with(CLOSE_START)))
    }
}

/// Returns the eight digits of the process at the end of a segment's name, or `None` if it is not
/// one.
pub(crate) fn process_of(stem: &str) -> Option<&str> {
    let (_, process) = stem.rsplit_once('-')?;
    let is_process = process.len() == 8 && process.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_process && is_segment(stem)).then_some(process)
}

fn tail(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    Ok(tail)
}

impl SegmentLines {
    pub(crate) fn new(name: String, reader: Box<dyn BufRead + Send>) -> Self {
        Self { name, reader, line: Vec::new(), used: 0, has_torn: false, failure: None }
    }

    /// Reads a block of whole lines, without the last line feed, or returns `None` at the end. Not
    /// to be mixed with [`next_line`](Self::next_line).
    pub(crate) fn next_block(&mut self) -> Result<Option<&[u8]>, RecordError> {
        self.line.drain(..self.used);
        self.used = 0;
        loop {
            if let Some(error) = self.failure.take() {
                return Err(RecordError::file(&self.name, error));
            }
            let length = self.line.len();
            // What was read before an error is used first.
            self.failure = (&mut self.reader).take(BLOCK_BYTES).read_to_end(&mut self.line).err();
            if let Some(end) = memchr::memrchr(b'\n', &self.line) {
                self.used = end + 1;
                return Ok(self.line.get(..end));
            }
            if self.line.len() == length && self.failure.is_none() {
                self.has_torn |= length > 0;
                return Ok(None);
            }
            if self.line.len() > LINE_BYTES_MAX {
                self.line.clear();
                self.has_torn = true;
            }
        }
    }

    /// Returns whether a line of the blocks so far was torn or too long.
    pub(crate) fn has_torn(&self) -> bool {
        self.has_torn
    }

    /// Reads the next line, or returns `None` at the end.
    ///
    /// # Errors
    /// If the file cannot be read, or its compressed form is damaged.
    pub fn next_line(&mut self) -> Result<Option<SegmentLine<'_>>, RecordError> {
        self.line.clear();
        let mut is_long = false;
        loop {
            let chunk = match self.reader.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(RecordError::file(&self.name, error)),
            };
            let end = memchr::memchr(b'\n', chunk);
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            is_long |= self.line.len() + part.len() > LINE_BYTES_MAX;
            if !is_long {
                self.line.extend_from_slice(part);
            }
            let (used, is_at_end) = (part.len() + usize::from(end.is_some()), chunk.is_empty());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(SegmentLine { bytes: &self.line, is_whole: !is_long }));
            }
            if is_at_end {
                let line = SegmentLine { bytes: &self.line, is_whole: false };
                return Ok((is_long || !line.bytes.is_empty()).then_some(line));
            }
        }
    }
}
