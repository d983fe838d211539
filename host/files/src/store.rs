//! The trait that every file store implements.

use async_trait::async_trait;
use serde::Serialize;

use crate::{FileError, StorePath};

/// Files and directories under [`StorePath`]s.
///
/// The contract of every implementation (`FILE-10`: same results, same texts):
///
/// * **Calls.** Any number at a time, from any thread, in any order. Nothing is opened, so nothing need be closed.
/// * **Blocking.** A future never blocks its thread on I/O; it may wait for other changes of the same store. A path at
///   which the host has a pipe, a socket or a device fails at once.
/// * **Cancellation.** Dropping the future of a change leaves it done as a whole or not at all; which of the two is not
///   told. Dropping any other future has no effect.
/// * **Failure.** A change that fails has changed nothing.
/// * **Order of checks.** The path (links, then what is in the way), then existence, then quotas in the order of
///   `FILE-19`. A read-only store refuses changes before anything else.
/// * **Names.** What a [`StorePath`] cannot denote, and what is neither a regular file nor a directory, does not exist:
///   it is not listed, not counted and "not found". A link is refused with [`FileError::Link`] by every operation.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Whether every change is refused (`FILE-20`). The answer never varies.
    fn is_read_only(&self) -> bool {
        false
    }

    /// What is at `path`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::Link`].
    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError>;

    /// The whole content of a file, or nothing of it when it is longer than `bytes_max`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for a directory (`FILE-15`); [`FileError::TooLarge`]; [`FileError::Link`].
    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError>;

    /// At most `length` bytes of a file from `offset` on: fewer where the file ends before, none past its end.
    ///
    /// Two calls may see two versions of the file. The caller chooses a `length` that it can hold.
    ///
    /// # Errors
    /// As for [`read`](Self::read), without the limit.
    async fn read_range(&self, path: &StorePath, offset: u64, length: u64) -> Result<Vec<u8>, FileError>;

    /// Writes the whole content of a file in one step and creates missing parents (`FILE-12`, `FILE-13`): readers see
    /// what was there before or all of `content`.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`] with [`WriteMode::Create`]; [`FileError::IsDirectory`],
    /// [`FileError::ParentIsFile`], [`FileError::Quota`], [`FileError::ReadOnly`], [`FileError::Link`].
    async fn write(&self, path: &StorePath, content: Vec<u8>, mode: WriteMode) -> Result<(), FileError>;

    /// Deletes a file; its directory stays (`FILE-12`, `FILE-16`).
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for a directory; [`FileError::ReadOnly`], [`FileError::Link`].
    async fn delete(&self, path: &StorePath) -> Result<(), FileError>;

    /// What is in a directory, in the order of `FILE-17`; nothing when it is missing or a file.
    ///
    /// # Errors
    /// [`FileError::Link`].
    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError>;

    /// Creates a directory and its missing parents (`FILE-42`).
    ///
    /// # Errors
    /// [`FileError::IsFile`], [`FileError::ParentIsFile`], [`FileError::Quota`], [`FileError::ReadOnly`],
    /// [`FileError::Link`].
    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError>;
}

/// What to do about content that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Fail: of several that create a file at a time exactly one succeeds.
    Create,
    /// Take its place.
    Replace,
}

/// How far a listing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The direct children.
    Children,
    /// Everything below.
    Recursive,
}

/// Whether [`FileStore::create_directory`] had anything to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeDirectory {
    /// It was not there before.
    Created,
    /// It was there, like the root always is.
    Existed,
}

/// The two kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// Listed first.
    Directory,
    /// A regular file.
    File,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// File or directory.
    pub kind: EntryKind,
    /// The length of a file; 0 for a directory.
    pub bytes: u64,
}

impl Stat {
    /// A directory.
    pub const DIRECTORY: Self = Self { kind: EntryKind::Directory, bytes: 0 };

    /// A file of `bytes`.
    #[must_use]
    pub fn file(bytes: u64) -> Self {
        Self { kind: EntryKind::File, bytes }
    }
}

/// One line of a listing. It serialises as in `FILE-17`, and its order is the one of `FILE-17`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// The path relative to the listed directory.
    pub name: String,
    /// File or directory.
    #[serde(rename = "type")]
    pub kind: EntryKind,
}

impl Entry {
    /// An entry of a listing.
    pub fn new(name: impl Into<String>, kind: EntryKind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// The entries of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Listing {
    /// Directories first, then files, each bytewise by name.
    pub entries: Vec<Entry>,
    /// Whether the store stopped looking before it had seen everything. That takes a directory into which somebody else
    /// put far more than a quota allows.
    pub is_truncated: bool,
}

impl Listing {
    /// `entries` in the order of `FILE-17`.
    #[must_use]
    pub fn sorted(mut entries: Vec<Entry>, is_truncated: bool) -> Self {
        entries.sort_unstable_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Self { entries, is_truncated }
    }
}
