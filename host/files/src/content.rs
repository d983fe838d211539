//! Content of a file on its way into a store: in memory, or on disk if it is too large for that.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use crate::{Charge, FileError};

/// Content that a commit writes to a file.
#[derive(Debug)]
pub(crate) enum FileContent {
    Bytes(Vec<u8>),
    Spilled(SpilledContent),
}

/// Content in an anonymous file: no other process can open it, and it disappears when this is
/// dropped or the host ends, even if the host is killed.
#[derive(Debug)]
pub(crate) struct SpilledContent {
    file: File,
    bytes: u64,
    charge: Charge,
    /// True if the file belongs to the store and only needs a name.
    is_of_store: bool,
}

impl FileContent {
    /// Returns the length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(content) => u64::try_from(content.len()).unwrap_or(u64::MAX),
            Self::Spilled(spilled) => spilled.bytes,
        }
    }

    /// Returns the whole content in memory. Blocks.
    pub(crate) fn into_bytes(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(content) => Ok(content),
            Self::Spilled(spilled) => spilled.read(0, u64::MAX),
        }
    }

    /// Returns the anonymous file with the content, if the store can link it under a name.
    pub(crate) fn anonymous_file(&self) -> Option<&File> {
        match self {
            Self::Spilled(spilled) if spilled.is_of_store => Some(&spilled.file),
            Self::Spilled(_) | Self::Bytes(_) => None,
        }
    }

    /// Writes the whole content to `target` without loading all of it into memory. Blocks.
    pub(crate) fn write_to(&self, target: &mut File) -> io::Result<()> {
        match self {
            Self::Bytes(content) => target.write_all(content),
            Self::Spilled(spilled) => spilled.write_to(target),
        }
    }
}

impl Default for FileContent {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl SpilledContent {
    /// Creates empty content whose room is accounted for by `charge`.
    pub(crate) fn new(file: File, charge: Charge) -> Self {
        Self { file, bytes: 0, charge, is_of_store: false }
    }

    /// Like [`new`](Self::new), for a file that the store has created
    /// ([`FileStore::anonymous_file`](crate::FileStore::anonymous_file)).
    pub(crate) fn of_store(file: File, charge: Charge) -> Self {
        Self { file, bytes: 0, charge, is_of_store: true }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reserves room for `bytes` bytes in total. Must be called before the content grows.
    pub(crate) fn charge(&mut self, bytes: u64) -> Result<(), FileError> {
        self.charge.set(bytes)
    }

    /// Reads at most `length` bytes, starting at `offset`.
    pub(crate) fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let length = length.min(self.bytes.saturating_sub(offset));
        let mut content = Vec::new();
        content.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset.min(self.bytes)))?;
        file.take(length).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Writes `data` at `offset`; a gap between the end and `offset` is filled with zeros. The
    /// caller has already reserved the room.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Err(error) = write_all_at(&mut self.file, offset, data) {
            // Drop what was added. What was there before may be partly overwritten.
            let _shortened = self.file.set_len(self.bytes);
            return Err(error);
        }
        let end = offset.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        self.bytes = self.bytes.max(end);
        Ok(())
    }

    /// Truncates the content or extends it with zeros. The caller has already reserved the room.
    pub(crate) fn resize(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    fn write_to(&self, target: &mut File) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        // The kernel copies from file to file if it can.
        let copied = io::copy(&mut file.take(self.bytes), target)?;
        if copied == self.bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// Writes with one system call in most cases, because guests make thousands of small writes.
#[cfg(unix)]
fn write_all_at(file: &mut File, offset: u64, data: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, data, offset)
}

#[cfg(not(unix))]
fn write_all_at(file: &mut File, offset: u64, data: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(data)
}
