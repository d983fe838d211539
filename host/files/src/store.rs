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
/// The contract of every implementation (`FILE-10`: same results, same texts):
///
/// * **Calls.** Any number at a time, from any thread, in any order. What is open is a
///   [`FileReader`], until it is dropped.
/// * **Blocking.** A future never blocks its thread on I/O; it may wait for other changes of the
///   same store. A path at which the host has a pipe, a socket or a device fails at once.
/// * **Cancellation.** Dropping the future of a change leaves it done as a whole or not at all;
///   which of the two is not told. Dropping any other future has no effect.
/// * **Failure.** A change that fails has changed nothing.
/// * **Order of checks.** The path (links, then what is in the way), then existence, then quotas in
///   the order of `FILE-19`. A read-only store refuses changes before anything else.
/// * **Names.** What a [`StorePath`] cannot denote, and what is neither a regular file nor a
///   directory, does not exist: it is not listed, not counted and "not found". A link is refused
///   with [`FileError::Link`] by every operation.
#[async_trait]
pub trait FileStore: Send + Sync {
    /// Whether every change is refused (`FILE-20`). The answer never varies.
    fn is_read_only(&self) -> bool {
        false
    }

    /// The directory of the host that the store keeps its files in, if there is one: for comparing
    /// it with directories that must stay out of reach. It must not reach a model, a guest or an
    /// error text.
    fn root_ambient(&self) -> Option<&Path> {
        None
    }

    /// Returns where the file at `path` is, for telling whether two views show the same file. A
    /// view of another store answers for that one.
    fn locate(&self, path: &StorePath) -> FileLocation {
        FileLocation::in_store(std::ptr::from_ref(self).cast::<()>().addr(), path)
    }

    /// The names that the store takes. The answer never varies.
    fn names(&self) -> NameRules {
        NameRules::Portable
    }

    /// A new file of the host without a name, beside the files of the store, that a
    /// [`commit`](Self::commit) can give a name without copying it. It is gone when it is dropped
    /// before that. `None` where there is no such thing. Does not count against the quota.
    fn nameless_file(&self) -> Option<File> {
        None
    }

    /// What is at `path`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], [`FileError::Link`].
    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError>;

    /// [`stat`](Self::stat) for someone who may want to create something at `path`: nothing is
    /// `None`, and a place that is taken by what the store does not show is an error.
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

    /// The whole content of a file, or nothing of it when it is longer than `bytes_max`.
    ///
    /// # Errors
    /// [`FileError::NotFound`], also for a directory (`FILE-15`); [`FileError::TooLarge`];
    /// [`FileError::Link`].
    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError>;

    /// At most `length` bytes of a file from `offset` on: fewer where the file ends before, none
    /// past its end.
    ///
    /// Two calls may see two versions of the file. The caller chooses a `length` that it can hold.
    ///
    /// # Errors
    /// As for [`read`](Self::read), without the limit.
    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError>;

    /// Something to read the file at `path` with in several steps, which costs less than as many
    /// calls of [`read_range`](Self::read_range). `None` when it would not, as in a store that has
    /// nothing to open. Whether there is a file at all shows when it is read.
    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        let _ = path;
        None
    }

    /// Writes the whole content of a file in one step and creates missing parents (`FILE-12`,
    /// `FILE-13`): readers see what was there before or all of `content`.
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

    /// What is in a directory, in the order of `FILE-17`; nothing when it is missing or a file.
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
    /// [`FileError::Root`], [`FileError::ReadOnly`], [`FileError::Link`]. A directory in which
    /// there is only what the store does not show is not empty either.
    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError>;

    /// Gives a file, or a directory with everything in it, another path in one step. A file that is
    /// at the new path is replaced, and so is a directory by a directory, if it is empty. The
    /// directory of the new path has to be there. Nothing happens when both paths are the same.
    ///
    /// # Errors
    /// [`FileError::NotFound`] when there is nothing at `from` or no directory to hold `to`;
    /// [`FileError::ParentIsFile`], [`FileError::IsFile`], [`FileError::IsDirectory`],
    /// [`FileError::NotEmpty`], [`FileError::IntoItself`], [`FileError::Root`],
    /// [`FileError::Quota`] (depth), [`FileError::ReadOnly`], [`FileError::Link`].
    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError>;

    /// What the store may hold and what it holds. May have to look at every file, which is why
    /// nobody asks before the first change.
    ///
    /// # Errors
    /// [`FileError::Host`].
    async fn room(&self) -> Result<Room, FileError>;

    /// Makes the changes of a call, unless one of the changed paths is no longer what the call saw
    /// (`FILE-23`). No other change of this store comes in between.
    ///
    /// # Errors
    /// [`FileError::Conflict`], [`FileError::Quota`], [`FileError::ReadOnly`], [`FileError::Link`],
    /// [`FileError::MountPoint`] and [`FileError::Busy`]: nothing has changed. After any other
    /// error a store that is not on this machine may hold a part of the changes.
    async fn commit(&self, changes: Changes) -> Result<(), FileError>;
}

/// A file of the process, as a place to queue at. Equal locations may be two files; two locations
/// are one file only where a bucket is opened twice or directories lie in each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileLocation {
    store: u64,
    path: StorePath,
}

impl FileLocation {
    /// The file at `path` of the store that `store` tells from others.
    pub(crate) fn in_store(store: impl Hash, path: &StorePath) -> Self {
        let mut hasher = DefaultHasher::new();
        store.hash(&mut hasher);
        Self { store: hasher.finish(), path: path.clone() }
    }
}

/// A file of a store that is being read. It may hold on to resources of the system until it is
/// dropped.
#[async_trait]
pub trait FileReader: Send + Sync {
    /// As [`FileStore::read_range`]. The file is the one that the first read has found, also when
    /// it is replaced or deleted after that; the store may also be unable to keep it and read what
    /// is there by then.
    ///
    /// # Errors
    /// As for [`FileStore::read`], without the limit.
    async fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, FileError>;
}

/// What a store may hold, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Room {
    /// The limits.
    pub quota: Quota,
    /// What counts against them.
    pub usage: Usage,
}

/// A state of what is at a path, to be compared for equality with another one. A file that is
/// written, even with the content that it had, is in another state, and so is a directory that is
/// created anew. What happens inside a directory leaves its own state as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(pub(crate) u64);

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
    /// When a file was last written, if the store knows.
    pub modified: Option<SystemTime>,
    /// Which state of it this is.
    pub version: Version,
}

impl Stat {
    /// The root directory, which is always there and always the same.
    pub const ROOT: Self = Self::directory(Version(0));

    /// A directory.
    #[must_use]
    pub const fn directory(version: Version) -> Self {
        Self { kind: EntryKind::Directory, bytes: 0, modified: None, version }
    }

    /// A file of `bytes`.
    #[must_use]
    pub fn file(bytes: u64, modified: Option<SystemTime>, version: Version) -> Self {
        Self { kind: EntryKind::File, bytes, modified, version }
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
    /// Whether the store stopped looking before it had seen everything. That takes a directory into
    /// which somebody else put far more than a quota allows.
    pub is_truncated: bool,
    /// Whether something was passed over that no path denotes or that is neither a file nor a
    /// directory.
    pub hides_entries: bool,
    /// The files and directories that are passed over because no path denotes them.
    pub not_shown: NotShown,
}

/// Files and directories with names that a store refuses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NotShown {
    /// Number of such entries.
    pub count: u64,
    /// The first of them, [`NAMES_MAX`](Self::NAMES_MAX) at most.
    pub names: Vec<RefusedName>,
}

/// A name that a store refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedName {
    /// The path of its directory, relative to the listed one; empty for that one.
    pub directory: String,
    /// The name with everything escaped that is not printable.
    pub name: String,
    /// The rule that it breaks.
    pub reason: String,
}

impl NotShown {
    /// Maximum number of names that are kept.
    pub const NAMES_MAX: usize = 1000;

    /// Counts a name, and keeps it if there is room.
    pub(crate) fn add(&mut self, name: impl FnOnce() -> RefusedName) {
        self.count = self.count.saturating_add(1);
        if self.names.len() < Self::NAMES_MAX {
            self.names.push(name());
        }
    }

    /// Adds what a listing of `directory` has not shown.
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

    /// Forgets the names in directories that `is_kept` rules out.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&RefusedName) -> bool) {
        let before = self.names.len();
        self.names.retain(is_kept);
        let removed = u64::try_from(before.saturating_sub(self.names.len())).unwrap_or(u64::MAX);
        self.count = self.count.saturating_sub(removed);
    }
}

impl RefusedName {
    /// A name as the system gave it.
    pub(crate) fn new(directory: &str, name: &OsStr, reason: impl Into<String>) -> Self {
        Self { directory: directory.to_owned(), name: printable(name), reason: reason.into() }
    }
}

/// `name` with everything escaped that is not printable, or not seen.
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
    /// `entries` in the order of `FILE-17`.
    #[must_use]
    pub fn sorted(mut entries: Vec<Entry>, is_truncated: bool) -> Self {
        entries.sort_unstable_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        Self { entries, is_truncated, ..Self::default() }
    }
}
