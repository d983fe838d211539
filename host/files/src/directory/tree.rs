//! Reads below a directory handle, without following links and without blocking.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::fault::Faults;
use super::lock::{DirectoryLock, Turns};
use super::walk::{Kind, WalkEntry};
use super::{DirectoryOptions, descent};
use crate::path::RESERVED_PREFIX;
use crate::{FileError, Listing, ListingEntry, OmittedNames, Scope, Stat, StorePath, Version};

/// Maximum number of attempts to open an entry that changes between two lookups.
const LOOKS_MAX: usize = 8;

/// A directory and everything below it.
pub(super) struct Tree {
    pub(super) root: Dir,
    pub(super) options: DirectoryOptions,
    turns: Turns,
    /// Locked by reads, and exclusively by a commit while only some of its changes exist.
    view: RwLock<()>,
    pub(super) faults: Faults,
}

/// Kind of entry behind a name in a directory, links not followed.
pub(super) enum TreeNode {
    Missing,
    File(Metadata),
    Directory(Metadata),
    Link,
    /// A pipe, a socket or a device: never opened.
    Special,
}

/// Result of following a path down.
pub(super) enum ReachedDepth {
    /// Every segment is a directory.
    Directory(Dir),
    /// A segment does not exist.
    Missing {
        /// The last directory that exists.
        deepest: Dir,
        /// The names below it that do not exist.
        names: Vec<String>,
    },
    /// A segment is neither a directory nor a link.
    NotDirectory {
        /// True if it is the last segment of the path.
        is_last: bool,
    },
}

impl Tree {
    pub(super) fn new(root: Dir, options: DirectoryOptions) -> Self {
        let turns = Turns::new(&root);
        Self { root, options, turns, view: RwLock::new(()), faults: Faults::new() }
    }

    /// Waits until no other host or store changes the directory.
    pub(super) fn turn(&self) -> Result<DirectoryLock, FileError> {
        self.turns.take()
    }

    /// Locks the tree for reading: while the guard exists, no commit shows half of its changes.
    pub(super) fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.view.read()
    }

    /// Locks out all readers while the guard exists.
    pub(super) fn without_readers(&self) -> RwLockWriteGuard<'_, ()> {
        self.view.write()
    }

    pub(super) fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        match self.probe(path) {
            Ok(Some(stat)) => Ok(stat),
            Ok(None) | Err(FileError::Special) => Err(FileError::NotFound),
            Err(error) => Err(error),
        }
    }

    /// Returns the metadata of what is at `path`, or [`FileError::Special`] for a pipe and the
    /// like.
    pub(super) fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        let Some((parent, name)) = path.split() else { return Ok(Some(Stat::ROOT)) };
        let ReachedDepth::Directory(directory) = self.descend(&parent)? else { return Ok(None) };
        match lookup(&directory, name)? {
            TreeNode::File(metadata) => {
                let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
                Ok(Some(Stat::file(metadata.len(), modified, file_version(&metadata))))
            }
            TreeNode::Directory(metadata) => {
                Ok(Some(Stat::directory(directory_version(&metadata))))
            }
            TreeNode::Link => Err(FileError::Link),
            TreeNode::Special => Err(FileError::Special),
            TreeNode::Missing => Ok(None),
        }
    }

    pub(super) fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let (file, bytes) = self.open_file(path)?;
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        // Another process may append in the meantime; one byte more than allowed shows that it did.
        let content = read_some(file, bytes_max.saturating_add(1), bytes)?;
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if bytes > bytes_max { Err(FileError::TooLarge { bytes, bytes_max }) } else { Ok(content) }
    }

    pub(super) fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        let (mut file, bytes) = self.open_file(path)?;
        // There is nothing to read, and seeking beyond the range of a signed offset would be a
        // system error.
        if offset >= bytes {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(offset))?;
        Ok(read_some(file, length, bytes.saturating_sub(offset))?)
    }

    pub(super) fn list(&self, path: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        let ReachedDepth::Directory(directory) = self.descend(path)? else {
            return Ok(Listing::default());
        };
        let (mut entries, mut hides_entries, mut not_shown) =
            (Vec::new(), false, OmittedNames::default());
        let is_complete = self.walk(
            (path, directory),
            scope,
            &mut |found: WalkEntry<'_>| match (found.entry_kind(), found.path_below(path)) {
                (Some(kind), Some(path_below)) => entries.push(ListingEntry::new(path_below, kind)),
                _ => {
                    hides_entries |= !found.name.starts_with(RESERVED_PREFIX);
                    if let Some(refused) = found.refused_below(path) {
                        not_shown.add(|| refused);
                    }
                }
            },
        )?;
        not_shown
            .names
            .sort_unstable_by(|a, b| (&a.directory, &a.name).cmp(&(&b.directory, &b.name)));
        Ok(Listing { hides_entries, not_shown, ..Listing::sorted(entries, !is_complete) })
    }

    /// Follows `path` down to the last directory that exists.
    pub(super) fn descend(&self, path: &StorePath) -> Result<ReachedDepth, FileError> {
        if !path.is_root()
            && let Some(directory) = descent::open(&self.root, path)
        {
            return Ok(ReachedDepth::Directory(directory));
        }
        let mut deepest = self.root.try_clone()?;
        let mut names = path.segments();
        while let Some(name) = names.next() {
            match enter(&deepest, name)? {
                EnterResult::Directory(directory) => deepest = directory,
                EnterResult::NotDirectory => {
                    return Ok(ReachedDepth::NotDirectory { is_last: names.next().is_none() });
                }
                EnterResult::Missing => {
                    let names = std::iter::once(name).chain(names).map(str::to_owned).collect();
                    return Ok(ReachedDepth::Missing { deepest, names });
                }
            }
        }
        Ok(ReachedDepth::Directory(deepest))
    }

    /// Returns the directory at `path`, or [`FileError::NotFound`] if it does not exist.
    pub(super) fn existing_directory(&self, path: &StorePath) -> Result<Dir, FileError> {
        match self.descend(path)? {
            ReachedDepth::Directory(directory) => Ok(directory),
            ReachedDepth::Missing { .. } | ReachedDepth::NotDirectory { .. } => {
                Err(FileError::NotFound)
            }
        }
    }

    /// Opens the regular file at `path` and returns it with its length.
    pub(super) fn open_file(&self, path: &StorePath) -> Result<(File, u64), FileError> {
        let (parent, name) = path.split().ok_or(FileError::NotFound)?;
        let directory = self.existing_directory(&parent)?;
        require_file(&directory, name)?;
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = match directory.open_with(name, &options) {
            Ok(file) => file,
            // Either it was swapped in the meantime, or it is a file that may not be read.
            Err(error) => return Err(require_file(&directory, name).err().unwrap_or(error.into())),
        };
        let metadata = file.metadata()?;
        if metadata.is_file() { Ok((file, metadata.len())) } else { Err(FileError::NotFound) }
    }
}

/// Looks up `name` in `directory`, without following links.
pub(super) fn lookup(directory: &Dir, name: &str) -> io::Result<TreeNode> {
    let metadata = match directory.symlink_metadata(name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TreeNode::Missing),
        Err(error) => return Err(error),
    };
    Ok(match Kind::of(metadata.file_type()) {
        Kind::File => TreeNode::File(metadata),
        Kind::Directory => TreeNode::Directory(metadata),
        Kind::Link => TreeNode::Link,
        Kind::Special => TreeNode::Special,
    })
}

/// Computes the version of a file. A store replaces files and never overwrites them, so the version
/// depends mostly on the file's inode number; the times show changes by other programs.
fn file_version(metadata: &Metadata) -> Version {
    let mut hasher = DefaultHasher::new();
    identity(metadata).hash(&mut hasher);
    metadata.len().hash(&mut hasher);
    metadata.modified().ok().map(cap_std::time::SystemTime::into_std).hash(&mut hasher);
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt as _;
        (metadata.ctime(), metadata.ctime_nsec()).hash(&mut hasher);
    }
    Version(hasher.finish())
}

/// Computes the version of a directory. It ignores the times, because changes inside a directory
/// change them.
fn directory_version(metadata: &Metadata) -> Version {
    let mut hasher = DefaultHasher::new();
    identity(metadata).hash(&mut hasher);
    Version(hasher.finish())
}

/// Returns what identifies the root directory `path`, also if it can be reached under other paths.
pub(super) fn root_identity(root: &Dir, path: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    if cfg!(unix) {
        identity(&root.dir_metadata()?).hash(&mut hasher);
    } else {
        path.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// Returns a value that stays the same for as long as a file or a directory exists.
fn identity(metadata: &Metadata) -> impl std::hash::Hash {
    let created = metadata.created().ok().map(cap_std::time::SystemTime::into_std);
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt as _;
        (metadata.dev(), metadata.ino(), created)
    }
    #[cfg(not(unix))]
    created
}

impl Kind {
    pub(super) fn of(kind: FileType) -> Self {
        if kind.is_symlink() {
            Self::Link
        } else if kind.is_file() {
            Self::File
        } else if kind.is_dir() {
            Self::Directory
        } else {
            Self::Special
        }
    }
}

/// Fails unless `name` is a regular file.
fn require_file(directory: &Dir, name: &str) -> Result<(), FileError> {
    match lookup(directory, name)? {
        TreeNode::File(_) => Ok(()),
        TreeNode::Link => Err(FileError::Link),
        TreeNode::Missing | TreeNode::Directory(_) | TreeNode::Special => Err(FileError::NotFound),
    }
}

enum EnterResult {
    Directory(Dir),
    Missing,
    NotDirectory,
}

/// Opens the directory `name` in `parent`. Opening is the check; the lookup afterwards only finds
/// the reason of a failure, so it does not matter if the entry has changed in between.
fn enter(parent: &Dir, name: &str) -> Result<EnterResult, FileError> {
    let mut failure = io::Error::from(io::ErrorKind::ResourceBusy);
    for _ in 0..LOOKS_MAX {
        failure = match parent.open_dir_nofollow(name) {
            Ok(directory) => return Ok(EnterResult::Directory(directory)),
            Err(error) => error,
        };
        match lookup(parent, name)? {
            TreeNode::Missing => return Ok(EnterResult::Missing),
            TreeNode::Link => return Err(FileError::Link),
            TreeNode::File(_) | TreeNode::Special => return Ok(EnterResult::NotDirectory),
            TreeNode::Directory(_) => {}
        }
    }
    Err(failure.into())
}

/// Reads at most `length` bytes of a file that has about `bytes_left` more. With capacity for one
/// more byte, the end is found without growing the buffer.
fn read_some(file: File, length: u64, bytes_left: u64) -> io::Result<Vec<u8>> {
    let room = usize::try_from(length.min(bytes_left.saturating_add(1))).unwrap_or(usize::MAX);
    let mut content = Vec::new();
    content.try_reserve_exact(room).map_err(|_| io::ErrorKind::OutOfMemory)?;
    file.take(length).read_to_end(&mut content)?;
    Ok(content)
}
