//! Resources that the system leaves to this process.

use std::path::Path;

/// Returns the number of files that this process may have open at the same time, or `None` if there
/// is no such limit.
#[must_use]
pub fn open_files_max() -> Option<u64> {
    #[cfg(unix)]
    return rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    None
}

/// Returns the number of free bytes for this user on the file system of `path`, or `None` if the
/// system does not tell.
#[must_use]
pub fn free_bytes_ambient(path: &Path) -> Option<u64> {
    #[cfg(unix)]
    return rustix::fs::statvfs(path)
        .ok()
        .map(|file_system| file_system.f_bavail.saturating_mul(file_system.f_frsize));
    #[cfg(not(unix))]
    {
        let _ = path;
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_space_and_a_process_a_limit() {
        assert!(free_bytes_ambient(Path::new("/")).is_some());
        assert_eq!(free_bytes_ambient(Path::new("/no/such/path")), None);
        assert!(open_files_max().is_none_or(|limit| limit > 3));
    }
}
