//! Open files, which can be read and written at any offset.

use std::sync::{Arc, OnceLock};

use super::Overlay;
use super::file::FileNode;
use crate::{FileError, FileReader, Stat};

/// Mode in which a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenMode {
    /// Permits writing.
    pub writes: bool,
    /// Creates the file if it does not exist.
    pub creates: bool,
    /// With `creates`: fails if the file exists.
    pub is_exclusive: bool,
    /// Truncates the file to length 0.
    pub truncates: bool,
}

/// An open file. Writes are visible to all callers that have the file open in the same overlay.
#[derive(Clone)]
pub struct OverlayFile {
    overlay: Overlay,
    node: Arc<FileNode>,
    /// Reader of the file in the base store, created at the first read.
    reader: Arc<OnceLock<Option<Arc<dyn FileReader>>>>,
}

impl OverlayFile {
    pub(super) fn new(overlay: Overlay, node: Arc<FileNode>) -> Self {
        Self { overlay, node, reader: Arc::default() }
    }

    /// Returns kind, length, time and version.
    #[must_use]
    pub fn stat(&self) -> Stat {
        self.node.stat()
    }

    /// Like [`Overlay::identity`].
    #[must_use]
    pub fn identity(&self) -> u64 {
        self.node.identity()
    }

    /// Returns whether the content is held by the overlay, as for every changed file: in
    /// memory, or on disk if it is too large.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        self.node.is_readable()
    }

    /// Like [`read_at`](Self::read_at), without waiting. Returns `None` if the overlay does not
    /// hold the content.
    #[must_use]
    pub fn read_in_memory(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        self.node.range(offset, length)?.ok()
    }

    /// Reads at most `length` bytes from `offset` on: fewer at the end of the file, none past it.
    ///
    /// # Errors
    /// [`FileError::NotFound`] or [`FileError::Link`] if the base store has something else at this
    /// path now; [`FileError::Host`].
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

    /// Writes all of `data` at `offset`, or nothing. A gap between the end of the file and `offset`
    /// is filled with zeros, which count against the quota.
    ///
    /// # Errors
    /// [`FileError::Quota`], [`FileError::Memory`], [`FileError::Disk`], [`FileError::ReadOnly`];
    /// [`FileError::Conflict`] if the base store has something else at this path now.
    pub async fn write_at(&self, offset: u64, data: &[u8]) -> Result<(), FileError> {
        self.write(Some(offset), data).await
    }

    /// Writes all of `data` at the end, or nothing.
    ///
    /// # Errors
    /// Like [`write_at`](Self::write_at).
    pub async fn append(&self, data: &[u8]) -> Result<(), FileError> {
        self.write(None, data).await
    }

    async fn write(&self, offset: Option<u64>, data: &[u8]) -> Result<(), FileError> {
        let mut state = self.overlay.state.lock().await;
        let written = state.write_at(&self.node, offset, data).await;
        state.note_conflict(written)
    }

    /// Truncates or extends the file to `bytes`. Added bytes are zero and count against the quota.
    ///
    /// # Errors
    /// Like [`write_at`](Self::write_at).
    pub async fn set_bytes(&self, bytes: u64) -> Result<(), FileError> {
        let mut state = self.overlay.state.lock().await;
        let resized = state.resize(&self.node, bytes).await;
        state.note_conflict(resized)
    }
}
