//! The trait that every file store implements.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use cofferdam_tool::text::is_hostile_char;
use serde::Serialize;

use crate::{Changes, FileError, NameRules, Quota, StorePath, Usage};

/// Files and directories under [`StorePath`]s.
///
/// The contract of every implementation (`FILE-10`: same results, same messages):
///
/// * **Calls.** Any number at a time, from any thread, in any order. Open files are
///   [`FileReader`]s, until they are dropped.
/// * **Blocking.** A future never blocks its thread on I/O; it may wait for other changes of the
///   same store. A path at which the host has a pipe, a socket or a device fails at once.
/// * **Cancellation.** Dropping the future of a change leaves it done as a whole or not at all,
///   without telling which. Dropping any other future has no effect.
/// * **Failure.** A change that fails has changed nothing.
/// * **Order of checks.** The path (links, then obstacles on the way), then existence, then quotas
///   in the order of `FILE-19`. A read-only store refuses changes before anything else.
/// * **Names.** Names that a [`StorePath`] cannot denote, and entries that are neither regular
///   files nor directories, do not exist: they are not listed, not counted and "not found". A link
///   is refused with [`FileError::Link`] by every operation.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Returns whether every change is refused (`FILE-20`). The answer never changes.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Returns the directory of the host in which the store keeps its files, if there is one. Use
    /// it only to compare it with directories that must stay out of reach. It must not reach a
    /// model, a guest or an error message.
    fn root_ambient(&self) -> Option<&Path> {
        None
    }

    /// Returns the location of the file at `path`, to find out whether two views show the same
    /// file. A view of another store returns the location in that store.
    fn locate(&self, path: &StorePath) -> FileLocation {
        FileLocation::in_store(std::ptr::from_ref(self).cast::<()>().addr(), path)
    }

    /// Returns the rules for names in this store. The answer never changes.
    fn names(&self) -> NameRules {
        NameRules::Portable
    }

    /// Creates an anonymous file of the host in the file system of the store, which a
    /// [`commit`](Self::commit) can link under a name without copying it. Dropping it before that
    /// deletes it. Returns `None` if the store does not support this. Does not count against the
    /// quota.
    fn anonymous_file(&self) -> Option<File> {
        None
    }

    /// Returns the metadata of the file or directory at `path`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::Link`].
    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError>;

    /// Like [`stat`](Self::stat), for callers that may create something at `path`: returns `None`
    /// if nothing is there, and an error if the path is occupied by something that the store does
    /// not show.
    ///
    /// # Errors
    /// [`FileError::Special`], [`FileError::Link`].
    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        match self.stat(path).await {
            Ok(stat) => Ok(Some(stat)),
            Err(FileError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the whole content of a file, or none of it if it is longer than `bytes_max`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for a directory (`FILE-15`); [`FileError::TooLarge`];
    /// [`FileError::Link`].
    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError>;

    /// Reads at most `length` bytes of a file from `offset` on: fewer if the file ends before, none
    /// past its end.
    ///
    /// Two calls may see two versions of the file. The caller chooses a `length` that fits in its
    /// memory.
    ///
    /// # Errors
    /// Like [`read`](Self::read), without the limit.
    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError>;

    /// Returns a reader for the file at `path`, for reading in several steps at a lower cost than
    /// as many calls of [`read_range`](Self::read_range). Returns `None` if the cost would be the
    /// same, as in a store that has nothing to open. A missing file is an error of the first read.
    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        let _ = path;
        None
    }

    /// Writes the whole content of a file in one step and creates missing parents (`FILE-12`,
    /// `FILE-13`): readers see the previous content or all of `content`.
    ///
    /// # Errors
    /// [`FileError::AlreadyExists`] with [`WriteMode::Create`]; [`FileError::IsDirectory`],
    /// [`FileError::ParentIsFile`], [`FileError::Quota`], [`FileError::ReadOnly`],
    /// [`FileError::Link`].
    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError>;

    /// Deletes a file; its directory stays (`FILE-12`, `FILE-16`).
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for a directory; [`FileError::ReadOnly`], [`FileError::Link`].
    async fn delete(&self, path: &StorePath) -> Result<(), FileError>;

    /// Lists a directory, in the order of `FILE-17`. The listing is empty if it is missing or a
    /// file.
    ///
    /// # Errors
    /// [`FileError::Link`].
    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError>;

    /// Creates a directory and its missing parents (`FILE-42`).
    ///
    /// # Errors
    /// [`FileError::IsFile`], [`FileError::ParentIsFile`], [`FileError::Quota`],
    /// [`FileError::ReadOnly`], [`FileError::Link`].
    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::NotDirectory`], [`FileError::NotEmpty`],
    /// [`FileError::Root`], [`FileError::ReadOnly`], [`FileError::Link`]. A directory that only
    /// contains entries that the store does not show is not empty either.
    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError>;

    /// Moves a file, or a directory with everything in it, to another path in one step. Replaces a
    /// file by a file, and an empty directory by a directory. The parent directory of `to` must
    /// exist. Does nothing if both paths are the same.
    ///
    /// # Errors
    /// [`FileError::NotFound`] if nothing is at `from` or the parent directory of `to` does not
    /// exist; [`FileError::ParentIsFile`], [`FileError::IsFile`], [`FileError::IsDirectory`],
    /// [`FileError::NotEmpty`], [`FileError::IntoItself`], [`FileError::Root`],
    /// [`FileError::Quota`] (depth), [`FileError::ReadOnly`], [`FileError::Link`].
    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError>;

    /// Returns the limits and the usage of the store. May have to look at every file, so callers do
    /// not ask before the first change.
    ///
    /// # Errors
    /// [`FileError::Host`].
    async fn room(&self) -> Result<Room, FileError>;

    /// Prepares the changes of a call: waits for its turn, and checks that each changed path is
    /// still as the call saw it (`FILE-23`). No other change of this store happens before the
    /// result is committed or dropped.
    ///
    /// A caller that prepares changes of several stores waits for them in the order of their
    /// [locations](Self::locate), and never for one store twice.
    ///
    /// # Errors
    /// [`FileError::Conflict`], [`FileError::Quota`], [`FileError::ReadOnly`], [`FileError::Link`],
    /// [`FileError::Busy`], [`FileError::Host`].
    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError>;

    /// Makes the changes of a call.
    ///
    /// # Errors
    /// Like [`prepare`](Self::prepare) and [`PreparedCommit::commit`].
    async fn commit(&self, changes: Changes) -> Result<(), FileError> {
        self.prepare(changes).await?.commit().await
    }
}

/// Changes of a call that a store has prepared. Dropping them leaves the store as it was.
#[async_trait]
pub trait PreparedCommit: Send {
    /// Returns whether a service outside of this machine makes the changes. Of several stores,
    /// those are committed first, because their commits are the most likely to fail.
    fn is_remote(&self) -> bool {
        false
    }

    /// Makes the changes.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if another program has changed one of the paths since they were
    /// prepared, and [`FileError::MountPoint`]: nothing has changed. After any other error a store
    /// that is not on this machine may contain a part of the changes.
    async fn commit(self: Box<Self>) -> Result<(), FileError>;
}

/// Prepared commit without changes.
pub(crate) struct NoChanges;

#[async_trait]
impl PreparedCommit for NoChanges {
    async fn commit(self: Box<Self>) -> Result<(), FileError> {
        Ok(())
    }
}

/// Key of the queue for a file in this process. Equal locations may be two files; two locations are
/// the same file only if a bucket is opened twice or one store's directory contains another's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileLocation {
    store: u64,
    path: StorePath,
}

impl FileLocation {
    /// Creates the location of the file at `path` in the store that `store` identifies.
    pub(crate) fn in_store(store: impl Hash, path: &StorePath) -> Self {
        let mut hasher = DefaultHasher::new();
        store.hash(&mut hasher);
        Self { store: hasher.finish(), path: path.clone() }
    }

    /// Returns the number of the store, which is the same in all of its views.
    pub(crate) fn store(&self) -> u64 {
        self.store
    }
}

/// Reader of one file of a store. It may hold system resources until it is dropped.
#[async_trait]
pub trait FileReader: Send + Sync {
    /// Like [`FileStore::read_range`]. Reads the file that the first read has found, even if it is
    /// replaced or deleted after that; a store that cannot keep it open reads the current file
    /// instead.
    ///
    /// # Errors
    /// Like [`FileStore::read`], without the limit.
    async fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, FileError>;
}

/// Limits and usage of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// Limits of the store.
    pub quota: Quota,
    /// Usage that counts against the limits.
    pub usage: Usage,
}

/// Version of the file or directory at a path, to be compared for equality with another one.
/// Writing a file changes its version, even if the content stays the same, and creating a directory
/// again changes that of the directory. Changes inside a directory do not change its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(pub(crate) u64);

/// Behavior of a write if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// Fails. If several callers create a file at the same time, exactly one succeeds.
    Create,
    /// Replaces the file.
    Replace,
}

/// Depth of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The direct children.
    Children,
    /// Everything below.
    Recursive,
}

/// Result of [`FileStore::create_directory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeDirectory {
    /// The directory did not exist before.
    Created,
    /// The directory existed, as the root always does.
    Existed,
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntryKind {
    /// A directory. Listed first.
    Directory,
    /// A regular file.
    File,
}

/// Metadata of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stat {
    /// File or directory.
    pub kind: EntryKind,
    /// Length of a file; 0 for a directory.
    pub bytes: u64,
    /// Time of the last write to a file, if the store knows it.
    pub modified: Option<SystemTime>,
    /// Current version.
    pub version: Version,
}

impl Stat {
    /// Metadata of the root directory, which always exists and never changes.
    pub const ROOT: Self = Self::directory(Version(0));

    /// Creates the metadata of a directory.
    #[must_use]
    pub const fn directory(version: Version) -> Self {
        Self { kind: EntryKind::Directory, bytes: 0, modified: None, version }
    }

    /// Creates the metadata of a file of `bytes`.
    #[must_use]
    pub fn file(bytes: u64, modified: Option<SystemTime>, version: Version) -> Self {
        Self { kind: EntryKind::File, bytes, modified, version }
    }
}

/// One entry of a listing. It is serialized as in `FILE-17`, and sorted in the order of `FILE-17`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListingEntry {
    /// Path relative to the listed directory.
    pub name: String,
    /// File or directory.
    #[serde(rename = "type")]
    pub kind: EntryKind,
}

impl ListingEntry {
    /// Creates an entry of a listing.
    pub fn new(name: impl Into<String>, kind: EntryKind) -> Self {
        Self { name: name.into(), kind }
    }
}

/// Contents of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Listing {
    /// Directories first, then files, each sorted bytewise by name.
    pub entries: Vec<ListingEntry>,
    /// True if the store stopped before it had listed everything. That only happens if others have
    /// put far more into the directory than a quota allows.
    pub is_truncated: bool,
    /// True if entries were skipped because no path denotes them or they are neither a file nor a
    /// directory.
    pub hides_entries: bool,
    /// Files and directories that were skipped because no path denotes them.
    pub not_shown: OmittedNames,
}

/// Files and directories that are left out: a store refuses their names, or they cannot be
/// searched.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct OmittedNames {
    /// Number of such entries.
    pub count: u64,
    /// The first of them, at most [`NAMES_MAX`](Self::NAMES_MAX).
    pub names: Vec<RefusedName>,
}

/// A name that a store refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedName {
    /// Path of its directory relative to the listed one; empty for the listed one itself.
    pub directory: String,
    /// The name, with everything escaped that is not printable.
    pub name: String,
    /// Reason, such as the rule that the name breaks.
    pub reason: String,
}

impl OmittedNames {
    /// Maximum number of names that are stored.
    pub const NAMES_MAX: usize = 1000;

    /// Counts a name, and stores it if there is room.
    pub(crate) fn add(&mut self, name: impl FnOnce() -> RefusedName) {
        self.count = self.count.saturating_add(1);
        if self.names.len() < Self::NAMES_MAX {
            self.names.push(name());
        }
    }

    /// Adds the entries that a listing of `directory` has skipped.
    pub(crate) fn add_below(&mut self, directory: &str, other: Self) {
        let unnamed =
            other.count.saturating_sub(u64::try_from(other.names.len()).unwrap_or(u64::MAX));
        self.count = self.count.saturating_add(unnamed);
        for mut name in other.names {
            name.directory = match (directory, name.directory.as_str()) {
                ("", below) => below.to_owned(),
                (directory, "") => directory.to_owned(),
                (directory, below) => format!("{directory}/{below}"),
            };
            self.add(|| name);
        }
    }

    /// Removes the names that `is_retained` rejects.
    pub(crate) fn retain(&mut self, is_retained: impl Fn(&RefusedName) -> bool) {
        let before = self.names.len();
        self.names.retain(is_retained);
        let removed = u64::try_from(before.saturating_sub(self.names.len())).unwrap_or(u64::MAX);
        self.count = self.count.saturating_sub(removed);
    }
}

impl RefusedName {
    /// Creates a refused name from a name of the system.
    pub(crate) fn new(directory: &str, name: &OsStr, reason: impl Into<String>) -> Self {
        Self { directory: directory.to_owned(), name: printable(name), reason: reason.into() }
    }
}

/// Escapes everything in `name` that is not printable or not visible.
fn printable(name: &OsStr) -> String {
    let mut shown = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '"' | '\\' => shown.push(c),
                c if is_hostile_char(c) => shown.extend(c.escape_unicode()),
                c => shown.extend(c.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

impl Listing {
    /// Sorts `entries` in the order of `FILE-17`.
    #[must_use]
    pub fn sorted(mut entries: Vec<ListingEntry>, is_truncated: bool) -> Self {
        entries.sort_unstable_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Self { entries, is_truncated, ..Self::default() }
    }
}
