//! Reads files of a project without blocking and with a limit on their length.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a regular file of at most `bytes_max` bytes as a string. Does not block on a FIFO, and
/// does not read devices.
///
/// # Errors
/// Those of opening and reading, `InvalidInput` for anything but a regular file, and `FileTooLarge`
/// beyond the limit.
pub(crate) fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    let read = file.take(bytes_max.saturating_add(1)).read_to_string(&mut text)?;
    if u64::try_from(read).unwrap_or(u64::MAX) > bytes_max {
        let message = format!("it has more than {bytes_max} bytes, the most that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(text)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_regular_and_not_longer_than_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "0123456789");
        assert_eq!(read_text(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [Path::new("/dev/zero"), &fifo, folder.path()] {
            assert_eq!(read_text(path, 9).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
