//! Directory of a log, opened once. Files are reached through its descriptor, never by a path that
//! another process could redirect.
//!
//! The directory belongs to the user and has mode 700; its files have mode 600. A symbolic link is
//! followed neither as the directory nor as a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{FileFacts, temporary_name};
use crate::RecordError;

/// Permission bits of a file that only its owner may read and write.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open directory of a log. Clones share the descriptor.
#[derive(Debug, Clone)]
pub(crate) struct LogDirectory {
    descriptor: Arc<OwnedFd>,
}

impl LogDirectory {
    /// Opens the directory, and creates it with mode 700 if it does not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        let failure =
            |error: std::io::Error| RecordError::Directory { directory: path.to_owned(), error };
        if let Some(parent) = path.parent()
            && !parent.as_os_str().is_empty()
        {
            std::fs::create_dir_all(parent).map_err(failure)?;
        }
        match fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Self::open(path),
            Err(error) => Err(failure(error.into())),
        }
    }

    /// Opens an existing directory.
    pub(crate) fn open(path: &Path) -> Result<Self, RecordError> {
        let failure = |error: Errno| RecordError::Directory {
            directory: path.to_owned(),
            error: error.into(),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let descriptor = fs::open(path, flags, Mode::empty()).map_err(failure)?;
        let facts = fs::fstat(&descriptor).map_err(failure)?;
        let (owner, user) = (facts.st_uid, rustix::process::geteuid().as_raw());
        if owner != user {
            return Err(RecordError::OtherOwner { directory: path.to_owned(), owner, user });
        }
        let mode = permission_bits(&facts);
        if mode & 0o077 != 0 {
            return Err(RecordError::OpenToOthers { directory: path.to_owned(), mode });
        }
        Ok(Self { descriptor: Arc::new(descriptor) })
    }

    /// Opens a folder of the directory. A link is not followed.
    pub(crate) fn open_folder(&self, name: &str) -> Result<Self, RecordError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = fs::openat(self.descriptor.as_fd(), name, flags, Mode::empty());
        let descriptor = opened.map_err(|error| RecordError::file(name, error))?;
        Ok(Self { descriptor: Arc::new(descriptor) })
    }

    /// Creates a file for appending. It must not exist.
    pub(crate) fn create_file(&self, name: &str) -> Result<File, RecordError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND;
        self.open_at(name, flags)
    }

    /// Opens a file for appending, and creates it if it does not exist.
    pub(crate) fn append_file(&self, name: &str) -> Result<File, RecordError> {
        self.open_at(name, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
    }

    /// Opens a file for appending, creates it if it does not exist, and marks it as being written.
    ///
    /// # Errors
    /// [`RecordError::File`] with [`io::ErrorKind::WouldBlock`] if another process has marked it.
    pub(crate) fn own_file(&self, name: &str) -> Result<File, RecordError> {
        let file = self.append_file(name)?;
        match fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(error @ Errno::WOULDBLOCK) => Err(RecordError::file(name, error)),
            _ => Ok(file),
        }
    }

    /// Opens a file for reading.
    pub(crate) fn open_file(&self, name: &str) -> Result<File, RecordError> {
        self.open_at(name, OFlags::RDONLY | OFlags::NONBLOCK)
    }

    fn open_at(&self, name: &str, flags: OFlags) -> Result<File, RecordError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(self.descriptor.as_fd(), name, flags, FILE_MODE)
            .map(File::from)
            .map_err(|error| RecordError::file(name, error))
    }

    /// Reads a file of at most `bytes_max` bytes; a longer one is cut.
    pub(crate) fn read(&self, name: &str, bytes_max: u64) -> Result<Vec<u8>, RecordError> {
        let mut bytes = Vec::new();
        let file = self.open_file(name)?;
        file.take(bytes_max)
            .read_to_end(&mut bytes)
            .map_err(|error| RecordError::file(name, error))?;
        Ok(bytes)
    }

    /// Writes a file under a temporary name and renames it, so that readers see all of it or none.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        self.replace(name, bytes, |_| Ok(()))
    }

    /// Like [`write`](Self::write), but syncs the content before the rename.
    pub(crate) fn write_synced(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        self.replace(name, bytes, File::sync_all)
    }

    fn replace(
        &self,
        name: &str,
        bytes: &[u8],
        sync: impl FnOnce(&File) -> io::Result<()>,
    ) -> Result<(), RecordError> {
        let temporary = temporary_name(name)?;
        let written = self.create_file(&temporary).and_then(|mut file| {
            let written = file.write_all(bytes).and_then(|()| sync(&file));
            written.map_err(|error| RecordError::file(&temporary, error))
        });
        let renamed = written.and_then(|()| self.rename(&temporary, name));
        renamed.inspect_err(|_| self.remove(&temporary).unwrap_or(()))
    }

    /// Writes a file unless it exists. Returns whether it was written.
    pub(crate) fn write_new(&self, name: &str, bytes: &[u8]) -> Result<bool, RecordError> {
        let temporary = temporary_name(name)?;
        let mut file = self.create_file(&temporary)?;
        let failure = |error| RecordError::file(name, error);
        let synced = file.write_all(bytes).and_then(|()| file.sync_all()).map_err(failure);
        let fd = self.descriptor.as_fd();
        let linked =
            synced.and_then(|()| match fs::linkat(fd, &*temporary, fd, name, AtFlags::empty()) {
                Ok(()) => Ok(true),
                Err(Errno::EXIST) => Ok(false),
                Err(error) => Err(RecordError::file(name, error)),
            });
        self.remove(&temporary)?;
        linked
    }

    /// Renames a file of the directory.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), RecordError> {
        let fd = self.descriptor.as_fd();
        fs::renameat(fd, from, fd, to).map_err(|error| RecordError::file(from, error))
    }

    /// Removes a file. One that does not exist is fine: another process may have removed it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), RecordError> {
        match fs::unlinkat(self.descriptor.as_fd(), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(RecordError::file(name, error)),
        }
    }

    /// Creates a directory below this one, unless it exists.
    pub(crate) fn create_folder(&self, name: &str) -> Result<(), RecordError> {
        match fs::mkdirat(self.descriptor.as_fd(), name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(RecordError::file(name, error)),
        }
    }

    /// Returns size and age of a file, or `None` if it does not exist.
    pub(crate) fn facts(&self, name: &str) -> Option<FileFacts> {
        let stat = fs::statat(self.descriptor.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // Types of the fields differ by architecture.
        Some(FileFacts { bytes: u64::try_from(stat.st_size).unwrap_or(0), modified: stat.st_mtime })
    }

    /// Returns whether an open file still has its name in the directory.
    pub(crate) fn contains(&self, file: &File, _name: &str) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        file.metadata().is_ok_and(|facts| facts.nlink() > 0)
    }

    /// Sets the time of the last change to now, so that retention keeps the file longer. Returns
    /// false if the file does not exist.
    pub(crate) fn touch(&self, name: &str) -> bool {
        let now = fs::Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
        let times = fs::Timestamps { last_access: now, last_modification: now };
        let fd = self.descriptor.as_fd();
        let touched = fs::utimensat(fd, name, &times, AtFlags::SYMLINK_NOFOLLOW);
        touched.is_ok() || self.facts(name).is_some()
    }

    /// Returns the names in the directory or in a folder below it, in any order.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, RecordError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = match fs::openat(self.descriptor.as_fd(), folder, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(error) => return Err(RecordError::file(folder, error)),
        };
        let failure = |error: Errno| RecordError::file(folder, error);
        let mut names = Vec::new();
        for entry in fs::Dir::new(opened).map_err(failure)? {
            let entry = entry.map_err(failure)?;
            // Names that are not UTF-8 are not ours.
            if let Ok(name) = entry.file_name().to_str()
                && !name.starts_with("..")
                && name != "."
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

/// Returns the permission bits. Their type has 16 bits on macOS and 32 on Linux.
#[allow(
    clippy::useless_conversion,
    reason = "the conversion is only useless where the type has 32 bits"
)]
fn permission_bits(facts: &fs::Stat) -> u32 {
    u32::from(facts.st_mode) & 0o777
}

/// Marks a file as being written by this process, until the handle is closed. File systems without
/// locks work as well: others then assume that the process lives.
pub(crate) fn lock(file: &File) {
    let _ = fs::flock(file, FlockOperation::LockExclusive);
}

/// Returns whether a process has marked a file as being written; `None` if the file system has no
/// locks.
pub(crate) fn is_written(directory: &LogDirectory, name: &str) -> Option<bool> {
    let Ok(file) = directory.open_file(name) else { return Some(false) };
    match fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Some(false),
        Err(Errno::WOULDBLOCK) => Some(true),
        Err(_) => None,
    }
}
