//! One file of an overlay: as it is in the store below, or once it was changed in memory or, if it
//! is large, on disk.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::budget::{Budget, Charge};
use crate::content::{Content, Spilled};
use crate::memory::slice;
use crate::{FileError, FileStore, Stat, StorePath, Version};

/// A file, whatever its path is by now. It is open as long as somebody else than the tree of names
/// holds it.
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
    content: Held,
    modified: Option<SystemTime>,
    /// How often it was changed, which is the version of a changed file.
    changes: u64,
    /// Whether it has a path. One that was deleted while it is open no longer counts against the
    /// quota.
    is_linked: bool,
    /// The memory that the content takes.
    charge: Charge,
    /// Whether content on disk could not be read back.
    is_unreadable: bool,
}

/// Where the content is.
enum Held {
    Base { bytes: u64 },
    Memory(Vec<u8>),
    Disk(Spilled),
}

impl FileNode {
    /// A file of the store below.
    pub(super) fn of_base(number: u64, origin: Origin, charge: Charge) -> Self {
        let (content, modified) = (Held::Base { bytes: origin.bytes }, origin.modified);
        let inner =
            Inner { content, modified, changes: 0, is_linked: true, charge, is_unreadable: false };
        Self { number, origin: Some(origin), inner: Mutex::new(inner) }
    }

    /// A new file without content.
    pub(super) fn empty(number: u64, charge: Charge) -> Self {
        let (content, modified) = (Held::Memory(Vec::new()), Some(SystemTime::now()));
        let inner =
            Inner { content, modified, changes: 1, is_linked: true, charge, is_unreadable: false };
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

    /// Whether the content is no longer that of the store below.
    pub(super) fn is_loaded(&self) -> bool {
        !matches!(self.inner().content, Held::Base { .. })
    }

    /// Whether it is, and can be read.
    pub(super) fn is_at_hand(&self) -> bool {
        let inner = self.inner();
        !matches!(inner.content, Held::Base { .. }) && !inner.is_unreadable
    }

    /// Where to read it in the store below.
    pub(super) fn base_path(&self) -> Result<&StorePath, FileError> {
        self.origin.as_ref().map(|origin| &origin.path).ok_or(FileError::NotFound)
    }

    /// A part of the content, unless it is that of the store below.
    pub(super) fn range(&self, offset: u64, length: u64) -> Option<Result<Vec<u8>, FileError>> {
        let mut inner = self.inner();
        let read = match &inner.content {
            Held::Base { .. } => return None,
            Held::Memory(content) => return Some(Ok(slice(content, offset, length).to_vec())),
            Held::Disk(spilled) => spilled.read(offset, length),
        };
        inner.is_unreadable = read.is_err();
        Some(read.map_err(FileError::from))
    }

    /// All of the content, which must not be that of the store below. Blocks.
    pub(super) fn whole(&self, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let inner = self.inner();
        let bytes = inner.bytes();
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        match &inner.content {
            Held::Base { .. } => Err(FileError::NotFound),
            Held::Memory(content) => Ok(content.clone()),
            Held::Disk(spilled) => Ok(spilled.read(0, bytes)?),
        }
    }

    /// Takes memory for `bytes` of content, before there is that content.
    pub(super) fn charge(&self, bytes: u64) -> Result<(), FileError> {
        self.inner().charge.set(bytes)
    }

    /// Takes what content of `bytes` will need, and moves the content to disk if it is too large
    /// for memory by then. The content must not be that of the store below.
    pub(super) fn make_room(
        &self,
        budget: &Budget,
        bytes: u64,
        store: &dyn FileStore,
    ) -> Result<(), FileError> {
        let mut inner = self.inner();
        let inner = &mut *inner;
        let content = match &mut inner.content {
            Held::Disk(spilled) => return spilled.charge(bytes),
            Held::Base { .. } => return inner.charge.set(bytes),
            Held::Memory(content) => content,
        };
        let refused = if budget.prefers_disk(bytes) { None } else { inner.charge.set(bytes).err() };
        match refused {
            None if !budget.prefers_disk(bytes) => return Ok(()),
            Some(error) if !budget.allows_disk(bytes) => return Err(error),
            _ => {}
        }
        match budget.spill(bytes, store) {
            Ok(mut spilled) => {
                // A file that becomes shorter never comes here with more than it may keep.
                spilled.write(0, slice(content, 0, bytes))?;
                inner.content = Held::Disk(spilled);
                inner.charge.set(0)
            }
            // Memory may do.
            Err(error) => inner.charge.set(bytes).map_err(|_| error),
        }
    }

    /// Replaces the content. What it takes is taken already.
    pub(super) fn set(&self, content: Content) {
        let mut inner = self.inner();
        inner.content = match content {
            Content::Bytes(content) => Held::Memory(content),
            Content::Spilled(spilled) => Held::Disk(spilled),
        };
        inner.touch();
    }

    /// Cuts or extends the content; what is added is zero. What it takes is taken already.
    pub(super) fn resize(&self, bytes: u64) -> Result<(), FileError> {
        let mut inner = self.inner();
        inner.touch();
        let content = match &mut inner.content {
            Held::Base { .. } => return Ok(()),
            Held::Disk(spilled) => return Ok(spilled.resize(bytes)?),
            Held::Memory(content) => content,
        };
        let bytes = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        reserve(content, bytes)?;
        content.resize(bytes, 0);
        Ok(())
    }

    /// Writes into the content and extends it as needed. What it takes is taken already.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<(), FileError> {
        let mut inner = self.inner();
        inner.touch();
        let content = match &mut inner.content {
            Held::Base { .. } => return Ok(()),
            Held::Disk(spilled) => return Ok(spilled.write(offset, data)?),
            Held::Memory(content) => content,
        };
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
    pub(super) fn take_content(&self) -> Content {
        match std::mem::replace(&mut self.inner().content, Held::Memory(Vec::new())) {
            Held::Memory(content) => Content::Bytes(content),
            Held::Disk(spilled) => Content::Spilled(spilled),
            Held::Base { .. } => Content::default(),
        }
    }
}

impl Inner {
    fn bytes(&self) -> u64 {
        match &self.content {
            Held::Base { bytes } => *bytes,
            Held::Memory(content) => u64::try_from(content.len()).unwrap_or(u64::MAX),
            Held::Disk(spilled) => spilled.bytes(),
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
