//! Cache directory, held by handle, and private files in it.
//!
//! Every name is resolved relative to the handle, without following links or waiting for pipes.
//! Type and owner of a file are read from the opened handle, so nothing can be swapped between the
//! check and the use.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::{CacheError, Rejection};

/// Prefix of the names of unfinished files.
pub(super) const TEMPORARY_PREFIX: &str = ".tmp-";
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Permissions of group and others.
const OTHERS: u32 = 0o077;
const PERMISSIONS: u32 = 0o7777;

/// Directory that belongs only to this user.
pub(super) struct PrivateDirectory {
    handle: OwnedFd,
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
        // A trailing slash or dot would make the system follow a link at the end of the path.
        let path: PathBuf = path.components().collect();
        let io = |source| CacheError::io("open", &path, source);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&path)
            .map_err(io)?;
        Self::open_existing_ambient(&path)
    }

    /// Opens the directory at `path`. Also returns its path without links.
    pub(super) fn open_existing_ambient(path: &Path) -> Result<(Self, PathBuf), CacheError> {
        let path: PathBuf = path.components().collect();
        let io = |source| CacheError::io("open", &path, source);
        let handle = open_directory(&path)?;
        let stat = fs::fstat(&handle).map_err(|error| io(error.into()))?;
        check(&stat, FileType::Directory).map_err(|reason| CacheError::directory(&path, reason))?;
        let resolved = path.canonicalize().map_err(io)?;
        Ok((Self { handle }, resolved))
    }

    /// Opens a file for reading if it is regular and private. Returns `None` if it does not exist.
    pub(super) fn open_file(&self, name: &str) -> Result<Option<OpenFile>, Rejection> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = match fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::MLINK) => return Err(Rejection::Link),
            // Error for a socket.
            Err(Errno::NXIO | Errno::OPNOTSUPP) => return Err(Rejection::FileType),
            Err(error) => return Err(Rejection::Unreadable(io::Error::from(error).kind())),
        };
        let stat = fs::fstat(&handle)
            .map_err(|error| Rejection::Unreadable(io::Error::from(error).kind()))?;
        check(&stat, FileType::RegularFile)?;
        Ok(Some(OpenFile {
            reader: File::from(handle),
            length: u64::try_from(stat.st_size).unwrap_or(0),
        }))
    }

    /// Writes a new file under a unique name and returns the name. Leaves nothing behind on
    /// failure.
    pub(super) fn write_temporary(&self, parts: &[&[u8]]) -> io::Result<String> {
        let name = temporary_name()?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = fs::openat(&self.handle, &name, flags, mode(FILE_MODE))?;
        let mut file = File::from(handle);
        match parts.iter().try_for_each(|part| file.write_all(part)) {
            Ok(()) => Ok(name),
            Err(error) => {
                let _ = self.remove(&name);
                Err(error)
            }
        }
    }

    /// Syncs the file and its directory entry to disk.
    pub(super) fn sync(&self, name: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&self.handle, name, flags, Mode::empty())?;
        File::from(file).sync_all()?;
        self.sync_names()
    }

    /// Syncs the directory to disk. The standard library asks macOS to flush the drive as well,
    /// which `fsync` does not.
    fn sync_names(&self) -> io::Result<()> {
        File::from(self.handle.try_clone()?).sync_all()
    }

    /// Gives the file `from` the additional name `to`. Succeeds without effect if that name is
    /// taken. The name is on disk when this returns.
    pub(super) fn link_new(&self, from: &str, to: &str) -> io::Result<()> {
        match fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty()) {
            Ok(()) => self.sync_names(),
            Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(fs::unlinkat(&self.handle, name, AtFlags::empty())?)
    }

    /// Lists the regular files of the directory. Names that are not UTF-8 are not cache files and
    /// are left out.
    pub(super) fn list(&self) -> io::Result<Vec<ListedFile>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            // Another process may have removed the file in the meantime.
            let Ok(stat) = fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                files.push(listed(name, &stat));
            }
        }
        Ok(files)
    }
}

fn open_directory(path: &Path) -> Result<OwnedFd, CacheError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(CWD, path, flags, Mode::empty()).map_err(|error| {
        // Systems disagree on the error for a link where a directory is expected.
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            CacheError::directory(path, Rejection::Link)
        } else {
            CacheError::io("open", path, error.into())
        }
    })
}

/// Rejects files of another type, of another user, or with permissions for others.
fn check(stat: &Stat, file_type: FileType) -> Result<(), Rejection> {
    if FileType::from_raw_mode(stat.st_mode) != file_type {
        return Err(Rejection::FileType);
    }
    let owner = stat.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return Err(Rejection::Owner { owner });
    }
    let mode = permissions(stat);
    if mode & OTHERS != 0 { Err(Rejection::Mode { mode }) } else { Ok(()) }
}

/// Returns the permission bits. Their type has 16 bits on macOS and 32 on Linux.
#[allow(
    clippy::useless_conversion,
    reason = "the conversion is only useless where the type has 32 bits"
)]
fn permissions(stat: &Stat) -> u32 {
    u32::from(Mode::from_raw_mode(stat.st_mode).as_raw_mode()) & PERMISSIONS
}

#[allow(clippy::useless_conversion, reason = "the widths of these fields differ between systems")]
fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits.try_into().unwrap_or_default())
}

#[allow(clippy::unnecessary_cast, reason = "the widths of these fields differ between systems")]
fn listed(name: &str, stat: &Stat) -> ListedFile {
    ListedFile {
        name: name.to_owned(),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    }
}

/// Returns a unique name. Exclusive creation would detect a collision.
fn temporary_name() -> io::Result<String> {
    let random =
        getrandom::u64().map_err(|_| io::Error::other("the system has no random bytes"))?;
    Ok(format!("{TEMPORARY_PREFIX}{random:016x}"))
}
