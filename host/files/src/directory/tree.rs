//! Reading below a directory handle, without links and without blocking.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use cap_fs_ext::{DirExt as _, FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions};

use super::fault::Faults;
use super::turn::{Turn, Turns};
use super::walk::{Found, Kind};
use super::{DirectoryOptions, descent};
use crate::path::RESERVED_PREFIX;
use crate::{Entry, FileError, Listing, NotShown, Scope, Stat, StorePath, Version};

/// How often an entry is looked at again when it changes between two looks.
const LOOKS_MAX: usize = 8;

/// A directory and everything below it.
pub(super) struct Tree {
    pub(super) root: Dir,
    pub(super) options: DirectoryOptions,
    turns: Turns,
    /// Taken by reads, and by a commit while some of its changes are there and some are not.
    view: RwLock<()>,
    pub(super) faults: Faults,
}

/// What a name stands for in a directory, links not followed.
pub(super) enum Node {
    Missing,
    File(Metadata),
    Directory(Metadata),
    Link,
    /// A pipe, a socket, a device: nothing that is ever opened.
    Special,
}

/// How far a path leads down.
pub(super) enum Reached {
    /// All the way, to a directory.
    Directory(Dir),
    /// To a name that is not there.
    Missing {
        /// The last directory that is there.
        deepest: Dir,
        /// The names that are not, from there on.
        names: Vec<String>,
    },
    /// To something that is neither a directory nor a link.
    NotDirectory {
        /// Whether it is at the end of the path.
        is_last: bool,
    },
}

impl Tree {
    pub(super) fn new(root: Dir, options: DirectoryOptions) -> Self {
        let turns = Turns::new(&root);
        Self { root, options, turns, view: RwLock::new(()), faults: Faults::new() }
    }

    /// Waits until nobody else changes the directory.
    pub(super) fn turn(&self) -> Result<Turn<'_>, FileError> {
        self.turns.take()
    }

    /// While this is held no commit shows half of its changes.
    pub(super) fn reading(&self) -> RwLockReadGuard<'_, ()> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// While this is held nobody reads.
    pub(super) fn without_readers(&self) -> RwLockWriteGuard<'_, ()> {
        self.view.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        match self.probe(path) {
            Ok(Some(stat)) => Ok(stat),
            Ok(None) | Err(FileError::Special) => Err(FileError::NotFound),
            Err(error) => Err(error),
        }
    }

    /// What is at `path`; a pipe and its like is [`FileError::Special`].
    pub(super) fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        let Some((parent, name)) = path.split() else { return Ok(Some(Stat::ROOT)) };
        let Reached::Directory(directory) = self.descend(&parent)? else { return Ok(None) };
        match look(&directory, name)? {
            Node::File(metadata) => {
                let modified = metadata.modified().ok().map(cap_std::time::SystemTime::into_std);
                Ok(Some(Stat::file(metadata.len(), modified, file_version(&metadata))))
            }
            Node::Directory(metadata) => Ok(Some(Stat::directory(directory_version(&metadata)))),
            Node::Link => Err(FileError::Link),
            Node::Special => Err(FileError::Special),
            Node::Missing => Ok(None),
        }
    }

    pub(super) fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let (file, bytes) = self.open_file(path)?;
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        // Another process may append meanwhile; one byte more than allowed shows that it did.
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
        // Seeking beyond what a signed offset holds is an error of the system, and there is nothing
        // there.
        if offset >= bytes {
            return Ok(Vec::new());
        }
        file.seek(SeekFrom::Start(offset))?;
        Ok(read_some(file, length, bytes.saturating_sub(offset))?)
    }

    pub(super) fn list(&self, path: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        let Reached::Directory(directory) = self.descend(path)? else {
            return Ok(Listing::default());
        };
        let (mut entries, mut hides_entries, mut not_shown) =
            (Vec::new(), false, NotShown::default());
        let is_complete = self.walk((path, directory), scope, &mut |found: Found<'_>| match (
            found.entry_kind(),
            found.path_below(path),
        ) {
            (Some(kind), Some(path_below)) => entries.push(Entry::new(path_below, kind)),
            _ => {
                hides_entries |= !found.name.starts_with(RESERVED_PREFIX);
                if let Some(refused) = found.refused_below(path) {
                    not_shown.add(|| refused);
                }
            }
        })?;
        not_shown
            .names
            .sort_unstable_by(|a, b| (&a.directory, &a.name).cmp(&(&b.directory, &b.name)));
        Ok(Listing { hides_entries, not_shown, ..Listing::sorted(entries, !is_complete) })
    }

    /// Follows `path` down as far as there are directories.
    pub(super) fn descend(&self, path: &StorePath) -> Result<Reached, FileError> {
        if !path.is_root()
            && let Some(directory) = descent::open(&self.root, path)
        {
            return Ok(Reached::Directory(directory));
        }
        let mut deepest = self.root.try_clone()?;
        let mut names = path.segments();
        while let Some(name) = names.next() {
            match enter(&deepest, name)? {
                Entered::Directory(directory) => deepest = directory,
                Entered::NotDirectory => {
                    return Ok(Reached::NotDirectory { is_last: names.next().is_none() });
                }
                Entered::Missing => {
                    let names = std::iter::once(name).chain(names).map(str::to_owned).collect();
                    return Ok(Reached::Missing { deepest, names });
                }
            }
        }
        Ok(Reached::Directory(deepest))
    }

    /// The directory at `path`, for operations that find nothing when there is none.
    pub(super) fn existing_directory(&self, path: &StorePath) -> Result<Dir, FileError> {
        match self.descend(path)? {
            Reached::Directory(directory) => Ok(directory),
            Reached::Missing { .. } | Reached::NotDirectory { .. } => Err(FileError::NotFound),
        }
    }

    /// The regular file at `path` and its length.
    pub(super) fn open_file(&self, path: &StorePath) -> Result<(File, u64), FileError> {
        let (parent, name) = path.split().ok_or(FileError::NotFound)?;
        let directory = self.existing_directory(&parent)?;
        require_file(&directory, name)?;
        let mut options = OpenOptions::new();
        options.read(true).follow(FollowSymlinks::No).nonblock(true);
        let file = match directory.open_with(name, &options) {
            Ok(file) => file,
            // Either it was swapped meanwhile, or it is a file that may not be read.
            Err(error) => return Err(require_file(&directory, name).err().unwrap_or(error.into())),
        };
        let metadata = file.metadata()?;
        if metadata.is_file() { Ok((file, metadata.len())) } else { Err(FileError::NotFound) }
    }
}

/// What `name` stands for in `directory`.
pub(super) fn look(directory: &Dir, name: &str) -> io::Result<Node> {
    let metadata = match directory.symlink_metadata(name) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Node::Missing),
        Err(error) => return Err(error),
    };
    Ok(match Kind::of(metadata.file_type()) {
        Kind::File => Node::File(metadata),
        Kind::Directory => Node::Directory(metadata),
        Kind::Link => Node::Link,
        Kind::Special => Node::Special,
    })
}

/// A file is replaced by another one, never written over, so that its version is mostly the number
/// of the file; the times tell what others do to it.
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

/// What happens inside a directory changes its times, so they do not count.
fn directory_version(metadata: &Metadata) -> Version {
    let mut hasher = DefaultHasher::new();
    identity(metadata).hash(&mut hasher);
    Version(hasher.finish())
}

/// What is the same for as long as a file or a directory exists.
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
    match look(directory, name)? {
        Node::File(_) => Ok(()),
        Node::Link => Err(FileError::Link),
        Node::Missing | Node::Directory(_) | Node::Special => Err(FileError::NotFound),
    }
}

enum Entered {
    Directory(Dir),
    Missing,
    NotDirectory,
}

/// Opens the directory `name` in `parent`. The attempt to open is the check; the look afterwards
/// only says why it failed, so it does not matter that the entry may have changed in between.
fn enter(parent: &Dir, name: &str) -> Result<Entered, FileError> {
    let mut failure = io::Error::from(io::ErrorKind::ResourceBusy);
    for _ in 0..LOOKS_MAX {
        failure = match parent.open_dir_nofollow(name) {
            Ok(directory) => return Ok(Entered::Directory(directory)),
            Err(error) => error,
        };
        match look(parent, name)? {
            Node::Missing => return Ok(Entered::Missing),
            Node::Link => return Err(FileError::Link),
            Node::File(_) | Node::Special => return Ok(Entered::NotDirectory),
            Node::Directory(_) => {}
        }
    }
    Err(failure.into())
}

/// At most `length` bytes of what is probably `bytes_left`. With room for those and one more, the
/// end is found without growing.
fn read_some(file: File, length: u64, bytes_left: u64) -> io::Result<Vec<u8>> {
    let room = usize::try_from(length.min(bytes_left.saturating_add(1))).unwrap_or(usize::MAX);
    let mut content = Vec::new();
    content.try_reserve_exact(room).map_err(|_| io::ErrorKind::OutOfMemory)?;
    file.take(length).read_to_end(&mut content)?;
    Ok(content)
}
