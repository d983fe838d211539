//! One file of an overlay: as it is in the store below, or in memory once it was changed.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::budget::Charge;
use crate::memory::slice;
use crate::{FileError, Stat, StorePath, Version};

/// A file, whatever its path is by now. It is open as long as somebody else than the tree of names holds it.
pub(super) struct FileNode {
    number: u64,
    /// The file of the store below that this one is or was.
    pub(super) origin: Option<Origin>,
    inner: Mutex<Inner>,
}

/// A file of the store below, as the call first saw it.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) path: StorePath,
    pub(super) bytes: u64,
    pub(super) modified: Option<SystemTime>,
    pub(super) version: Version,
}

struct Inner {
    content: Content,
    modified: Option<SystemTime>,
    /// How often it was changed, which is the version of a changed file.
    changes: u64,
    /// Whether it has a path. One that was deleted while it is open no longer counts against the quota.
    is_linked: bool,
    charge: Charge,
}

enum Content {
    Base { bytes: u64 },
    Memory(Vec<u8>),
}

impl FileNode {
    /// A file of the store below.
    pub(super) fn of_base(number: u64, origin: Origin, charge: Charge) -> Self {
        let (content, modified) = (Content::Base { bytes: origin.bytes }, origin.modified);
        let inner = Inner { content, modified, changes: 0, is_linked: true, charge };
        Self { number, origin: Some(origin), inner: Mutex::new(inner) }
    }

    /// A new file.
    pub(super) fn with(number: u64, content: Vec<u8>, charge: Charge) -> Self {
        let modified = Some(SystemTime::now());
        let inner =
            Inner { content: Content::Memory(content), modified, changes: 1, is_linked: true, charge };
        Self { number, origin: None, inner: Mutex::new(inner) }
    }

    /// Nothing can stop half-way while it is locked.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.inner().bytes()
    }

    pub(super) fn stat(&self) -> Stat {
        let inner = self.inner();
        let version = match &self.origin {
            Some(origin) if inner.changes == 0 => origin.version,
            _ => Version(self.identity().wrapping_add(inner.changes)),
        };
        Stat::file(inner.bytes(), inner.modified, version)
    }

    pub(super) fn identity(&self) -> u64 {
        self.origin.as_ref().map_or(self.number, |origin| identity_of(&origin.path))
    }

    pub(super) fn is_changed(&self) -> bool {
        self.inner().changes > 0
    }

    pub(super) fn is_linked(&self) -> bool {
        self.inner().is_linked
    }

    pub(super) fn unlink(&self) {
        self.inner().is_linked = false;
    }

    /// Takes [`unlink`](Self::unlink) back.
    pub(super) fn relink(&self) {
        self.inner().is_linked = true;
    }

    /// Whether the content is in memory.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(self.inner().content, Content::Memory(_))
    }

    /// Where to read it in the store below.
    pub(super) fn base_path(&self) -> Result<&StorePath, FileError> {
        self.origin.as_ref().map(|origin| &origin.path).ok_or(FileError::NotFound)
    }

    /// A part of the content, if it is in memory.
    pub(super) fn range(&self, offset: u64, length: u64) -> Option<Vec<u8>> {
        match &self.inner().content {
            Content::Memory(content) => Some(slice(content, offset, length).to_vec()),
            Content::Base { .. } => None,
        }
    }

    /// All of the content, if it is in memory.
    pub(super) fn whole(&self, bytes_max: u64) -> Result<Option<Vec<u8>>, FileError> {
        let inner = self.inner();
        let Content::Memory(content) = &inner.content else { return Ok(None) };
        let bytes = inner.bytes();
        if bytes > bytes_max {
            Err(FileError::TooLarge { bytes, bytes_max })
        } else {
            Ok(Some(content.clone()))
        }
    }

    /// Takes memory for `bytes` of content, before there is that content.
    pub(super) fn charge(&self, bytes: u64) -> Result<(), FileError> {
        self.inner().charge.set(bytes)
    }

    /// Replaces the content. The memory is taken already.
    pub(super) fn set(&self, content: Vec<u8>) {
        let mut inner = self.inner();
        inner.content = Content::Memory(content);
        inner.touch();
    }

    /// Cuts or extends content that is in memory; what is added is zero. The memory is taken already.
    pub(super) fn resize(&self, bytes: u64) -> Result<(), FileError> {
        let mut inner = self.inner();
        inner.touch();
        let Content::Memory(content) = &mut inner.content else { return Ok(()) };
        let bytes = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        reserve(content, bytes)?;
        content.resize(bytes, 0);
        Ok(())
    }

    /// Writes into content that is in memory and extends it as needed. The memory is taken already.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<(), FileError> {
        let mut inner = self.inner();
        inner.touch();
        let Content::Memory(content) = &mut inner.content else { return Ok(()) };
        let start = usize::try_from(offset).map_err(|_| out_of_memory())?;
        let end = start.checked_add(data.len()).ok_or_else(out_of_memory)?;
        reserve(content, end)?;
        if content.len() < start {
            content.resize(start, 0);
        }
        let (over, beyond) = data.split_at(content.len().min(end).saturating_sub(start));
        if let Some(target) = content.get_mut(start..start.saturating_add(over.len())) {
            target.copy_from_slice(over);
        }
        content.extend_from_slice(beyond);
        Ok(())
    }

    /// Gives the content away.
    pub(super) fn take_content(&self) -> Vec<u8> {
        match &mut self.inner().content {
            Content::Memory(content) => std::mem::take(content),
            Content::Base { .. } => Vec::new(),
        }
    }
}

impl Inner {
    fn bytes(&self) -> u64 {
        match &self.content {
            Content::Base { bytes } => *bytes,
            Content::Memory(content) => u64::try_from(content.len()).unwrap_or(u64::MAX),
        }
    }

    fn touch(&mut self) {
        self.changes = self.changes.saturating_add(1);
        self.modified = Some(SystemTime::now());
    }
}

/// The identity of what the store below has at `path`.
pub(super) fn identity_of(path: &StorePath) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

fn reserve(content: &mut Vec<u8>, bytes: usize) -> Result<(), FileError> {
    content.try_reserve(bytes.saturating_sub(content.len())).map_err(|_| out_of_memory())
}

fn out_of_memory() -> FileError {
    std::io::Error::from(std::io::ErrorKind::OutOfMemory).into()
}
