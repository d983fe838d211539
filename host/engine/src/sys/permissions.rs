//! Directories and files that only their user may access.
//!
//! On Unix, the owner and the permission bits say so; on Windows, the owner and the access list.

use std::fs::File;
use std::io;
use std::path::Path;

/// Creates a directory that only the user of this process may access, and its missing parents.
/// Does nothing to a directory that exists.
///
/// # Errors
/// Errors of the system.
#[cfg(unix)]
pub fn create_private_directory_ambient(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a directory that only the user of this process may access, and its missing parents.
/// Files and directories in it inherit that. Does nothing to a directory that exists.
///
/// # Errors
/// Errors of the system.
#[cfg(windows)]
pub fn create_private_directory_ambient(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    super::windows::create_private_directory(path)?;
    if path.is_dir() { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) }
}

/// Returns whether no permission bit of an open file is set for group or others.
///
/// # Errors
/// Errors of the system.
#[cfg(unix)]
pub fn is_private(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode() & 0o077 == 0)
}

/// Returns whether only the user of this process, the system and administrators may access an open
/// file.
///
/// # Errors
/// Errors of the system.
#[cfg(windows)]
pub fn is_private(file: &File) -> io::Result<bool> {
    Ok(exposure(file)?.is_none())
}

#[cfg(windows)]
pub(crate) use super::windows::{Exposure, exposure, rename_to_free_name};
