//! The cache directory, held by handle, and files in it that are ours alone.
//!
//! Every name is resolved from the handle, never follows a link, and never waits for a pipe. What a
//! file is, and whose, is asked of the opened handle, so nothing can be swapped between the check
//! and the use.

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

/// A directory that belongs to this user alone.
pub(super) struct Directory {
    handle: OwnedFd,
}

/// A regular file that belongs to this user alone.
pub(super) struct OpenFile {
    pub(super) reader: File,
    pub(super) length: u64,
}

/// A file in the directory, by name.
pub(super) struct Listed {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Seconds and nanoseconds since 1970.
    pub(super) modified: (i64, i64),
}

impl Directory {
    /// Opens or creates the directory at `path`, and says where it really is.
    pub(super) fn open_ambient(path: &Path) -> Result<(Self, PathBuf), CacheError> {
        // A trailing slash or dot would make the system follow a link at the end of the path.
        let path: PathBuf = path.components().collect();
        let io = |source| CacheError::io("open", &path, source);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&path)
            .map_err(io)?;
        let handle = open_directory(&path)?;
        let stat = fs::fstat(&handle).map_err(|error| io(error.into()))?;
        check(&stat, FileType::Directory).map_err(|reason| CacheError::directory(&path, reason))?;
        let resolved = path.canonicalize().map_err(io)?;
        Ok((Self { handle }, resolved))
    }

    /// Opens a file for reading if it is regular and ours alone. `None` if there is none.
    pub(super) fn open_file(&self, name: &str) -> Result<Option<OpenFile>, Rejection> {
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = match fs::openat(&self.handle, name, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::MLINK) => return Err(Rejection::Link),
            // What a socket answers.
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

    /// Writes a new file under a name of its own, which is returned. Leaves nothing behind if that
    /// fails.
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

    /// Waits until the file and its directory entry are on disk.
    pub(super) fn sync(&self, name: &str) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = fs::openat(&self.handle, name, flags, Mode::empty())?;
        fs::fsync(file)?;
        Ok(fs::fsync(&self.handle)?)
    }

    /// Gives the file `from` a second name `to`, unless that name is taken, which is no error. On
    /// disk when it returns.
    pub(super) fn link_new(&self, from: &str, to: &str) -> io::Result<()> {
        match fs::linkat(&self.handle, from, &self.handle, to, AtFlags::empty()) {
            Ok(()) => Ok(fs::fsync(&self.handle)?),
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

    /// The regular files of the directory. Names that are not UTF-8 are none of ours.
    pub(super) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut files = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            // A file that another process has removed meanwhile is not there to be listed.
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
        // Systems disagree on the error for a link where a directory is wanted.
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            CacheError::directory(path, Rejection::Link)
        } else {
            CacheError::io("open", path, error.into())
        }
    })
}

/// Refuses what is of another type, of another user, or open to others.
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

/// The permission bits. Their type has 16 bits on macOS and 32 on Linux.
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
fn listed(name: &str, stat: &Stat) -> Listed {
    Listed {
        name: name.to_owned(),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
    }
}

/// A name that no other writer has. Exclusive creation would notice if one had.
fn temporary_name() -> io::Result<String> {
    let random =
        getrandom::u64().map_err(|_| io::Error::other("the system has no random bytes"))?;
    Ok(format!("{TEMPORARY_PREFIX}{random:016x}"))
}
