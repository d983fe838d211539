//! Changes of one call, separate from the store until the call has succeeded (`FILE-21`,
//! `FILE-22`).
//!
//! An [`Overlay`] looks like its base store with the changes of the call applied. The changes are
//! held in memory, or in anonymous files if they are too large for that, and are lost when the
//! overlay is dropped; [`Overlay::commit_changes`] makes them in the store. They count against the
//! quotas of the store, and a [`Budget`], which all overlays of a call share, bounds the memory and
//! the disk space that they take. Both are checked before anything is allocated.
//!
//! Costs: a file that is changed is copied as a whole at the first change. A file that is only read
//! is not copied. Moving a file or a directory copies nothing. Parts of content on disk are read
//! and written inline and not on another thread. This usually touches only the page cache; the
//! thread blocks if the disk cannot keep up. Whole files go through a thread that may block.
//!
//! Dropping the future of a change leaves the change made as a whole or not at all: everything that
//! waits comes before the change, and a commit into an overlay is taken back.
//!
//! For paths that the call does not change, it sees the last committed state (`FILE-23`). A file
//! that is read in several steps while another call replaces it may appear partly old, partly new,
//! unless the base store has readers ([`FileStore::reader`]) and the file is read through one of
//! them. For each path that the call looks up, the overlay records the version that it saw first.
//! If that is no longer the current version when changes of that path are committed, the commit
//! fails with [`FileError::Conflict`]. So does every commit after a change was refused with that
//! error: a caller that ignored the refusal cannot keep the rest of its changes.
//!
//! An overlay may have another overlay as its base, for the inner call of a call: its commit then
//! makes the changes in that overlay.

mod budget;
mod contents;
mod difference;
mod file;
mod names;
mod nested;
mod open;
mod reader;
mod record;
mod state;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
pub use budget::{Budget, Charge, SpillOptions};
pub use difference::{ChangeKind, ChangedFile};
pub use open::{OpenMode, OverlayFile};
pub(crate) use record::OverlayRecord;
pub use record::{UnrecordedChanges, UnrestoredChanges};
use state::{OverlayState, PathState};
use tokio::sync::{Mutex, MutexGuard};

use crate::blocking::blocking;
use crate::store::NoChanges;
use crate::{
    Changes, FileError, FileLocation, FileReader, FileStore, Listing, MadeDirectory, NameRules,
    PreparedCommit, Room, Scope, Stat, StorePath, WriteMode,
};

/// Number of attempts to lock the state before waiting, which takes a few microseconds.
const TRIES_BEFORE_WAITING: u32 = 100;

/// A store with the changes that one call has made to it. Clones share state.
#[derive(Clone)]
pub struct Overlay {
    base: Arc<dyn FileStore>,
    budget: Budget,
    state: Arc<Mutex<OverlayState>>,
    /// True if this clone refuses changes.
    is_read_only: bool,
}

impl Overlay {
    /// Creates an overlay without changes, whose changes may use the rest of `budget`.
    pub fn new(base: Arc<dyn FileStore>, budget: &Budget) -> Self {
        let state = OverlayState::new(Arc::clone(&base), budget.clone());
        Self {
            base,
            budget: budget.clone(),
            state: Arc::new(Mutex::new(state)),
            is_read_only: false,
        }
    }

    /// Returns the budget that this overlay shares with the other overlays of the call.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Returns a read-only view of the same overlay. It shows changes that are made through other
    /// clones.
    #[must_use]
    pub fn read_only(&self) -> Self {
        Self { is_read_only: true, ..self.clone() }
    }

    fn require_writable(&self) -> Result<(), FileError> {
        if self.is_read_only { Err(FileError::ReadOnly) } else { Ok(()) }
    }

    /// Opens a file. It stays open until it is dropped, even if it is renamed.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also if the parent directory of a new file does not exist;
    /// [`FileError::AlreadyExists`], [`FileError::IsDirectory`], [`FileError::ParentIsFile`],
    /// [`FileError::Quota`], [`FileError::Memory`], [`FileError::ReadOnly`],
    /// [`FileError::CreateOnly`], [`FileError::Link`].
    pub async fn open(&self, path: &StorePath, mode: OpenMode) -> Result<OverlayFile, FileError> {
        if mode.writes || mode.truncates {
            self.require_writable()?;
        }
        let found = if self.is_read_only && mode.creates {
            // Existing files can be opened; missing ones can be neither found nor created.
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
        Ok(OverlayFile::new(self.clone(), found?))
    }

    /// Returns a number that identifies a file or directory of this overlay for as long as it
    /// exists.
    ///
    /// # Errors
    /// Like [`FileStore::stat`].
    pub async fn identity(&self, path: &StorePath) -> Result<u64, FileError> {
        Ok(self.identity_and_stat(path).await?.0)
    }

    /// Returns [`identity`](Self::identity) and [`stat`](FileStore::stat) with one lookup.
    ///
    /// # Errors
    /// Like [`FileStore::stat`].
    pub async fn identity_and_stat(&self, path: &StorePath) -> Result<(u64, Stat), FileError> {
        match self.look(path).await? {
            PathState::Missing { .. } | PathState::BelowFile | PathState::Special => {
                Err(FileError::NotFound)
            }
            PathState::File { node, .. } => Ok((node.identity(), node.stat())),
            PathState::BaseFile { natural, stat } => Ok((file::identity_of(&natural), stat)),
            PathState::Directory { identity, stat, .. } => Ok((identity, stat)),
        }
    }

    /// Returns the base store.
    #[must_use]
    pub fn base(&self) -> &Arc<dyn FileStore> {
        &self.base
    }

    /// Returns the changes that [`commit_changes`](Self::commit_changes) would make.
    pub async fn changed_files(&self) -> Vec<ChangedFile> {
        self.state.lock().await.report()
    }

    /// Returns the path of the first change that was refused with [`FileError::Conflict`] since the
    /// last commit. While there is one, no commit succeeds.
    pub async fn conflict(&self) -> Option<StorePath> {
        self.state_for_a_moment().await.conflict.clone()
    }

    /// Makes the changes in the base store and returns them. The overlay is then without changes.
    ///
    /// # Errors
    /// Like [`FileStore::commit`], and [`FileError::Conflict`] if a change was refused with that
    /// error. The changes are lost in any case.
    pub async fn commit_changes(&self) -> Result<Vec<ChangedFile>, FileError> {
        let (changes, changed) = self.take_changes().await?;
        if !changes.is_empty() {
            self.base.commit(changes).await?;
        }
        Ok(changed)
    }

    /// Takes the changes out of the overlay, to commit them to the base store.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if a change was refused with that error. The changes are lost then.
    pub(crate) async fn take_changes(&self) -> Result<(Changes, Vec<ChangedFile>), FileError> {
        let mut state = self.state.lock().await;
        let conflict = state.conflict.take();
        let taken = state.take_changes();
        conflict.map_or(Ok(taken), |path| Err(FileError::Conflict { path }))
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

    /// Clones of an overlay are one store, which is not its base: calls wait only for calls that
    /// change the same overlay.
    fn locate(&self, path: &StorePath) -> FileLocation {
        FileLocation::in_store(Arc::as_ptr(&self.state).addr(), path)
    }

    fn names(&self) -> NameRules {
        self.base.names()
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        match self.look(path).await? {
            PathState::Missing { .. } | PathState::BelowFile | PathState::Special => {
                Err(FileError::NotFound)
            }
            PathState::File { node, .. } => Ok(node.stat()),
            PathState::BaseFile { stat, .. } | PathState::Directory { stat, .. } => Ok(stat),
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

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        self.require_writable()?;
        if changes.is_empty() {
            return Ok(Box::new(NoChanges));
        }
        let state = Arc::clone(&self.state).lock_owned().await;
        Ok(Box::new(nested::OverlayCommit::prepare(state, changes).await?))
    }
}

enum Readable {
    Node(Arc<file::FileNode>),
    Base(StorePath),
}

impl Overlay {
    /// Like [`OverlayState::lookup`], for reads only: does not hold the lock while it accesses the
    /// base store.
    async fn look(&self, path: &StorePath) -> Result<PathState, FileError> {
        let above = self.state_for_a_moment().await.lookup_parents(path);
        match above {
            Ok(found) => Ok(found),
            Err(natural) => {
                let probed = self.base.probe(&natural).await;
                self.state_for_a_moment().await.found_below(natural, probed)
            }
        }
    }

    /// Locks the state for a short time, spinning first. Most other holders release it soon too, so
    /// it is free again sooner than a thread could go to sleep and wake up. Once a task waits in
    /// the queue, all of them do.
    async fn state_for_a_moment(&self) -> MutexGuard<'_, OverlayState> {
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
            PathState::File { node, .. } => Ok(Readable::Node(node)),
            PathState::BaseFile { natural, .. } => Ok(Readable::Base(natural)),
            PathState::Missing { .. }
            | PathState::BelowFile
            | PathState::Special
            | PathState::Directory { .. } => Err(FileError::NotFound),
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
