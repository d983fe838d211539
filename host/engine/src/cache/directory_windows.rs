//! Cache directory on Windows, held by handle, and private files in it.
//!
//! Windows has no operations relative to a handle of a directory. Instead, the handle keeps the
//! directory, and those above it, from being renamed or removed while it is open, and names are
//! resolved below its path without links. Links in the directory are not followed. Owner and access
//! list of a file are read from the opened handle.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FILE_SHARE_READ, FILE_SHARE_WRITE,
};

use super::error::{CacheError, Rejection};
use crate::sys::permissions::{
    Exposure, create_private_directory_ambient, exposure, rename_to_free_name,
};

/// Prefix of the names of unfinished files.
pub(super) const TEMPORARY_PREFIX: &str = ".tmp-";

/// Directory that belongs only to this user.
pub(super) struct PrivateDirectory {
    path: PathBuf,
    /// Keeps the directory where it is.
    _handle: File,
}

/// Regular file that belongs only to this user.
pub(super) struct OpenFile {
    pub(super) reader: File,
    pub(super) length: u64,
}

/// File in the directory, by name.
pub(super) struct ListedFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub(super) modified: (i64, i64),
}

impl PrivateDirectory {
    /// Opens or creates the directory at `path`. Also returns its path without links.
    pub(super) fn open_ambient(path: &Path) -> Result<(Self, PathBuf), CacheError> {
        let io = |source| CacheError::io("open", path, source);
        create_private_directory_ambient(path).map_err(io)?;
        Self::open_existing_ambient(path)
    }

    /// Opens the directory at `path`. Also returns its path without links.
    pub(super) fn open_existing_ambient(path: &Path) -> Result<(Self, PathBuf), CacheError> {
        let io = |source| CacheError::io("open", path, source);
        // Without sharing the right to delete, the directory keeps its name.
        let handle = OpenOptions::new()
            .read(true)
            .share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE)
            .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
            .open(path)
            .map_err(io)?;
        check(&handle, Metadata::is_dir).map_err(|reason| CacheError::directory(path, reason))?;
        let resolved = path.canonicalize().map_err(io)?;
        Ok((Self { path: resolved.clone(), _handle: handle }, resolved))
    }

    /// Opens a file for reading if it is regular and private. Returns `None` if it does not exist.
    pub(super) fn open_file(&self, name: &str) -> Result<Option<OpenFile>, Rejection> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(FILE_FLAG_OPEN_REPARSE_POINT)
            .open(self.path.join(name));
        let reader = match opened {
            Ok(reader) => reader,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Rejection::Unreadable(error.kind())),
        };
        let length = check(&reader, Metadata::is_file)?.len();
        Ok(Some(OpenFile { reader, length }))
    }

    /// Writes a new file under a unique name and returns the name. Leaves nothing behind on
    /// failure.
    pub(super) fn write_temporary(&self, parts: &[&[u8]]) -> io::Result<String> {
        let name = temporary_name()?;
        let mut file = File::create_new(self.path.join(&name))?;
        match parts.iter().try_for_each(|part| file.write_all(part)) {
            Ok(()) => Ok(name),
            Err(error) => {
                drop(file);
                let _ = self.remove(&name);
                Err(error)
            }
        }
    }

    /// Syncs the file to disk. NTFS writes names to its own log.
    pub(super) fn sync(&self, name: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path.join(name))?.sync_all()
    }

    /// Gives the file `from` the name `to` instead. Succeeds without effect if that name is taken.
    /// The name is on disk when this returns.
    pub(super) fn link_new(&self, from: &str, to: &str) -> io::Result<()> {
        match rename_to_free_name(&self.path.join(from), &self.path.join(to)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            renamed => renamed,
        }
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Lists the regular files of the directory. Names that are not Unicode are not cache files and
    /// are left out.
    pub(super) fn list(&self) -> io::Result<Vec<ListedFile>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Another process may have removed the file in the meantime.
            let (Ok(name), Ok(metadata)) = (entry.file_name().into_string(), entry.metadata())
            else {
                continue;
            };
            if metadata.is_file() {
                files.push(listed(name, &metadata));
            }
        }
        Ok(files)
    }
}

/// Rejects links, files of another type or of another user, and files that others may access.
fn check(file: &File, is_type: fn(&Metadata) -> bool) -> Result<Metadata, Rejection> {
    let unreadable = |error: io::Error| Rejection::Unreadable(error.kind());
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return Err(Rejection::Link);
    }
    if !is_type(&metadata) {
        return Err(Rejection::FileType);
    }
    match exposure(file).map_err(unreadable)? {
        Some(Exposure::Owner) => Err(Rejection::ForeignOwner),
        Some(Exposure::AccessList) => Err(Rejection::AccessList),
        None => Ok(metadata),
    }
}

fn listed(name: String, metadata: &Metadata) -> ListedFile {
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(modified.as_secs()).unwrap_or(i64::MAX);
    ListedFile {
        name,
        bytes: metadata.len(),
        modified: (seconds, i64::from(modified.subsec_nanos())),
    }
}

/// Returns a unique name. Exclusive creation would detect a collision.
fn temporary_name() -> io::Result<String> {
    let random =
        getrandom::u64().map_err(|_| io::Error::other("the system has no random bytes"))?;
    Ok(format!("{TEMPORARY_PREFIX}{random:016x}"))
}
