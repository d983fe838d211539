//! One file of an overlay: that of the base store, or, once it was changed, in memory or (if it
//! is large) on disk.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::budget::{Budget, Charge};
use crate::content::{FileContent, SpilledContent};
use crate::memory::slice;
use crate::{FileError, FileStore, Stat, StorePath, Version};

/// A file, independent of its current path. It is open as long as anything but the tree of names
/// holds a reference to it.
pub(super) struct FileNode {
    number: u64,
    /// File of the base store that this one is or was.
    pub(super) origin: Option<Origin>,
    inner: Mutex<OverlayFileState>,
}

/// A file of the base store, as the call first saw it.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) path: StorePath,
    pub(super) bytes: u64,
    pub(super) modified: Option<SystemTime>,
    pub(super) version: Version,
}

struct OverlayFileState {
    content: ContentLocation,
    modified: Option<SystemTime>,
    /// Number of changes, which is the version of a changed file.
    changes: u64,
    /// True if it has a path. A file that was deleted while it is open no longer counts against the
    /// quota.
    is_linked: bool,
    /// Memory that the content takes.
    charge: Charge,
    /// True if content on disk could not be read back.
    is_unreadable: bool,
}

/// Location of the content.
enum ContentLocation {
    Base { bytes: u64 },
    Memory(Vec<u8>),
    Disk(SpilledContent),
}

impl FileNode {
    /// Creates a node for a file of the base store.
    pub(super) fn of_base(number: u64, origin: Origin, charge: Charge) -> Self {
        let (content, modified) = (ContentLocation::Base { bytes: origin.bytes }, origin.modified);
        let inner = OverlayFileState {
            content,
            modified,
            changes: 0,
            is_linked: true,
            charge,
            is_unreadable: false,
        };
        Self { number, origin: Some(origin), inner: Mutex::new(inner) }
    }

    /// Creates a new file without content.
    pub(super) fn empty(number: u64, charge: Charge) -> Self {
        let (content, modified) = (ContentLocation::Memory(Vec::new()), Some(SystemTime::now()));
        let inner = OverlayFileState {
            content,
            modified,
            changes: 1,
            is_linked: true,
            charge,
            is_unreadable: false,
        };
        Self { number, origin: None, inner: Mutex::new(inner) }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.inner.lock().bytes()
    }

    pub(super) fn stat(&self) -> Stat {
        let inner = self.inner.lock();
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
        self.inner.lock().changes > 0
    }

    pub(super) fn is_linked(&self) -> bool {
        self.inner.lock().is_linked
    }

    pub(super) fn unlink(&self) {
        self.inner.lock().is_linked = false;
    }

    /// Undoes [`unlink`](Self::unlink).
    pub(super) fn relink(&self) {
        self.inner.lock().is_linked = true;
    }

    /// Returns whether the content is no longer that of the base store.
    pub(super) fn is_loaded(&self) -> bool {
        !matches!(self.inner.lock().content, ContentLocation::Base { .. })
    }

    /// Returns whether the content is loaded and can be read.
    pub(super) fn is_readable(&self) -> bool {
        let inner = self.inner.lock();
        !matches!(inner.content, ContentLocation::Base { .. }) && !inner.is_unreadable
    }

    /// Returns the path of the content in the base store.
    pub(super) fn base_path(&self) -> Result<&StorePath, FileError> {
        self.origin.as_ref().map(|origin| &origin.path).ok_or(FileError::NotFound)
    }

    /// Reads a part of the content. Returns `None` if the content is still in the base store.
    pub(super) fn range(&self, offset: u64, length: u64) -> Option<Result<Vec<u8>, FileError>> {
        let mut inner = self.inner.lock();
        let read = match &inner.content {
            ContentLocation::Base { .. } => return None,
            ContentLocation::Memory(content) => {
                return Some(Ok(slice(content, offset, length).to_vec()));
            }
            ContentLocation::Disk(spilled) => spilled.read(offset, length),
        };
        inner.is_unreadable = read.is_err();
        Some(read.map_err(FileError::from))
    }

    /// Reads the whole content, which must be loaded. Blocks.
    pub(super) fn whole(&self, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let inner = self.inner.lock();
        let bytes = inner.bytes();
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        match &inner.content {
            ContentLocation::Base { .. } => Err(FileError::NotFound),
            ContentLocation::Memory(content) => Ok(content.clone()),
            ContentLocation::Disk(spilled) => Ok(spilled.read(0, bytes)?),
        }
    }

    /// Reserves memory for `bytes` of content. Must be called before the content grows.
    pub(super) fn charge(&self, bytes: u64) -> Result<(), FileError> {
        self.inner.lock().charge.set(bytes)
    }

    /// Reserves what content of `bytes` will need, and moves the content to disk if it would become
    /// too large for memory. The content must be loaded.
    pub(super) fn make_room(
        &self,
        budget: &Budget,
        bytes: u64,
        store: &dyn FileStore,
    ) -> Result<(), FileError> {
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        let content = match &mut inner.content {
            ContentLocation::Disk(spilled) => return spilled.charge(bytes),
            ContentLocation::Base { .. } => return inner.charge.set(bytes),
            ContentLocation::Memory(content) => content,
        };
        let refused = if budget.prefers_disk(bytes) { None } else { inner.charge.set(bytes).err() };
        match refused {
            None if !budget.prefers_disk(bytes) => return Ok(()),
            Some(error) if !budget.allows_disk(bytes) => return Err(error),
            _ => {}
        }
        match budget.spill(bytes, store) {
            Ok(mut spilled) => {
                // Write only the part that stays: a file that shrinks must not exceed its charge.
                spilled.write(0, slice(content, 0, bytes))?;
                inner.content = ContentLocation::Disk(spilled);
                inner.charge.set(0)
            }
            // It may fit in memory.
            Err(error) => inner.charge.set(bytes).map_err(|_| error),
        }
    }

    /// Replaces the content. The caller has already reserved the room.
    pub(super) fn set(&self, content: FileContent) {
        let mut inner = self.inner.lock();
        inner.content = match content {
            FileContent::Bytes(content) => ContentLocation::Memory(content),
            FileContent::Spilled(spilled) => ContentLocation::Disk(spilled),
        };
        inner.touch();
    }

    /// Truncates the content or extends it with zeros. The caller has already reserved the room.
    pub(super) fn resize(&self, bytes: u64) -> Result<(), FileError> {
        let mut inner = self.inner.lock();
        inner.touch();
        let content = match &mut inner.content {
            ContentLocation::Base { .. } => return Ok(()),
            ContentLocation::Disk(spilled) => return Ok(spilled.resize(bytes)?),
            ContentLocation::Memory(content) => content,
        };
        let bytes = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        reserve(content, bytes)?;
        content.resize(bytes, 0);
        // The charge is for the length, so memory beyond it has to go back.
        if content.capacity() / 2 > bytes {
            content.shrink_to_fit();
        }
        Ok(())
    }

    /// Writes into the content and extends it if needed. The caller has already reserved the room.
    pub(super) fn write(&self, offset: u64, data: &[u8]) -> Result<(), FileError> {
        let mut inner = self.inner.lock();
        inner.touch();
        let content = match &mut inner.content {
            ContentLocation::Base { .. } => return Ok(()),
            ContentLocation::Disk(spilled) => return Ok(spilled.write(offset, data)?),
            ContentLocation::Memory(content) => content,
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

    /// Takes the content out of the file.
    pub(super) fn take_content(&self) -> FileContent {
        match std::mem::replace(&mut self.inner.lock().content, ContentLocation::Memory(Vec::new()))
        {
            ContentLocation::Memory(content) => FileContent::Bytes(content),
            ContentLocation::Disk(spilled) => FileContent::Spilled(spilled),
            ContentLocation::Base { .. } => FileContent::default(),
        }
    }
}

impl OverlayFileState {
    fn bytes(&self) -> u64 {
        match &self.content {
            ContentLocation::Base { bytes } => *bytes,
            ContentLocation::Memory(content) => u64::try_from(content.len()).unwrap_or(u64::MAX),
            ContentLocation::Disk(spilled) => spilled.bytes(),
        }
    }

    fn touch(&mut self) {
        self.changes = self.changes.saturating_add(1);
        self.modified = Some(SystemTime::now());
    }
}

/// Returns the identity of the file or directory of the base store at `path`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_shrinks_gives_its_memory_back() {
        let file = FileNode::empty(0, Budget::new(1 << 20).take(0).unwrap());
        file.resize(1 << 20).unwrap();
        file.resize(10).unwrap();
        let FileContent::Bytes(content) = file.take_content() else { panic!("it is in memory") };
        assert_eq!(content.len(), 10);
        assert!(content.capacity() < 100, "{}", content.capacity());
    }
}
