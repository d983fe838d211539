//! Replaces files atomically.

use std::fs::{Metadata, OpenOptions, Permissions};
use std::io::{Seek as _, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Replaces a file with `bytes` atomically. Keeps the owner, group and mode of the old file. If the
/// caller may not give a new file this owner and group, the old file is overwritten.
pub fn replace_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let old = std::fs::metadata(path).ok();
    let file = new_file(path, bytes)?;
    if let Some(old) = &old
        && !take_owner(file.as_file(), old)
    {
        file.as_file().sync_all()?;
        return overwrite(path, bytes);
    }
    persist(file, path, old.map(|old| old.permissions()).or_else(readable))
}

/// Replaces a file with `bytes` atomically. Only the user may read the new file.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    persist(new_file(path, bytes)?, path, None)
}

/// Returns an error if a file cannot be replaced atomically: its directory does not exist, or
/// cannot be written.
pub fn check_replaceable(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Err(std::io::ErrorKind::IsADirectory.into());
    }
    NamedTempFile::new_in(folder_of(path)).map(drop)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a temporary file beside `path`. Only the user may read it.
fn new_file(path: &Path, bytes: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new_in(folder_of(path))?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Moves a temporary file to `path`. It stays private without a `mode`.
fn persist(file: NamedTempFile, path: &Path, mode: Option<Permissions>) -> std::io::Result<()> {
    if let Some(mode) = mode {
        file.as_file().set_permissions(mode)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Overwrites a file, which keeps its owner, group and mode. It is cut last, so that it is never
/// empty.
fn overwrite(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(bytes)?;
    let length = file.stream_position()?;
    file.set_len(length)?;
    file.sync_all()
}

/// Gives a new file the owner and group of the old one. Returns false if that is not permitted.
#[cfg(unix)]
fn take_owner(new: &std::fs::File, old: &Metadata) -> bool {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let is_same = |new: Metadata| (new.uid(), new.gid()) == (old.uid(), old.gid());
    new.metadata().is_ok_and(is_same) || fchown(new, Some(old.uid()), Some(old.gid())).is_ok()
}

/// Returns true, because files of this system get the access list of their directory.
#[cfg(not(unix))]
fn take_owner(_: &std::fs::File, _: &Metadata) -> bool {
    true
}

/// Returns the mode of a new file, which others may read because it contains no secrets. On
/// Windows, the file gets the access list of its directory.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no modes")]
fn readable() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable() -> Option<Permissions> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

    use super::*;

    #[test]
    fn a_replaced_file_keeps_owner_group_and_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cofferdam.toml");
        std::fs::write(&path, "old and longer").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o660)).unwrap();
        // Only root may give a file away. Others check that nothing changes.
        let _ = chown(&path, Some(2001), Some(2000));
        let before = std::fs::metadata(&path).unwrap();
        replace_file(&path, b"new").unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(after.mode(), before.mode());
        overwrite(&path, b"x").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
        assert_eq!(std::fs::metadata(&path).unwrap().gid(), before.gid());
    }
}
