//! Copies of logs that a collector keeps.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{COPIES, FilePart, FileState, PUBLIC_KEY, copies};
use crate::checkpoint::{LogCheckpoint, TOMBSTONES, checkpoint_name};
use crate::directory::LogDirectory;
use crate::retention::compress;
use crate::search::line_kind;
use crate::segment_writer::ClosedSegment;
use crate::segments::{OPEN_SUFFIX, SegmentFile, process_of};
use crate::zone::ZoneMap;
use crate::{CallEntry, EvidenceError, Log, PruneReport, RecordError, VerifierKey};

/// File that a running collector has marked.
const COLLECTOR: &str = "collector";
/// Maximum number of logs in a collection.
const LOGS_MAX: usize = 10_000;
/// Maximum bytes of a copied segment. Logs replace their segments at a fraction of it.
const SEGMENT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Maximum number of files of a log that are open because they are being written.
const OPEN_MAX: usize = 256;
/// Maximum bytes of the copied list of removed segments.
const TOMBSTONES_BYTES_MAX: u64 = SEGMENT_BYTES_MAX;

/// Error returned when a part of a log is not copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// Another collector runs in the directory.
    #[error("another collector writes to this directory; end it, or choose another one")]
    InUse,
    /// The collection has too many logs.
    #[error("the collection has {LOGS_MAX} logs already; move some of its folder `{COPIES}` away")]
    TooManyLogs,
    /// The name is not one of a file that is copied.
    #[error("expected the name of a segment, found `{}`", .0.escape_debug())]
    Name(String),
    /// Ids of calls in the segment are those of another log.
    #[error("segment `{0}` has ids of calls that another log of the collection has")]
    Collision(String),
    /// The file is shorter or longer than what was copied of it: the log has changed.
    #[error("expected bytes of `{name}` from {copied} on, found some from {offset} on")]
    Offset {
        /// File of the log.
        name: String,
        /// Bytes that were copied.
        copied: u64,
        /// Position of the part.
        offset: u64,
    },
    /// The file is too long.
    #[error("`{name}` has more than {bytes_max} bytes")]
    TooLong {
        /// File of the log.
        name: String,
        /// Maximum number of bytes.
        bytes_max: u64,
    },
    /// The checkpoint is not one of this log and segment.
    #[error("the checkpoint of `{name}` is invalid: {error}")]
    Checkpoint {
        /// Segment.
        name: String,
        /// Error of the checkpoint.
        #[source]
        error: EvidenceError,
    },
    /// The collection cannot be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A directory with copies of logs, to which one process adds.
#[derive(Debug)]
pub struct LogCollection {
    directory: LogDirectory,
    owners: ProcessOwners,
    /// Holds the mark of a running collector.
    _mark: File,
}

/// Folders of the logs that processes write, by the digits with which their segments end: ids of
/// calls begin with them, so that a log must not use those of another one.
type ProcessOwners = Arc<Mutex<HashMap<String, String>>>;

/// Copy of one log. Segments that its processes write are marked as being written, so that calls
/// without an end are running and not lost.
#[derive(Debug)]
pub struct LogCopy {
    folder: String,
    owners: ProcessOwners,
    directory: LogDirectory,
    key: VerifierKey,
    /// Files that are being written.
    open: HashMap<String, File>,
}

impl LogCollection {
    /// Opens a collection, and creates its directory with mode 700 if it does not exist.
    ///
    /// # Errors
    /// If the directory is not the user's own, or another collector runs in it.
    pub fn create(directory: impl AsRef<Path>) -> Result<Self, CopyError> {
        let directory = LogDirectory::create(directory.as_ref())?;
        let mark = match directory.own_file(COLLECTOR) {
            Err(RecordError::File { error, .. }) if error.kind() == ErrorKind::WouldBlock => {
                return Err(CopyError::InUse);
            }
            mark => mark?,
        };
        directory.create_folder(COPIES)?;
        let mut owners = HashMap::new();
        for (folder, copy) in copies(&directory)? {
            for segment in SegmentFile::list(&copy)? {
                owners.insert(segment.process().to_owned(), folder.clone());
            }
        }
        Ok(Self { directory, owners: Arc::new(Mutex::new(owners)), _mark: mark })
    }

    /// Opens the copy of a log, and creates it if it does not exist.
    ///
    /// # Errors
    /// If the collection has too many logs, or cannot be written.
    pub fn copy(&self, key: &VerifierKey) -> Result<LogCopy, CopyError> {
        let text = key.to_string();
        let folder = format!("{COPIES}/{}", key.digest());
        if self.directory.facts(&folder).is_none() {
            if self.directory.names(COPIES)?.len() >= LOGS_MAX {
                return Err(CopyError::TooManyLogs);
            }
            self.directory.create_folder(&folder)?;
        }
        let directory = self.directory.open_folder(&folder)?;
        directory.write_new(PUBLIC_KEY, format!("{text}\n").as_bytes())?;
        let (owners, key) = (Arc::clone(&self.owners), key.clone());
        Ok(LogCopy { folder, owners, directory, key, open: HashMap::new() })
    }

    /// Removes the oldest segments of each copy until it is within the limits.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn prune(&self, bytes_max: u64, age_max: Duration) -> Result<PruneReport, EvidenceError> {
        Log::of(self.directory.clone()).prune(bytes_max, age_max)
    }
}

impl LogCopy {
    /// Returns the number of bytes of a file that were copied, or `None` if it is complete.
    #[must_use]
    pub fn copied(&self, name: &str) -> Option<u64> {
        let length = |name: &str| self.directory.facts(name).map_or(0, |facts| facts.bytes);
        if name == TOMBSTONES {
            return Some(length(TOMBSTONES));
        }
        match SegmentFile::named(&self.directory, name) {
            Some(segment) if segment.is_compressed() => None,
            _ => Some(length(&format!("{name}{OPEN_SUFFIX}"))),
        }
    }

    /// Appends a part of a file. Behind the last part, its checkpoint is stored, and a complete
    /// segment is compressed.
    ///
    /// # Errors
    /// If the part does not belong behind what was copied, or the collection cannot be written.
    /// What was copied stays.
    pub fn append(&mut self, name: &str, offset: u64, part: &FilePart) -> Result<(), CopyError> {
        let (file, bytes_max) = self.check_name(name)?;
        let copied = self.copied(name).unwrap_or(u64::MAX);
        if copied != offset {
            return Err(CopyError::Offset { name: name.to_owned(), copied, offset });
        }
        let length = u64::try_from(part.bytes.len()).unwrap_or(u64::MAX);
        if offset.saturating_add(length) > bytes_max {
            return Err(CopyError::TooLong { name: name.to_owned(), bytes_max });
        }
        let open = match self.open.remove(name) {
            Some(open) => open,
            None => self.directory.own_file(&file)?,
        };
        let written = (&open).write_all(&part.bytes);
        if let Err(error) = written {
            // A part of it would be in front of the next attempt.
            let _ = open.set_len(offset);
            return Err(RecordError::file(&file, error).into());
        }
        if !part.is_last {
            self.mark_open(name, open);
            return Ok(());
        }
        self.store_checkpoint(name, part)?;
        match part.state {
            FileState::Live => self.mark_open(name, open),
            FileState::Orphaned => {}
            FileState::Closed => self.close(name, open)?,
        }
        Ok(())
    }

    /// Keeps the mark of a file that is being written, unless the log claims to have too many.
    fn mark_open(&mut self, name: &str, open: File) {
        if self.open.len() < OPEN_MAX {
            self.open.insert(name.to_owned(), open);
        }
    }

    /// Removes the marks of segments that are being written, because their processes do not answer.
    pub fn release(&mut self) {
        self.open.clear();
    }

    #[cfg(test)]
    pub(super) fn open_files(&self) -> usize {
        self.open.len()
    }

    /// Returns the name of the file for a name of the log, and its maximum length.
    fn check_name(&self, name: &str) -> Result<(String, u64), CopyError> {
        if name == TOMBSTONES {
            return Ok((TOMBSTONES.to_owned(), TOMBSTONES_BYTES_MAX));
        }
        let process = process_of(name);
        let process = process.ok_or_else(|| CopyError::Name(name.chars().take(64).collect()))?;
        let mut owners = self.owners.lock();
        let owner = owners.entry(process.to_owned()).or_insert_with(|| self.folder.clone());
        if *owner != self.folder {
            return Err(CopyError::Collision(name.to_owned()));
        }
        Ok((format!("{name}{OPEN_SUFFIX}"), SEGMENT_BYTES_MAX))
    }

    fn store_checkpoint(&self, name: &str, part: &FilePart) -> Result<(), CopyError> {
        let Some(note) = &part.checkpoint else { return Ok(()) };
        let opened = LogCheckpoint::open(note, &self.key).and_then(|state| {
            let is_own = state.segment == name;
            is_own.then_some(()).ok_or(EvidenceError::Checkpoint("one of another segment"))
        });
        opened.map_err(|error| CopyError::Checkpoint { name: name.to_owned(), error })?;
        Ok(self.directory.write(&checkpoint_name(name), note.as_bytes())?)
    }

    /// Compresses a complete segment. Its index is made from its lines.
    fn close(&self, name: &str, open: File) -> Result<(), RecordError> {
        let Some(segment) = SegmentFile::named(&self.directory, name) else { return Ok(()) };
        let (mut zone, mut lines) = (ZoneMap::default(), segment.lines()?);
        while let Some(line) = lines.next_line()? {
            if line_kind(line.bytes).is_some()
                && let Some(entry) = CallEntry::parse(line.bytes)
            {
                zone.add(&entry);
            }
        }
        open.sync_all().map_err(|error| RecordError::file(name, error))?;
        compress(&self.directory, &ClosedSegment { stem: name.to_owned(), zone, _lock: open })
    }
}
