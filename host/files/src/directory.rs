//! A file store in one directory of the host.
//!
//! The directory is opened once, and everything below it is reached from that handle, one segment
//! at a time. Each segment is opened relative to the one before, without following a link
//! (`FILE-18`); Linux can do that in one step (see [`descent`]). So check and use are one step: an
//! attacker who swaps a directory for a link at the wrong moment causes a refusal or gets a file
//! inside the directory, never one outside. Before anything is opened for reading its kind is
//! looked up; it is opened without blocking and checked again, so that a pipe cannot block a
//! thread.
//!
//! A file is written under a temporary name in its own directory, flushed to disk and then renamed,
//! so that readers and crashes see the old or the new content (`FILE-13`). Temporary names are
//! reserved and invisible; those that a killed host left behind are removed by a later count once
//! they are an hour old.
//!
//! Several changes of one call are a transaction (`FILE-21`): they are prepared in a directory with
//! a reserved name in the root, recorded there, and made by renames; then the record is removed. A
//! host that is killed before the record has its name has changed nothing. If it is killed later,
//! the commit is finished when the directory is next opened for changes, or before its next change,
//! so that either all of the call's changes exist or none. Success is reported only after that. If
//! a change turns out to be impossible (a full disk, a concurrent change), those before it are
//! rolled back. Readers through the same store see all changes of a commit or none; other programs
//! see them one after another, within milliseconds.
//!
//! Several hosts, or several stores of one host, that change one directory take turns with a lock
//! (`flock`), each waiting ten seconds at most. If the file system has no locks, no other store or
//! program may change the directory.
//!
//! Costs: every operation runs on a thread of tokio's blocking pool (inline if there is no
//! runtime). Changes are flushed, which takes milliseconds on a disk, about the same for a call
//! that changes one file and for one that changes hundreds. Reads never wait, except while a commit
//! of several changes is made; such a commit waits for the reads that have begun. The quota needs
//! the size of everything in the directory, which is counted at the first change and again when
//! other programs may have changed it. Counting takes at most a fiftieth of the time (see
//! [`crate::ledger`]).
//!
//! Limitations: the store cannot tell a hard link from any other file. Two hosts on one directory
//! briefly do not see each other's changes in the count, so that together they may exceed a quota.
//! The store crosses mount points inside the directory (the operator who mounts there decides), but
//! a call that changes more than one thing cannot commit across one ([`FileError::MountPoint`]).
//! Everything that is created by a commit of several changes, and on Linux every file that was too
//! large for memory, gets its group and its default access rights from the root, not from the
//! directory that it is put into. On a file system that ignores case, the store ignores the case of
//! names too, although `FILE-11` requires otherwise. On Windows directories are not flushed, and
//! several hosts do not take turns.

mod anonymous;
mod apply;
mod change;
mod commit;
mod count;
mod descent;
mod fault;
mod lock;
mod moves;
mod publish;
#[cfg(unix)]
mod reader;
mod record;
mod recovery;
mod staging;
mod tree;
mod walk;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use commit::DirectoryCommit;
use lock::DirectoryLock;
use tokio::sync::Mutex;
use tree::{Tree, root_identity};

use crate::blocking::blocking;
use crate::content::FileContent;
use crate::ledger::UsageLedger;
use crate::store::NoChanges;
use crate::{
    Changes, FileError, FileLocation, FileStore, Listing, MadeDirectory, NameRules, PreparedCommit,
    Quota, Room, Scope, Stat, StorePath, WriteMode,
};

/// Options of a [`DirectoryStore`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// Refuses every change (`FILE-20`).
    pub is_read_only: bool,
    /// Limits of the store. Existing contents of the directory count too, unless the quota limits
    /// only growth.
    pub quota: Quota,
    /// Names that the store accepts and shows.
    pub names: NameRules,
    /// Waits for the disk at every change. Otherwise a crash of the machine (not one of the host)
    /// may lose the last changes and leave empty files.
    pub is_durable: bool,
    /// Creates files that only the owner may read and write. Otherwise the process decides.
    pub is_private: bool,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self {
            is_read_only: false,
            quota: Quota::default(),
            names: NameRules::Portable,
            is_durable: true,
            is_private: false,
        }
    }
}

/// A file store in one directory of the host.
#[derive(Clone)]
pub struct DirectoryStore {
    tree: Arc<Tree>,
    /// Locked by one change at a time, from its checks to its end.
    ledger: Arc<Mutex<UsageLedger>>,
    root: Arc<Path>,
    /// Identifies the directory, however often and under whichever paths it is open.
    identity: u64,
    options: DirectoryOptions,
}

/// Error returned by [`DirectoryStore::open_ambient`]. The message names the directory, because it
/// is meant for the operator who configured it.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the directory `{}`", path.display())]
pub struct OpenDirectoryError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl DirectoryStore {
    /// Opens the directory `path` of the host, with the rights of this process. A link in `path`
    /// itself is followed, because the operator wrote the path. Blocks until the directory is open,
    /// and counts nothing yet.
    ///
    /// If a host was killed while it committed changes to the directory, its commit is finished
    /// first, unless the store is to be read-only.
    ///
    /// # Errors
    /// If `path` is not a directory that can be opened, or the commit of a killed host cannot be
    /// finished.
    pub fn open_ambient(
        path: &Path,
        options: DirectoryOptions,
    ) -> Result<Self, OpenDirectoryError> {
        let opened = path.canonicalize().and_then(|root| {
            let directory = Dir::open_ambient_dir(&root, ambient_authority())?;
            let identity = root_identity(&directory, &root)?;
            let tree = Tree::new(directory, options);
            if !options.is_read_only {
                finish_commits(&tree)?;
            }
            Ok((root, identity, tree))
        });
        let (root, identity, tree) =
            opened.map_err(|source| OpenDirectoryError { path: path.to_owned(), source })?;
        Ok(Self {
            tree: Arc::new(tree),
            ledger: Arc::new(Mutex::new(UsageLedger::new(options.quota.counts))),
            root: root.into(),
            identity,
            options,
        })
    }

    /// Returns the canonical path that the directory had when it was opened.
    ///
    /// Use it only to compare mounts with directories that must stay out of reach. It must not
    /// reach a model, a guest or an error message, and it must not be opened again, because
    /// something else may be at that path now.
    #[must_use]
    pub fn root_ambient(&self) -> &Path {
        &self.root
    }

    /// Runs `read` on a thread that may block.
    async fn read_with<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Tree) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        let tree = Arc::clone(&self.tree);
        blocking(move || {
            let _whole = tree.reading();
            read(&tree)
        })
        .await
    }

    /// Runs `change` on a thread that may block, as the only change of the directory. The ledger
    /// moves into the work, so that a caller that stops waiting does not let the next change start
    /// before this one is over.
    async fn change_with<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Tree, &mut UsageLedger) -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, FileError> {
        if self.options.is_read_only {
            return Err(FileError::ReadOnly);
        }
        let tree = Arc::clone(&self.tree);
        let mut ledger = Arc::clone(&self.ledger).lock_owned().await;
        blocking(move || {
            let _turn = begin(&tree, &mut ledger)?;
            change(&tree, &mut ledger)
        })
        .await
    }
}

/// Begins a change: waits until no other host or store changes the directory, and finishes what a
/// killed host has left.
fn begin(tree: &Tree, ledger: &mut UsageLedger) -> Result<DirectoryLock, FileError> {
    let turn = tree.turn()?;
    if tree.recover()? {
        ledger.forget();
    }
    if ledger.is_first_change_of_growth() {
        tree.tidy();
    }
    Ok(turn)
}

/// Finishes the commit of a killed host. Skips it if another host is busy, which finishes by
/// itself.
fn finish_commits(tree: &Tree) -> io::Result<()> {
    if !tree.has_unfinished_commit()? {
        return Ok(());
    }
    match tree.turn().and_then(|_turn| tree.recover()) {
        Ok(_) | Err(FileError::Busy) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

#[async_trait]
impl FileStore for DirectoryStore {
    fn is_read_only(&self) -> bool {
        self.options.is_read_only
    }

    fn root_ambient(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        FileLocation::in_store(self.identity, path)
    }

    fn names(&self) -> NameRules {
        self.options.names
    }

    fn anonymous_file(&self) -> Option<File> {
        if self.options.is_read_only { None } else { anonymous::create(&self.tree.root) }
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        let path = path.clone();
        self.read_with(move |tree| tree.stat(&path)).await
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        let path = path.clone();
        self.read_with(move |tree| tree.probe(&path)).await
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let path = path.clone();
        self.read_with(move |tree| tree.read(&path, bytes_max)).await
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        let path = path.clone();
        self.read_with(move |tree| tree.read_range(&path, offset, length)).await
    }

    #[cfg(unix)]
    fn reader(&self, path: &StorePath) -> Option<Arc<dyn crate::FileReader>> {
        Some(Arc::new(reader::DirectoryReader::new(Arc::clone(&self.tree), path.clone())))
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let path = path.clone();
        self.change_with(move |tree, ledger| {
            tree.write(ledger, &path, &FileContent::Bytes(content), mode, &tree.options.quota)
        })
        .await
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        let path = path.clone();
        self.change_with(move |tree, ledger| tree.delete(ledger, &path)).await
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        let directory = directory.clone();
        self.read_with(move |tree| tree.list(&directory, scope)).await
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        let path = path.clone();
        self.change_with(move |tree, ledger| {
            tree.create_directory(ledger, &path, &tree.options.quota)
        })
        .await
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        let path = path.clone();
        self.change_with(move |tree, ledger| tree.remove_directory(ledger, &path)).await
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        let (from, to) = (from.clone(), to.clone());
        self.change_with(move |tree, ledger| tree.rename(ledger, &from, &to, &tree.options.quota))
            .await
    }

    async fn room(&self) -> Result<Room, FileError> {
        let tree = Arc::clone(&self.tree);
        let mut ledger = Arc::clone(&self.ledger).lock_owned().await;
        blocking(move || Ok(Room { quota: tree.options.quota, usage: tree.usage(&mut ledger)? }))
            .await
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        if changes.is_empty() {
            return Ok(Box::new(NoChanges));
        }
        if self.options.is_read_only {
            return Err(FileError::ReadOnly);
        }
        let tree = Arc::clone(&self.tree);
        let ledger = Arc::clone(&self.ledger).lock_owned().await;
        let prepared = blocking(move || DirectoryCommit::prepare(tree, ledger, changes)).await?;
        Ok(Box::new(prepared))
    }
}

/// Omits the path, which is information about the host.
impl fmt::Debug for DirectoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryStore").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
