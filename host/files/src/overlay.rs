//! The changes of one call, kept apart from the store until the call has succeeded (`FILE-21`,
//! `FILE-22`).
//!
//! An [`Overlay`] looks like the store below with the changes of the call made to it. They are held
//! in memory, or in files without names where they are too large for that, and are gone when the
//! overlay is dropped; [`Overlay::commit_changes`] makes them in the store. The quotas of the store
//! count them, and a [`Budget`], which all overlays of a call share, bounds the memory and the disk
//! that they take. Both are asked before anything is allocated.
//!
//! What it costs: a file that is changed is copied as a whole at the first change. A file that is
//! only read stays where it is. Moving a file or a directory copies nothing. What is on disk is
//! read and written in place and not on another thread, so that a change is made in one go whenever
//! its future is dropped: it meets the cache of the system, which makes the thread wait when the
//! disk cannot keep up.
//!
//! What the call sees of paths that it does not change is the last state that was committed
//! (`FILE-23`); a file that is read in several steps while another call replaces it may be seen
//! partly old, partly new, unless the store below has readers ([`FileStore::reader`]) and it is
//! read through one of them. Remembered for each path that the call looks at is which state it saw
//! first: if that is no longer the state when the changes of that path are to be committed, the
//! commit ends as [`FileError::Conflict`]. So does every commit after a change was refused with
//! that error: a caller that has passed over the refusal cannot keep the rest of its changes.
//!
//! An overlay may lie over another one: then its commit makes the changes in that one, for the
//! inner call of a call.

mod budget;
mod contents;
mod difference;
mod file;
mod names;
mod nested;
mod open;
mod reader;
mod state;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
pub use budget::{Budget, Charge, SpillOptions};
pub use difference::{ChangeKind, ChangedFile};
pub use open::{OpenFile, OpenMode};
use state::{Found, State};
use tokio::sync::{Mutex, MutexGuard};

use crate::blocking::blocking;
use crate::{
    Changes, FileError, FileReader, FileStore, Listing, MadeDirectory, NameRules, Room, Scope,
    Stat, StorePath, WriteMode,
};

/// A few microseconds.
const TRIES_BEFORE_WAITING: u32 = 100;

/// A store and the changes that one call has made to it. Clones are the same overlay.
#[derive(Clone)]
pub struct Overlay {
    base: Arc<dyn FileStore>,
    budget: Budget,
    state: Arc<Mutex<State>>,
    /// Whether nothing may be changed through this one of the clones.
    is_read_only: bool,
}

impl Overlay {
    /// An overlay without changes, whose changes may take what `budget` has left.
    pub fn new(base: Arc<dyn FileStore>, budget: &Budget) -> Self {
        let state = State::new(Arc::clone(&base), budget.clone());
        Self {
            base,
            budget: budget.clone(),
            state: Arc::new(Mutex::new(state)),
            is_read_only: false,
        }
    }

    /// The memory that this and the other overlays of the call may take.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The same overlay for someone who may change nothing. What others change is seen.
    #[must_use]
    pub fn read_only(&self) -> Self {
        Self { is_read_only: true, ..self.clone() }
    }

    fn require_writable(&self) -> Result<(), FileError> {
        if self.is_read_only { Err(FileError::ReadOnly) } else { Ok(()) }
    }

    /// Opens a file. It stays open, under whatever path, until it is dropped.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for the directory that should hold a new file;
    /// [`FileError::AlreadyExists`], [`FileError::IsDirectory`], [`FileError::ParentIsFile`],
    /// [`FileError::Quota`], [`FileError::Memory`], [`FileError::ReadOnly`],
    /// [`FileError::CreateOnly`], [`FileError::Link`].
    pub async fn open(&self, path: &StorePath, mode: OpenMode) -> Result<OpenFile, FileError> {
        if mode.writes || mode.truncates {
            self.require_writable()?;
        }
        let found = if self.is_read_only && mode.creates {
            // What is there can be opened, and what is not can be neither found nor created.
            let existing = OpenMode { creates: false, ..mode };
            match self.state.lock().await.open(path, existing).await {
                Ok(_) if mode.is_exclusive => Err(FileError::AlreadyExists),
                Err(FileError::NotFound) => Err(FileError::ReadOnly),
                found => found,
            }
        } else {
            let mut state = self.state.lock().await;
            let opened = state.open(path, mode).await;
            state.note_conflict(opened)
        };
        Ok(OpenFile::new(self.clone(), found?))
    }

    /// What tells one file or directory of this overlay from another, for as long as it exists.
    ///
    /// # Errors
    /// As for [`FileStore::stat`].
    pub async fn identity(&self, path: &StorePath) -> Result<u64, FileError> {
        Ok(self.identity_and_stat(path).await?.0)
    }

    /// [`identity`](Self::identity) and [`stat`](FileStore::stat) with one look.
    ///
    /// # Errors
    /// As for [`FileStore::stat`].
    pub async fn identity_and_stat(&self, path: &StorePath) -> Result<(u64, Stat), FileError> {
        match self.look(path).await? {
            Found::Missing { .. } | Found::BelowFile | Found::Special => Err(FileError::NotFound),
            Found::File { node, .. } => Ok((node.identity(), node.stat())),
            Found::BaseFile { natural, stat } => Ok((file::identity_of(&natural), stat)),
            Found::Directory { identity, stat, .. } => Ok((identity, stat)),
        }
    }

    /// The store below.
    #[must_use]
    pub fn base(&self) -> &Arc<dyn FileStore> {
        &self.base
    }

    /// What [`commit_changes`](Self::commit_changes) would change.
    pub async fn changed_files(&self) -> Vec<ChangedFile> {
        self.state.lock().await.report()
    }

    /// Returns the path of the first change that was refused with [`FileError::Conflict`] since the
    /// last commit. While there is one, no commit succeeds.
    pub async fn conflict(&self) -> Option<StorePath> {
        self.state_for_a_moment().await.conflict.clone()
    }

    /// Makes the changes in the store below and says what they were. The overlay is then one
    /// without changes.
    ///
    /// # Errors
    /// As for [`FileStore::commit`], and [`FileError::Conflict`] if a change was refused with that
    /// error. The changes are lost in any case.
    pub async fn commit_changes(&self) -> Result<Vec<ChangedFile>, FileError> {
        let (conflict, (changes, changed)) = {
            let mut state = self.state.lock().await;
            (state.conflict.take(), state.take_changes())
        };
        if let Some(path) = conflict {
            return Err(FileError::Conflict { path });
        }
        if !changes.is_empty() {
            self.base.commit(changes).await?;
        }
        Ok(changed)
    }
}

#[async_trait]
impl FileStore for Overlay {
    fn is_read_only(&self) -> bool {
        self.is_read_only || self.base.is_read_only()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.base.root_ambient()
    }

    fn names(&self) -> NameRules {
        self.base.names()
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        match self.look(path).await? {
            Found::Missing { .. } | Found::BelowFile | Found::Special => Err(FileError::NotFound),
            Found::File { node, .. } => Ok(node.stat()),
            Found::BaseFile { stat, .. } | Found::Directory { stat, .. } => Ok(stat),
        }
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        match self.readable(path).await? {
            Readable::Node(node) if node.is_loaded() => {
                blocking(move || node.whole(bytes_max)).await
            }
            Readable::Node(node) => self.base.read(node.base_path()?, bytes_max).await,
            Readable::Base(natural) => self.base.read(&natural, bytes_max).await,
        }
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        match self.readable(path).await? {
            Readable::Node(node) => self.read_node(&node, offset, length).await,
            Readable::Base(natural) => self.base.read_range(&natural, offset, length).await,
        }
    }

    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        Some(Arc::new(reader::OverlayReader::new(self.clone(), path.clone())))
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.require_writable()?;
        let mut state = self.state.lock().await;
        let written = state.write(path, content, mode).await;
        state.note_conflict(written)
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        let mut state = self.state.lock().await;
        let deleted = state.delete(path).await;
        state.note_conflict(deleted)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        self.state.lock().await.list(directory, scope).await
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        self.require_writable()?;
        let mut state = self.state.lock().await;
        let created = state.create_directory(path).await;
        state.note_conflict(created)
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        let mut state = self.state.lock().await;
        let removed = state.remove_directory(path).await;
        state.note_conflict(removed)
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        let mut state = self.state.lock().await;
        let renamed = state.rename(from, to).await;
        state.note_conflict(renamed)
    }

    async fn room(&self) -> Result<Room, FileError> {
        self.state.lock().await.room().await
    }

    async fn commit(&self, changes: Changes) -> Result<(), FileError> {
        self.require_writable()?;
        self.state.lock().await.take_over(changes).await
    }
}

enum Readable {
    Node(Arc<file::FileNode>),
    Base(StorePath),
}

impl Overlay {
    /// As [`State::look`], for who only reads: nobody waits while the store below is asked.
    async fn look(&self, path: &StorePath) -> Result<Found, FileError> {
        let above = self.state_for_a_moment().await.look_above(path);
        match above {
            Ok(found) => Ok(found),
            Err(natural) => {
                let probed = self.base.probe(&natural).await;
                self.state_for_a_moment().await.found_below(natural, probed)
            }
        }
    }

    /// The state, for who gives it back at once. Others mostly do that too, so that it is free
    /// again sooner than a thread could go to sleep and wake up; and once one waits in the queue,
    /// all of them do.
    async fn state_for_a_moment(&self) -> MutexGuard<'_, State> {
        for _ in 0..TRIES_BEFORE_WAITING {
            if let Ok(state) = self.state.try_lock() {
                return state;
            }
            std::hint::spin_loop();
        }
        self.state.lock().await
    }

    async fn readable(&self, path: &StorePath) -> Result<Readable, FileError> {
        match self.look(path).await? {
            Found::File { node, .. } => Ok(Readable::Node(node)),
            Found::BaseFile { natural, .. } => Ok(Readable::Base(natural)),
            Found::Missing { .. } | Found::BelowFile | Found::Special | Found::Directory { .. } => {
                Err(FileError::NotFound)
            }
        }
    }

    async fn read_node(
        &self,
        node: &file::FileNode,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        match node.range(offset, length) {
            Some(content) => content,
            None => self.base.read_range(node.base_path()?, offset, length).await,
        }
    }
}

#[cfg(test)]
mod tests;
