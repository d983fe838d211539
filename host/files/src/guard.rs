//! Stores that wrap another store and restrict or observe it.

mod audited;
mod restricted;
mod subtree;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
pub use audited::{Access, AccessKind, AccessOutcome, AuditedStore};
pub use restricted::{PathPatterns, RestrictedStore};
pub use subtree::Subtree;

use crate::store::NoChanges;
use crate::{
    Changes, EntryKind, FileError, FileLocation, FileReader, FileStore, Listing, MadeDirectory,
    NameRules, PreparedCommit, Room, Scope, Stat, StorePath, WriteMode,
};

/// A store that refuses every change with the message of `FILE-20` and forwards everything else.
///
/// The wrapped store may still be changed in other ways: this is a view without the right to write,
/// not a snapshot.
#[derive(Clone)]
pub struct ReadOnly {
    store: Arc<dyn FileStore>,
}

impl ReadOnly {
    /// Creates a read-only view of `store`.
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store }
    }
}

#[async_trait]
impl FileStore for ReadOnly {
    fn is_read_only(&self) -> bool {
        true
    }

    fn names(&self) -> NameRules {
        self.store.names()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.store.root_ambient()
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        self.store.locate(path)
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        self.store.stat(path).await
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        self.store.probe(path).await
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        self.store.read(path, bytes_max).await
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        self.store.read_range(path, offset, length).await
    }

    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        self.store.reader(path)
    }

    async fn write(&self, _: &StorePath, _: Vec<u8>, _: WriteMode) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn delete(&self, _: &StorePath) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        self.store.list(directory, scope).await
    }

    async fn create_directory(&self, _: &StorePath) -> Result<MadeDirectory, FileError> {
        Err(FileError::ReadOnly)
    }

    async fn remove_directory(&self, _: &StorePath) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn rename(&self, _: &StorePath, _: &StorePath) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn room(&self) -> Result<Room, FileError> {
        self.store.room().await
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        if changes.is_empty() { Ok(Box::new(NoChanges)) } else { Err(FileError::ReadOnly) }
    }
}

/// A store that accepts new files and directories and reveals nothing: what exists can be neither
/// read nor listed, changed or deleted.
///
/// A caller that may create files can always find out that a path is taken. The store reveals no
/// more than that: directories are visible, because files are created in them, but neither the
/// length nor the time of a file is.
#[derive(Clone)]
pub struct CreateOnly {
    store: Arc<dyn FileStore>,
}

impl CreateOnly {
    /// Creates a create-only view of `store`.
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store }
    }

    /// Refuses access to what exists; anything else is "not found".
    async fn refuse<T>(&self, path: &StorePath) -> Result<T, FileError> {
        self.store.stat(path).await.and(Err(FileError::CreateOnly))
    }
}

#[async_trait]
impl FileStore for CreateOnly {
    fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    fn names(&self) -> NameRules {
        self.store.names()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.store.root_ambient()
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        self.store.locate(path)
    }

    fn anonymous_file(&self) -> Option<File> {
        self.store.anonymous_file()
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        let stat = self.store.stat(path).await?;
        if stat.kind == EntryKind::Directory { Ok(stat) } else { Err(FileError::CreateOnly) }
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        match self.store.probe(path).await? {
            Some(stat) if stat.kind == EntryKind::File => Err(FileError::CreateOnly),
            found => Ok(found),
        }
    }

    async fn read(&self, path: &StorePath, _: u64) -> Result<Vec<u8>, FileError> {
        self.refuse(path).await
    }

    async fn read_range(&self, path: &StorePath, _: u64, _: u64) -> Result<Vec<u8>, FileError> {
        self.refuse(path).await
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        match self.store.write(path, content, WriteMode::Create).await {
            Err(FileError::AlreadyExists) if mode == WriteMode::Replace => {
                Err(FileError::CreateOnly)
            }
            result => result,
        }
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        self.refuse(path).await
    }

    async fn list(&self, _: &StorePath, _: Scope) -> Result<Listing, FileError> {
        Err(FileError::CreateOnly)
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        self.store.create_directory(path).await
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        self.refuse(path).await
    }

    async fn rename(&self, from: &StorePath, _: &StorePath) -> Result<(), FileError> {
        self.refuse(from).await
    }

    async fn room(&self) -> Result<Room, FileError> {
        self.store.room().await
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        if changes.only_create() {
            self.store.prepare(changes).await
        } else {
            Err(FileError::CreateOnly)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, Quota};

    fn path(text: &str) -> StorePath {
        StorePath::directory(text).unwrap()
    }

    #[tokio::test]
    async fn create_only_takes_what_is_new_and_refuses_the_rest() {
        let store = Arc::new(MemoryStore::new(Quota::default()));
        store.write(&path("d/a"), b"secret".to_vec(), WriteMode::Create).await.unwrap();
        let guard = CreateOnly::new(Arc::clone(&store) as Arc<dyn FileStore>);
        let (there, missing, directory) = (&path("d/a"), &path("d/x"), &path("d"));
        let refused = |result: Result<(), FileError>| matches!(result, Err(FileError::CreateOnly));
        assert!(refused(guard.stat(there).await.map(drop)));
        assert!(refused(guard.probe(there).await.map(drop)));
        assert!(refused(guard.read(there, 99).await.map(drop)));
        assert!(refused(guard.read_range(there, 0, 9).await.map(drop)));
        assert!(refused(guard.write(there, Vec::new(), WriteMode::Replace).await));
        assert!(refused(guard.delete(there).await));
        assert!(refused(guard.rename(there, missing).await));
        assert!(refused(guard.rename(directory, missing).await));
        assert!(refused(guard.remove_directory(directory).await));
        assert!(refused(guard.list(directory, Scope::Children).await.map(drop)));
        assert!(matches!(guard.read(missing, 9).await, Err(FileError::NotFound)));
        assert!(matches!(guard.delete(missing).await, Err(FileError::NotFound)));
        guard.write(missing, b"new".to_vec(), WriteMode::Replace).await.unwrap();
        assert_eq!(guard.create_directory(&path("e/f")).await.unwrap(), MadeDirectory::Created);
        assert_eq!(store.read(there, 99).await.unwrap(), b"secret");
        assert_eq!(store.read(missing, 99).await.unwrap(), b"new");
    }
}
