//! Reads files that a user names, without blocking on FIFOs and with a limit on the length.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use cofferdam_tool::text::without_byte_order_mark;

/// Reads a regular file of at most `bytes_max` bytes. Does not wait for a FIFO and does not read a
/// device that never ends; `/dev/stdin` is standard input.
///
/// # Errors
/// If opening or reading fails, with `InvalidInput` if the path is not a regular file, and with
/// `FileTooLarge` beyond the limit.
pub fn read_named_ambient(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = open_named_ambient(path)?;
    let expected = file.metadata().map_or(0, |metadata| metadata.len().min(bytes_max));
    read_into(Vec::with_capacity(usize::try_from(expected).unwrap_or(0)), file, bytes_max)
}

/// Reads all of a reader, such as standard input, up to `bytes_max` bytes.
///
/// # Errors
/// If reading fails, and with `FileTooLarge` beyond the limit.
pub fn read_at_most(reader: impl io::Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_into(Vec::new(), reader, bytes_max)
}

fn read_into(mut bytes: Vec<u8>, reader: impl io::Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    reader.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > bytes_max {
        let message = format!("it has more than {bytes_max} bytes, the most that are read");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Like [`read_named_ambient`], for UTF-8.
///
/// # Errors
/// Like [`read_named_ambient`], and with `InvalidData` if the content is not UTF-8.
pub fn read_named_text_ambient(path: &Path, bytes_max: u64) -> io::Result<String> {
    text(read_named_ambient(path, bytes_max)?)
}

/// Like [`read_at_most`], for UTF-8.
///
/// # Errors
/// Like [`read_at_most`], and with `InvalidData` if the content is not UTF-8.
pub fn read_text_at_most(reader: impl io::Read, bytes_max: u64) -> io::Result<String> {
    text(read_at_most(reader, bytes_max)?)
}

/// Returns text without a byte order mark.
fn text(bytes: Vec<u8>) -> io::Result<String> {
    let mut text = String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))?;
    let mark = text.len() - without_byte_order_mark(&text).len();
    text.drain(..mark);
    Ok(text)
}

/// Opens a regular file for reading, without blocking; `/dev/stdin` is standard input. The caller
/// must limit how much it reads.
///
/// # Errors
/// If opening fails, and with `InvalidInput` if the path is not a regular file.
pub fn open_named_ambient(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    if path == Path::new("/dev/stdin") {
        use std::os::fd::AsFd as _;
        return Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    }
    let file = open_without_blocking(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok(file)
}

/// Opens a file without blocking. Opening a FIFO for reading would otherwise wait for a writer
/// forever.
#[cfg(unix)]
fn open_without_blocking(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    File::options().read(true).custom_flags(i32::try_from(flags.bits()).unwrap_or(0)).open(path)
}

#[cfg(not(unix))]
fn open_without_blocking(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_never_ends_and_what_would_wait_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [Path::new("/dev/zero"), &fifo, folder.path()] {
            let error = read_named_ambient(path, 10).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
    }

    #[test]
    fn a_file_may_have_as_many_bytes_as_the_limit_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_named_text_ambient(&path, 10).unwrap(), "0123456789");
        assert_eq!(read_named_ambient(&path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn text_begins_after_a_byte_order_mark() {
        let read = |bytes: &[u8]| read_text_at_most(bytes, 100).map_err(|error| error.kind());
        assert_eq!(read("\u{feff}a\u{feff}".as_bytes()), Ok("a\u{feff}".to_owned()));
        assert_eq!(read(b""), Ok(String::new()));
        assert_eq!(read(b"\xff"), Err(io::ErrorKind::InvalidData));
    }
}
