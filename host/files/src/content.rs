//! The content of a file on its way into a store: in memory, or on disk where it was too large for
//! that.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use crate::{Charge, FileError};

/// What a commit writes to a file.
#[derive(Debug)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    Spilled(Spilled),
}

/// Content in a file without a name: nobody else can open it, and it is gone when this is dropped
/// or the host ends, however that happens.
#[derive(Debug)]
pub(crate) struct Spilled {
    file: File,
    bytes: u64,
    charge: Charge,
    /// Whether the file is one of the store's and only needs a name.
    is_of_store: bool,
}

impl Content {
    /// How long it is.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Bytes(content) => u64::try_from(content.len()).unwrap_or(u64::MAX),
            Self::Spilled(spilled) => spilled.bytes,
        }
    }

    /// All of it in memory. Blocks.
    pub(crate) fn into_bytes(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(content) => Ok(content),
            Self::Spilled(spilled) => spilled.read(0, u64::MAX),
        }
    }

    /// The file that it is in, if that file can be given a name in the store.
    pub(crate) fn nameless_file(&self) -> Option<&File> {
        match self {
            Self::Spilled(spilled) if spilled.is_of_store => Some(&spilled.file),
            Self::Spilled(_) | Self::Bytes(_) => None,
        }
    }

    /// Writes all of it to `target`, without having all of it in memory. Blocks.
    pub(crate) fn write_to(&self, target: &mut File) -> io::Result<()> {
        match self {
            Self::Bytes(content) => target.write_all(content),
            Self::Spilled(spilled) => spilled.write_to(target),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Bytes(Vec::new())
    }
}

impl Spilled {
    /// Empty content, for which `charge` was taken.
    pub(crate) fn new(file: File, charge: Charge) -> Self {
        Self { file, bytes: 0, charge, is_of_store: false }
    }

    /// The same in a file that the store has given out
    /// ([`FileStore::nameless_file`](crate::FileStore::nameless_file)).
    pub(crate) fn of_store(file: File, charge: Charge) -> Self {
        Self { file, bytes: 0, charge, is_of_store: true }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes room for `bytes`, before there are as many.
    pub(crate) fn charge(&mut self, bytes: u64) -> Result<(), FileError> {
        self.charge.set(bytes)
    }

    /// At most `length` bytes from `offset` on.
    pub(crate) fn read(&self, offset: u64, length: u64) -> io::Result<Vec<u8>> {
        let length = length.min(self.bytes.saturating_sub(offset));
        let mut content = Vec::new();
        content.try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))?;
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset.min(self.bytes)))?;
        file.take(length).read_to_end(&mut content)?;
        Ok(content)
    }

    /// Writes at `offset`; what lies between the end and `offset` becomes zero. The room is taken
    /// already.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Err(error) = write_all_at(&mut self.file, offset, data) {
            // What was added is taken away again. What was there may be overwritten in part.
            let _shortened = self.file.set_len(self.bytes);
            return Err(error);
        }
        let end = offset.saturating_add(u64::try_from(data.len()).unwrap_or(u64::MAX));
        self.bytes = self.bytes.max(end);
        Ok(())
    }

    /// Cuts or extends it with zeros. The room is taken already.
    pub(crate) fn resize(&mut self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    fn write_to(&self, target: &mut File) -> io::Result<()> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0))?;
        // From file to file, in the system where it can do that.
        let copied = io::copy(&mut file.take(self.bytes), target)?;
        if copied == self.bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

/// One step of the system for most writes, which come in thousands.
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
