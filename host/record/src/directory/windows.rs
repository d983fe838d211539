//! Directory of a log on Windows.
//!
//! Windows has no operations relative to an open directory. The handle keeps the directory, and
//! those above it, from being renamed or removed, and names are resolved below its path. The
//! directory gets its access list from its parent; the default one is in the private directory of
//! the user. A link is followed neither as the directory nor as a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{FileFacts, temporary_name};
use crate::RecordError;

// Constants of the system's headers.
const FILE_ATTRIBUTE_REPARSE_POINT: u32 = 0x400;
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
const FILE_SHARE_READ: u32 = 1;
const FILE_SHARE_WRITE: u32 = 2;
const FILE_SHARE_DELETE: u32 = 4;
const ERROR_SHARING_VIOLATION: i32 = 32;

/// An open directory of a log. Clones share the handle.
#[derive(Debug, Clone)]
pub(crate) struct LogDirectory {
    path: PathBuf,
    _handle: Arc<File>,
}

impl LogDirectory {
    /// Opens the directory, and creates it if it does not exist.
    pub(crate) fn create(path: &Path) -> Result<Self, RecordError> {
        let created = fs::create_dir_all(path);
        created.map_err(|error| RecordError::Directory { directory: path.to_owned(), error })?;
        Self::open(path)
    }

    /// Opens an existing directory.
    pub(crate) fn open(path: &Path) -> Result<Self, RecordError> {
        let failure = |error| RecordError::Directory { directory: path.to_owned(), error };
        // Without sharing the right to delete, the directory keeps its name.
        let handle = OpenOptions::new()
            .read(true)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)
            .map_err(failure)?;
        let facts = handle.metadata().map_err(failure)?;
        if !facts.is_dir() || is_link(&facts) {
            return Err(failure(ErrorKind::NotADirectory.into()));
        }
        let path = path.canonicalize().map_err(failure)?;
        Ok(Self { path, _handle: Arc::new(handle) })
    }

    /// Opens a folder of the directory. A link is not followed.
    pub(crate) fn open_folder(&self, name: &str) -> Result<Self, RecordError> {
        Self::open(&self.path.join(name))
    }

    /// Creates a file for appending. It must not exist. No other process can write to it.
    pub(crate) fn create_file(&self, name: &str) -> Result<File, RecordError> {
        let mut options = OpenOptions::new();
        options.append(true).create_new(true).share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE);
        self.open_at(name, &mut options)
    }

    /// Opens a file for appending, and creates it if it does not exist.
    pub(crate) fn append_file(&self, name: &str) -> Result<File, RecordError> {
        self.open_at(name, OpenOptions::new().append(true).create(true))
    }

    /// Opens a file for appending, and creates it if it does not exist. No other process can write
    /// to it.
    ///
    /// # Errors
    /// [`RecordError::File`] with [`ErrorKind::WouldBlock`] if another process does.
    pub(crate) fn own_file(&self, name: &str) -> Result<File, RecordError> {
        let mut options = OpenOptions::new();
        options.append(true).create(true).share_mode(FILE_SHARE_READ | FILE_SHARE_DELETE);
        self.open_at(name, &mut options).map_err(|error| match error {
            RecordError::File { error, .. }
                if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION) =>
            {
                RecordError::file(name, io::Error::from(ErrorKind::WouldBlock))
            }
            other => other,
        })
    }

    /// Opens a file for reading.
    pub(crate) fn open_file(&self, name: &str) -> Result<File, RecordError> {
        self.open_at(name, OpenOptions::new().read(true))
    }

    fn open_at(&self, name: &str, options: &mut OpenOptions) -> Result<File, RecordError> {
        let failure = |error| RecordError::file(name, error);
        let options = options.custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
        let file = options.open(self.path.join(name)).map_err(failure)?;
        let facts = file.metadata().map_err(failure)?;
        if is_link(&facts) {
            return Err(failure(io::Error::from(ErrorKind::InvalidInput)));
        }
        Ok(file)
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
        drop(file);
        let linked = synced.and_then(|()| {
            match fs::hard_link(self.path.join(&temporary), self.path.join(name)) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(failure(error)),
            }
        });
        self.remove(&temporary)?;
        linked
    }

    /// Renames a file of the directory.
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<(), RecordError> {
        let renamed = fs::rename(self.path.join(from), self.path.join(to));
        renamed.map_err(|error| RecordError::file(from, error))
    }

    /// Removes a file. One that does not exist is fine: another process may have removed it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), RecordError> {
        match fs::remove_file(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(RecordError::file(name, error))
            }
            _ => Ok(()),
        }
    }

    /// Creates a directory below this one, unless it exists.
    pub(crate) fn create_folder(&self, name: &str) -> Result<(), RecordError> {
        match fs::create_dir(self.path.join(name)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(RecordError::file(name, error))
            }
            _ => Ok(()),
        }
    }

    /// Returns size and age of a file, or `None` if it does not exist.
    pub(crate) fn facts(&self, name: &str) -> Option<FileFacts> {
        let facts = fs::symlink_metadata(self.path.join(name)).ok()?;
        let modified = facts.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified = i64::try_from(modified.as_secs()).unwrap_or(i64::MAX);
        Some(FileFacts { bytes: facts.len(), modified })
    }

    /// Returns whether an open file still has its name in the directory.
    pub(crate) fn contains(&self, _file: &File, name: &str) -> bool {
        self.facts(name).is_some()
    }

    /// Sets the time of the last change to now, so that retention keeps the file longer. Returns
    /// false if the file does not exist.
    pub(crate) fn touch(&self, name: &str) -> bool {
        let opened = self.open_at(name, OpenOptions::new().write(true));
        let touched = opened.is_ok_and(|file| file.set_modified(SystemTime::now()).is_ok());
        touched || self.facts(name).is_some()
    }

    /// Returns the names in the directory or in a folder below it, in any order.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, RecordError> {
        let failure = |error| RecordError::file(folder, error);
        let entries = match fs::read_dir(self.path.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failure(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            // Names that are not Unicode are not ours.
            if let Ok(name) = entry.map_err(failure)?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }
}

fn is_link(facts: &fs::Metadata) -> bool {
    facts.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0
}

/// Does nothing: [`LogDirectory::create_file`] keeps other processes from writing. A lock would
/// keep them from reading as well.
pub(crate) fn lock(_file: &File) {}

/// Returns whether a process has a file open that it has created.
pub(crate) fn is_written(directory: &LogDirectory, name: &str) -> Option<bool> {
    match directory.open_at(name, OpenOptions::new().write(true)) {
        Err(RecordError::File { error, .. }) => {
            Some(error.raw_os_error() == Some(ERROR_SHARING_VIOLATION))
        }
        _ => Some(false),
    }
}
