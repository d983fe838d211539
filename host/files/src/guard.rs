//! Stores around a store.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{FileError, FileStore, Listing, MadeDirectory, Scope, Stat, StorePath, WriteMode};

/// A store that refuses every change with the text of `FILE-20` and hands everything else on.
///
/// The store below may still change by other ways; this is a view without the right to write, not a snapshot.
#[derive(Clone)]
pub struct ReadOnly {
    store: Arc<dyn FileStore>,
}

impl ReadOnly {
    /// A read-only view of `store`.
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store }
    }
}

#[async_trait]
impl FileStore for ReadOnly {
    fn is_read_only(&self) -> bool {
        true
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        self.store.stat(path).await
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        self.store.read(path, bytes_max).await
    }

    async fn read_range(&self, path: &StorePath, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        self.store.read_range(path, offset, length).await
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
}
