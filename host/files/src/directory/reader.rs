//! Files that stay open for reading.
//!
//! Opening a file costs a step for every directory above it, and a reader pays that only once. The
//! file that was opened at the first read is read to its end, even if its path leads to another
//! file in the meantime. So all reads see one state of it: files of a store are replaced and never
//! overwritten.
//!
//! Open files are scarce, since the system often allows a process no more than a thousand. So only
//! a few stay open at a time, in all stores together; a reader beyond the limit opens its file
//! again at every read.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use cap_std::fs::File;

use super::tree::Tree;
use crate::blocking::blocking;
use crate::{FileError, FileReader, StorePath};

/// Maximum number of files that this process keeps open for readers.
const OPEN_FILES_MAX: usize = 128;

static OPEN_FILES: AtomicUsize = AtomicUsize::new(0);

/// Reader of one file.
pub(super) struct DirectoryReader {
    tree: Arc<Tree>,
    path: StorePath,
    /// Set at the first read, if the limit allowed keeping the file open.
    open: Arc<OnceLock<DirectoryFile>>,
}

/// Open file, which counts toward the limit.
struct DirectoryFile {
    file: File,
    _permit: ReadPermit,
}

/// Permit to keep a file open.
struct ReadPermit;

impl DirectoryReader {
    pub(super) fn new(tree: Arc<Tree>, path: StorePath) -> Self {
        Self { tree, path, open: Arc::default() }
    }
}

#[async_trait]
impl FileReader for DirectoryReader {
    async fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        let (tree, path, open) =
            (Arc::clone(&self.tree), self.path.clone(), Arc::clone(&self.open));
        blocking(move || {
            if let Some(open) = open.get() {
                return Ok(read_at(&open.file, offset, length)?);
            }
            let (file, _) = {
                let _whole = tree.reading();
                tree.open_file(&path)?
            };
            let content = read_at(&file, offset, length)?;
            if let Some(permit) = ReadPermit::take() {
                open.get_or_init(|| DirectoryFile { file, _permit: permit });
            }
            Ok(content)
        })
        .await
    }
}

impl ReadPermit {
    fn take() -> Option<Self> {
        let take = |taken: usize| (taken < OPEN_FILES_MAX).then(|| taken.saturating_add(1));
        OPEN_FILES.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok().map(|_| Self)
    }
}

impl Drop for ReadPermit {
    fn drop(&mut self) {
        OPEN_FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads at `offset`, and allocates memory for the bytes that exist, not for those requested.
fn read_at(file: &File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let there = file.metadata()?.len().saturating_sub(offset);
    let wanted = usize::try_from(there.min(length)).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut content = Vec::new();
    content.try_reserve_exact(wanted).map_err(|_| io::ErrorKind::OutOfMemory)?;
    while content.len() < wanted {
        let already = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let spare = rustix::buffer::spare_capacity(&mut content);
        match rustix::io::pread(file, spare, offset.saturating_add(already)) {
            // Another program has truncated the file in the meantime.
            Ok(0) => break,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    content.truncate(wanted);
    Ok(content)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{DirectoryOptions, DirectoryStore, FileStore as _};

    fn path(text: &str) -> StorePath {
        StorePath::file(text).unwrap()
    }

    #[tokio::test]
    async fn a_file_is_read_to_its_end_as_it_was_at_the_first_read() {
        let root = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open_ambient(root.path(), DirectoryOptions::default()).unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        fs::write(root.path().join("d/a"), "old content").unwrap();
        let reader = store.reader(&path("d/a")).unwrap();
        assert_eq!(reader.read_at(0, 3).await.unwrap(), b"old");
        store.write(&path("d/a"), b"new".to_vec(), crate::WriteMode::Replace).await.unwrap();
        assert_eq!(reader.read_at(4, 100).await.unwrap(), b"content");
        assert_eq!(reader.read_at(11, 100).await.unwrap(), b"");
        assert_eq!(reader.read_at(u64::MAX, u64::MAX).await.unwrap(), b"");
        assert_eq!(store.reader(&path("d/a")).unwrap().read_at(0, u64::MAX).await.unwrap(), b"new");
    }

    #[tokio::test]
    async fn what_is_not_a_file_cannot_be_read() {
        let root = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open_ambient(root.path(), DirectoryOptions::default()).unwrap();
        fs::create_dir(root.path().join("d")).unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("link")).unwrap();
        for (text, expected) in [("d", FileError::NotFound), ("missing", FileError::NotFound)] {
            let error = store.reader(&path(text)).unwrap().read_at(0, 9).await.unwrap_err();
            assert_eq!(error.to_string(), expected.to_string(), "{text}");
        }
        let error = store.reader(&path("link/passwd")).unwrap().read_at(0, 9).await.unwrap_err();
        assert!(matches!(error, FileError::Link));
    }

    #[tokio::test]
    async fn more_files_than_may_be_open_are_read_all_the_same() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("a"), "content").unwrap();
        let store = DirectoryStore::open_ambient(root.path(), DirectoryOptions::default()).unwrap();
        let mut readers = Vec::new();
        for _ in 0..OPEN_FILES_MAX + 10 {
            let reader = store.reader(&path("a")).unwrap();
            assert_eq!(reader.read_at(0, 3).await.unwrap(), b"con");
            assert_eq!(reader.read_at(3, 9).await.unwrap(), b"tent");
            readers.push(reader);
        }
        assert!(OPEN_FILES.load(Ordering::Relaxed) <= OPEN_FILES_MAX);
    }
}
