//! Files that are open: reading and writing anywhere in them.

use std::sync::{Arc, OnceLock};

use super::Overlay;
use super::file::FileNode;
use crate::{FileError, FileReader, Stat};

/// How a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// It may be changed.
    pub writes: bool,
    /// It is created if it is not there.
    pub creates: bool,
    /// With `creates`: it must not be there.
    pub is_exclusive: bool,
    /// It is emptied.
    pub truncates: bool,
}

/// A file that is open. What is written is seen by everyone who has the file open in the same
/// overlay.
#[derive(Clone)]
pub struct OpenFile {
    overlay: Overlay,
    node: Arc<FileNode>,
    /// For the file of the store below, since the first read of it.
    reader: Arc<OnceLock<Option<Arc<dyn FileReader>>>>,
}

impl OpenFile {
    pub(super) fn new(overlay: Overlay, node: Arc<FileNode>) -> Self {
        Self { overlay, node, reader: Arc::default() }
    }

    /// Kind, length and time.
    #[must_use]
    pub fn stat(&self) -> Stat {
        self.node.stat()
    }

    /// As [`Overlay::identity`].
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.node.identity()
    }

    /// Whether the content is at hand, as that of every changed file is: in memory, or on disk
    /// where it was too large.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.node.is_at_hand()
    }

    /// [`read_at`](Self::read_at) without waiting, if the content is at hand.
    #[must_use]
    pub fn read_in_memory(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        self.node.range(offset, length)?.ok()
    }

    /// At most `length` bytes from `offset` on: fewer where the file ends, none past its end.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::Link`] when the store below has something else by now;
    /// [`FileError::Host`].
    pub async fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        if let Some(content) = self.node.range(offset, length) {
            return content;
        }
        let path = self.node.base_path()?;
        match self.reader.get_or_init(|| self.overlay.base.reader(path)) {
            Some(reader) => reader.read_at(offset, length).await,
            None => self.overlay.base.read_range(path, offset, length).await,
        }
    }

    /// Writes all of `data` at `offset`, or nothing. What lies between the end of the file and
    /// `offset` is zero and counts.
    ///
    /// # Errors
    /// [`FileError::Quota`], [`FileError::Memory`], [`FileError::Disk`], [`FileError::ReadOnly`];
    /// [`FileError::Conflict`] when the store below has something else by now.
    pub async fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), FileError> {
        self.write(Some(offset), data).await
    }

    /// Writes all of `data` at the end, or nothing.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at).
    pub async fn append(&self, data: &[u8]) -> Result<(), FileError> {
        self.write(None, data).await
    }

    async fn write(&self, offset: Option<u64>, data: &[u8]) -> Result<(), FileError> {
        let mut state = self.overlay.state.lock().await;
        let written = state.write_at(&self.node, offset, data).await;
        state.note_conflict(written)
    }

    /// Cuts or extends the file to `bytes`. What is added is zero and counts.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at).
    pub async fn set_bytes(&self, bytes: u64) -> Result<(), FileError> {
        let mut state = self.overlay.state.lock().await;
        let resized = state.resize(&self.node, bytes).await;
        state.note_conflict(resized)
    }
}
