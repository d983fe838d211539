//! Files of a log, for a collector that copies them.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use parking_lot::Mutex;

use super::{ChangedFile, FilePart, FileState};
use crate::checkpoint::{TOMBSTONES, checkpoint_name, read_checkpoint};
use crate::directory::LogDirectory;
use crate::segments::SegmentFile;
use crate::verify::directory_key;
use crate::{EvidenceError, RecordError, VerifierKey};

/// Files of a log that processes may be writing meanwhile.
#[derive(Debug)]
pub struct LogFiles {
    directory: LogDirectory,
    key: VerifierKey,
    /// Compressed segment that was read last, so that reading it in parts decompresses it once.
    open: Mutex<Option<OpenSegment>>,
    /// Times of the last changes of compressed segments, which change no more.
    compressed: Mutex<HashMap<String, i64>>,
}

#[derive(Debug)]
struct OpenSegment {
    name: String,
    offset: u64,
    reader: MultiGzDecoder<BufReader<File>>,
}

impl LogFiles {
    /// Opens the files of a log that a process has begun.
    ///
    /// # Errors
    /// If the directory or its key cannot be read.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, EvidenceError> {
        let directory = LogDirectory::open(directory.as_ref())?;
        let key = directory_key(&directory)?;
        Ok(Self { directory, key, open: Mutex::default(), compressed: Mutex::default() })
    }

    /// Returns the public key of the log.
    #[must_use]
    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// Returns at most `count_max` files that have changed after another one did, in the order of
    /// their changes. A change of a checkpoint is one of its segment.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn changes(
        &self,
        after: Option<&ChangedFile>,
        count_max: usize,
    ) -> Result<Vec<ChangedFile>, RecordError> {
        let (mut files, mut compressed) = (Vec::new(), HashMap::new());
        let mut last = self.compressed.lock();
        for segment in SegmentFile::list(&self.directory)? {
            let known = last.remove(segment.stem()).filter(|_| segment.is_compressed());
            let Some(changed) = known.or_else(|| self.changed(&segment)) else { continue };
            if segment.is_compressed() {
                compressed.insert(segment.stem().to_owned(), changed);
            }
            files.push(ChangedFile { changed, name: segment.stem().to_owned() });
        }
        *last = compressed;
        drop(last);
        if let Some(facts) = self.directory.facts(TOMBSTONES) {
            files.push(ChangedFile { changed: facts.modified, name: TOMBSTONES.to_owned() });
        }
        files.retain(|file| after.is_none_or(|after| file > after));
        files.sort();
        files.truncate(count_max);
        Ok(files)
    }

    /// Returns the time of the last change of a segment or its checkpoint.
    fn changed(&self, segment: &SegmentFile) -> Option<i64> {
        let checkpoint = self.directory.facts(&checkpoint_name(segment.stem()));
        let facts = segment.facts().into_iter().chain(checkpoint);
        facts.map(|facts| facts.modified).max()
    }

    /// Reads at most `bytes_max` bytes of a file. Returns `None` if the file does not exist, such
    /// as one that was pruned.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(
        &self,
        name: &str,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Option<FilePart>, EvidenceError> {
        match self.read_part(name, offset, bytes_max) {
            // Compressed meanwhile.
            Err(error) if error.is_not_found() => match self.read_part(name, offset, bytes_max) {
                Err(error) if error.is_not_found() => Ok(None),
                read => Ok(read?),
            },
            read => Ok(read?),
        }
    }

    fn read_part(
        &self,
        name: &str,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Option<FilePart>, RecordError> {
        if name == TOMBSTONES {
            let (bytes, is_last) = read_at(&self.directory, name, offset, bytes_max)?;
            return Ok(Some(FilePart { bytes, is_last, state: FileState::Live, checkpoint: None }));
        }
        let Some(segment) = SegmentFile::named(&self.directory, name) else { return Ok(None) };
        // In this order: lines that a checkpoint covers are on disk before it, and a process that
        // has ended writes no more.
        let checkpoint = read_checkpoint(&self.directory, name).ok().flatten();
        let state = match (segment.is_live(), segment.is_closed()) {
            (true, _) => FileState::Live,
            (false, true) => FileState::Closed,
            (false, false) => FileState::Orphaned,
        };
        let (bytes, is_last) = if segment.is_compressed() {
            self.read_compressed(&segment, offset, bytes_max)?
        } else {
            read_at(&self.directory, &segment.name(), offset, bytes_max)?
        };
        Ok(Some(FilePart { bytes, is_last, state, checkpoint }))
    }

    fn read_compressed(
        &self,
        segment: &SegmentFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<(Vec<u8>, bool), RecordError> {
        let failure = |error| RecordError::file(&segment.name(), error);
        let mut last = self.open.lock();
        let known = last.take().filter(|open| open.name == segment.stem() && open.offset == offset);
        let mut open = match known {
            Some(open) => open,
            None => {
                let file = self.directory.open_file(&segment.name())?;
                let mut reader = MultiGzDecoder::new(BufReader::new(file));
                let skipped = io::copy(&mut reader.by_ref().take(offset), &mut io::sink());
                let offset = skipped.map_err(failure)?;
                OpenSegment { name: segment.stem().to_owned(), offset, reader }
            }
        };
        let (bytes, is_last) = read_to(&mut open.reader, bytes_max).map_err(failure)?;
        open.offset += u64::try_from(bytes.len()).unwrap_or(0);
        *last = (!is_last).then_some(open);
        Ok((bytes, is_last))
    }
}

fn read_at(
    directory: &LogDirectory,
    name: &str,
    offset: u64,
    bytes_max: usize,
) -> Result<(Vec<u8>, bool), RecordError> {
    let mut file = directory.open_file(name)?;
    let read = file.seek(SeekFrom::Start(offset)).and_then(|_| read_to(&mut file, bytes_max));
    read.map_err(|error| RecordError::file(name, error))
}

/// Reads at most `bytes_max` bytes, and returns whether these were all.
fn read_to(reader: &mut impl Read, bytes_max: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut bytes = Vec::new();
    reader.take(u64::try_from(bytes_max).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
    let is_last = bytes.len() < bytes_max;
    Ok((bytes, is_last))
}
