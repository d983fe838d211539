//! Key and list of used ledgers of suspended programs, in the user's state directory.
//!
//! The key is made once and readable only by the user. A ledger can be used once, also if the host
//! is killed while the program continues or an older copy of the session comes back: a file named
//! after its digest is created, and on disk, before anything runs. Such files are removed when
//! their ledgers have expired.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use cofferdam_code::{LedgerError, LedgerSeal};
use cofferdam_mcp::{SealError, StateSeal};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use crate::error::Context as _;
use crate::{Result, directories};

/// Name of the directory in the user's state directory.
const DIRECTORY: &str = "ledgers";
/// Name of the key in it, and of the directory of used ledgers.
const KEY: &str = "key";
const USED: &str = "used";
/// Use of the key.
const PURPOSE: &[u8] = b"cofferdam/code-ledger/1";
/// Time for a user to decide.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Maximum bytes of a sealed ledger that is opened.
const SEALED_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum bytes of a file that should be a key.
const KEY_BYTES_MAX: u64 = 1024;

/// Reports why ledgers cannot be sealed or opened.
type Report = Box<dyn Fn(&io::Error) + Send + Sync>;

/// Seals ledgers of programs with a key of this installation.
pub struct Ledgers {
    directory: PathBuf,
    lifetime: Duration,
    report: Report,
}

impl Ledgers {
    /// Returns the seal of the user, and creates its directory. The key is made when it is needed.
    ///
    /// # Errors
    /// Returns an error if the home directory is not known or cannot be written.
    pub fn of_user() -> Result<Self> {
        let directory = directories::state()?.join(DIRECTORY);
        let unwritable = || format!("{} cannot be created", directory.display());
        directories::make_private(&directory).with_context(unwritable)?;
        let report = |error: &io::Error| tracing::warn!(%error, "programs cannot be kept");
        Ok(Self { directory, lifetime: LIFETIME, report: Box::new(report) })
    }

    /// Reports to the operator, instead of to the host's log, why programs cannot be kept. The
    /// model does not get the reason, which names paths.
    #[must_use]
    pub fn with_report(self, report: impl Fn(&io::Error) + Send + Sync + 'static) -> Self {
        Self { report: Box::new(report), ..self }
    }

    /// Returns the directory with the key, which no tool may write to.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the seal, with a new key if there is none.
    fn key(&self) -> io::Result<StateSeal> {
        let path = self.directory.join(KEY);
        let text = match cofferdam_files::read_named_text_ambient(&path, KEY_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create(&path)?;
                cofferdam_files::read_named_text_ambient(&path, KEY_BYTES_MAX)?
            }
            read => read?,
        };
        let key = HEXLOWER.decode(text.trim().as_bytes()).ok();
        let key = key.and_then(|key| <[u8; 32]>::try_from(key).ok());
        let seal = key.and_then(|key| StateSeal::new(key).ok());
        seal.ok_or_else(|| {
            let message = format!(
                "expected a key of 64 hexadecimal digits in {}; delete the file to get a new one, \
                 which programs that wait cannot use",
                path.display()
            );
            io::Error::new(io::ErrorKind::InvalidData, message)
        })
    }

    /// Writes a new key unless another process has.
    fn create(&self, path: &Path) -> io::Result<()> {
        let key = StateSeal::new_key().map_err(io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        writeln!(file, "{}", HEXLOWER.encode(&key))?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(path) {
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            persisted => persisted.map(drop).map_err(|error| error.error),
        }
    }

    /// Records that a ledger is used. Returns false if it was used before.
    fn claim(&self, sealed: &str) -> io::Result<bool> {
        let used = self.directory.join(USED);
        directories::make_private(&used)?;
        let digest = HEXLOWER.encode(&Sha256::digest(sealed.as_bytes()));
        match File::create_new(used.join(digest)) {
            // The file is empty. Its name is what has to reach the disk.
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error),
        }
        #[cfg(unix)]
        File::open(&used)?.sync_all()?;
        self.prune(&used);
        Ok(true)
    }

    fn unavailable(&self, error: &io::Error) -> LedgerError {
        (self.report)(error);
        LedgerError::Unavailable
    }

    /// Removes the files of ledgers that have expired. Their age is at least that of the file.
    fn prune(&self, used: &Path) {
        let Some(oldest) = SystemTime::now().checked_sub(self.lifetime.saturating_mul(2)) else {
            return;
        };
        for entry in std::fs::read_dir(used).into_iter().flatten().flatten() {
            let written = entry.metadata().and_then(|metadata| metadata.modified());
            if written.is_ok_and(|written| written < oldest) {
                // The next ledger tries again.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl LedgerSeal for Ledgers {
    fn seal(&self, ledger: &[u8]) -> std::result::Result<String, LedgerError> {
        let seal = self.key().map_err(|error| self.unavailable(&error))?;
        Ok(seal.seal(ledger, PURPOSE, self.lifetime))
    }

    fn open(&self, sealed: &str) -> std::result::Result<Vec<u8>, LedgerError> {
        if sealed.len() > SEALED_BYTES_MAX {
            return Err(LedgerError::Invalid);
        }
        let seal = self.key().map_err(|error| self.unavailable(&error))?;
        let ledger = seal.open(sealed, PURPOSE).map_err(|error| match error {
            SealError::OtherKey => LedgerError::OtherInstallation,
            SealError::Expired => LedgerError::Expired,
            _ => LedgerError::Invalid,
        })?;
        match self.claim(sealed) {
            Ok(true) => Ok(ledger),
            Ok(false) => Err(LedgerError::Used),
            Err(error) => Err(self.unavailable(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledgers(directory: &Path, lifetime: Duration) -> Ledgers {
        let directory = directory.join(DIRECTORY);
        directories::make_private(&directory).unwrap();
        Ledgers { directory, lifetime, report: Box::new(|_| ()) }
    }

    #[test]
    fn a_ledger_opens_once_for_the_installation_that_sealed_it() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let sealed = ledgers(one.path(), LIFETIME).seal(b"ledger").unwrap();
        let elsewhere = ledgers(other.path(), LIFETIME);
        elsewhere.seal(b"x").unwrap();
        assert_eq!(elsewhere.open(&sealed), Err(LedgerError::OtherInstallation));
        // Another process of the user.
        let again = ledgers(one.path(), LIFETIME);
        assert_eq!(again.open(sealed.split_at(1).1), Err(LedgerError::Invalid));
        assert_eq!(again.open(&sealed), Ok(b"ledger".to_vec()));
        assert_eq!(again.open(&sealed), Err(LedgerError::Used));
        assert_eq!(ledgers(one.path(), LIFETIME).open(&sealed), Err(LedgerError::Used));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let key = std::fs::metadata(one.path().join(DIRECTORY).join(KEY)).unwrap();
            assert_eq!(key.permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_ledger_expires_and_the_model_gets_no_path_of_a_damaged_key() {
        let directory = tempfile::tempdir().unwrap();
        let ledgers = ledgers(directory.path(), Duration::from_millis(1));
        let sealed = ledgers.seal(b"ledger").unwrap();
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(ledgers.open(&sealed), Err(LedgerError::Expired));
        std::fs::write(ledgers.directory().join(KEY), "no key").unwrap();
        let error = ledgers.key().err().unwrap().to_string();
        assert!(error.contains("64 hexadecimal digits"), "{error}");
        let error = ledgers.seal(b"ledger").unwrap_err().to_string();
        assert_eq!(
            error,
            "programs cannot be kept at the moment; the operator of the host can see why"
        );
    }

    #[test]
    fn names_of_expired_ledgers_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join(DIRECTORY).join(USED).join("old");
        std::fs::create_dir_all(old.parent().unwrap()).unwrap();
        let file = File::create(&old).unwrap();
        file.set_modified(SystemTime::now() - 3 * LIFETIME).unwrap();
        let ledgers = ledgers(directory.path(), LIFETIME);
        let sealed = ledgers.seal(b"ledger").unwrap();
        ledgers.open(&sealed).unwrap();
        assert!(!old.exists());
        assert_eq!(ledgers.open(&sealed), Err(LedgerError::Used));
    }
}
