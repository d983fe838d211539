//! The changes of one call, kept apart from the store until the call has succeeded (`FILE-21`, `FILE-22`).
//!
//! An [`Overlay`] looks like the store below with the changes of the call made to it. They are held in memory, or in
//! files without names where they are too large for that, and are gone when the overlay is dropped;
//! [`Overlay::commit_changes`] makes them in the store. The quotas of the store count them, and a [`Budget`], which
//! all overlays of a call share, bounds the memory and the disk that they take. Both are asked before anything is
//! allocated.
//!
//! What it costs: a file that is changed is copied as a whole at the first change. A file that is only read stays
//! where it is. Moving a file or a directory copies nothing. What is on disk is read and written in place and not on
//! another thread, so that a change is made in one go whenever its future is dropped: it meets the cache of the
//! system, which makes the thread wait when the disk cannot keep up.
//!
//! What the call sees of paths that it does not change is the last state that was committed (`FILE-23`); a file that
//! is read in several steps while another call replaces it may be seen partly old, partly new. Remembered for each
//! path that the call looks at is which state it saw first: if that is no longer the state when the changes of that
//! path are to be committed, the commit ends as [`FileError::Conflict`].

mod budget;
mod contents;
mod difference;
mod file;
mod names;
mod open;
mod state;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
pub use budget::{Budget, Charge, SpillOptions};
pub use difference::{ChangeKind, ChangedFile};
pub use open::{OpenFile, OpenMode};
use state::{Found, State};
use tokio::sync::Mutex;

use crate::blocking::blocking;
use crate::{Changes, FileError, FileStore, Listing, MadeDirectory, Room, Scope, Stat, StorePath, WriteMode};

/// A store and the changes that one call has made to it. Clones are the same overlay.
#[derive(Clone)]
pub struct Overlay {
    base: Arc<dyn FileStore>,
    budget: Budget,
    state: Arc<Mutex<State>>,
}

impl Overlay {
    /// An overlay without changes, whose changes may take what `budget` has left.
    pub fn new(base: Arc<dyn FileStore>, budget: &Budget) -> Self {
        let state = State::new(Arc::clone(&base), budget.clone());
        Self { base, budget: budget.clone(), state: Arc::new(Mutex::new(state)) }
    }

    /// The memory that this and the other overlays of the call may take.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Opens a file. It stays open, under whatever path, until it is dropped.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for the directory that should hold a new file; [`FileError::AlreadyExists`],
    /// [`FileError::IsDirectory`], [`FileError::ParentIsFile`], [`FileError::Quota`], [`FileError::Memory`],
    /// [`FileError::ReadOnly`], [`FileError::CreateOnly`], [`FileError::Link`].
    pub async fn open(&self, path: &StorePath, mode: OpenMode) -> Result<OpenFile, FileError> {
        let node = self.state.lock().await.open(path, mode).await?;
        Ok(OpenFile::new(self.clone(), node))
    }

    /// What tells one file or directory of this overlay from another, for as long as it exists.
    ///
    /// # Errors
    /// As for [`FileStore::stat`].
    pub async fn identity(&self, path: &StorePath) -> Result<u64, FileError> {
        match self.state.lock().await.look(path).await? {
            Found::Missing { .. } | Found::BelowFile | Found::Special => Err(FileError::NotFound),
            Found::File { node, .. } => Ok(node.identity()),
            Found::BaseFile { natural, .. } => Ok(file::identity_of(&natural)),
            Found::Directory { identity, .. } => Ok(identity),
        }
    }

    /// Makes the changes in the store below and says what they were. The overlay is then one without changes.
    ///
    /// # Errors
    /// As for [`FileStore::commit`]. The changes are lost in any case.
    pub async fn commit_changes(&self) -> Result<Vec<ChangedFile>, FileError> {
        let (changes, changed) = self.state.lock().await.take_changes();
        if !changes.is_empty() {
            self.base.commit(changes).await?;
        }
        Ok(changed)
    }
}

#[async_trait]
impl FileStore for Overlay {
    fn is_read_only(&self) -> bool {
        self.base.is_read_only()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.base.root_ambient()
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        match self.state.lock().await.look(path).await? {
            Found::Missing { .. } | Found::BelowFile | Found::Special => Err(FileError::NotFound),
            Found::File { node, .. } => Ok(node.stat()),
            Found::BaseFile { stat, .. } | Found::Directory { stat, .. } => Ok(stat),
        }
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        match self.readable(path).await? {
            Readable::Node(node) if node.is_loaded() => blocking(move || node.whole(bytes_max)).await,
            Readable::Node(node) => self.base.read(node.base_path()?, bytes_max).await,
            Readable::Base(natural) => self.base.read(&natural, bytes_max).await,
        }
    }

    async fn read_range(&self, path: &StorePath, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        match self.readable(path).await? {
            Readable::Node(node) => self.read_node(&node, offset, length).await,
            Readable::Base(natural) => self.base.read_range(&natural, offset, length).await,
        }
    }

    async fn write(&self, path: &StorePath, content: Vec<u8>, mode: WriteMode) -> Result<(), FileError> {
        self.state.lock().await.write(path, content, mode).await
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        self.state.lock().await.delete(path).await
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        self.state.lock().await.list(directory, scope).await
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        self.state.lock().await.create_directory(path).await
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        self.state.lock().await.remove_directory(path).await
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        self.state.lock().await.rename(from, to).await
    }

    async fn room(&self) -> Result<Room, FileError> {
        self.state.lock().await.room().await
    }

    async fn commit(&self, changes: Changes) -> Result<(), FileError> {
        if changes.is_empty() { Ok(()) } else { Err(FileError::Nested) }
    }
}

enum Readable {
    Node(Arc<file::FileNode>),
    Base(StorePath),
}

impl Overlay {
    async fn readable(&self, path: &StorePath) -> Result<Readable, FileError> {
        match self.state.lock().await.look(path).await? {
            Found::File { node, .. } => Ok(Readable::Node(node)),
            Found::BaseFile { natural, .. } => Ok(Readable::Base(natural)),
            Found::Missing { .. } | Found::BelowFile | Found::Special | Found::Directory { .. } => {
                Err(FileError::NotFound)
            }
        }
    }

    async fn read_node(&self, node: &file::FileNode, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        match node.range(offset, length) {
            Some(content) => content,
            None => self.base.read_range(node.base_path()?, offset, length).await,
        }
    }
}

#[cfg(test)]
mod tests;
