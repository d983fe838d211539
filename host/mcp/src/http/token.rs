//! Bearer tokens of the server itself.

use data_encoding::HEXLOWER;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// Number of random bytes in a new token.
const TOKEN_BYTES: usize = 32;
/// Maximum size of a token file in bytes.
const TOKEN_BYTES_MAX: u64 = 4096;
/// Minimum length of a token in characters, so that it cannot be guessed.
const TOKEN_CHARS_MIN: usize = 20;

/// Token of a token file.
pub struct NewToken {
    /// The token itself.
    pub token: String,
    /// True if the token was just created, so the user has not seen it yet.
    pub is_new: bool,
}

/// Error returned when a token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Other users can read the file.
    #[error("others can read it; run `chmod 600` on it")]
    Readable,
    /// The file does not contain a valid token.
    #[error("it does not hold a token of {TOKEN_CHARS_MIN} to {TOKEN_BYTES_MAX} characters")]
    NoToken,
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandomNumbers,
}

/// Returns the token from a file that only its owner can read. Creates the file with a new token if
/// it does not exist.
///
/// # Errors
/// [`TokenFileError`]. A file that others can read is refused, because they may have read it.
pub fn read_or_create(path: &Path) -> Result<NewToken, TokenFileError> {
    match open(path) {
        Ok(file) => Ok(NewToken { token: read(file)?, is_new: false }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(NewToken { token: create(path)?, is_new: true })
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a file for reading. Opening a FIFO does not wait for a writer.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or(0));
    }
    options.open(path)
}

fn read(file: File) -> Result<String, TokenFileError> {
    if !file.metadata()?.is_file() {
        return Err(TokenFileError::NoToken);
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&file.metadata()?.permissions()) & 0o077 != 0 {
        return Err(TokenFileError::Readable);
    }
    let mut text = String::new();
    file.take(TOKEN_BYTES_MAX + 1).read_to_string(&mut text)?;
    let token = text.trim();
    let is_whole = text.len() as u64 <= TOKEN_BYTES_MAX;
    let fits = is_whole
        && token.len() >= TOKEN_CHARS_MIN
        && token.bytes().all(|byte| byte.is_ascii_graphic());
    if fits { Ok(token.to_owned()) } else { Err(TokenFileError::NoToken) }
}

/// Generates a new token.
///
/// # Errors
/// [`TokenFileError::NoRandomNumbers`].
pub fn new_token() -> Result<String, TokenFileError> {
    let mut random = [0; TOKEN_BYTES];
    getrandom::fill(&mut random).map_err(|_| TokenFileError::NoRandomNumbers)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

fn create(path: &Path) -> Result<String, TokenFileError> {
    let token = new_token()?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(token.as_bytes())?;
    file.write_all(b"\n")?;
    Ok(token)
}

/// Returns the digest of a token in the form of a configuration: `sha256:` and 64 hexadecimal
/// digits.
#[must_use]
pub fn digest(token: &str) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(token.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_read_by_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let made = read_or_create(&path).unwrap();
        assert!(made.is_new && made.token.len() == 43);
        let read = read_or_create(&path).unwrap();
        assert!(!read.is_new && read.token == made.token);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            assert!(matches!(read_or_create(&path), Err(TokenFileError::Readable)));
        }
    }

    #[test]
    fn what_can_be_guessed_is_no_token() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        std::fs::write(&path, "secret").unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        assert!(matches!(read_or_create(&path), Err(TokenFileError::NoToken)));
    }
}
