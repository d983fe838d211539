//! Where tokens are kept.

use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::{AuthError, CredentialStore as RmcpStore, StoredCredentials};
use sha2::{Digest as _, Sha256};
use url::Url;

/// A credential file, in bytes; tokens are a few KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Keeps one text of secrets per key. The text names the authorization server (issuer) that the
/// secrets are from, and they are never used with another.
pub trait CredentialStore: Send + Sync {
    /// The text under a key, if there is one.
    ///
    /// # Errors
    /// When that cannot be told.
    fn load(&self, key: &str) -> io::Result<Option<String>>;

    /// Keeps a text, in the place of what was there.
    ///
    /// # Errors
    /// When it is not kept.
    fn save(&self, key: &str, text: &str) -> io::Result<()>;

    /// Forgets the text under a key.
    ///
    /// # Errors
    /// When it may still be there.
    fn clear(&self, key: &str) -> io::Result<()>;
}

/// Credentials that end with the process.
#[derive(Default)]
pub struct MemoryCredentials {
    texts: Mutex<BTreeMap<String, String>>,
}

impl CredentialStore for MemoryCredentials {
    fn load(&self, key: &str) -> io::Result<Option<String>> {
        Ok(self.texts.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn save(&self, key: &str, text: &str) -> io::Result<()> {
        self.texts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key.to_owned(), text.to_owned());
        Ok(())
    }

    fn clear(&self, key: &str) -> io::Result<()> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        Ok(())
    }
}

/// Credentials in files that only their owner can read, one per key.
#[derive(Debug, Clone)]
pub struct CredentialFiles {
    directory: PathBuf,
}

impl CredentialFiles {
    /// Keeps the files in a directory of the host, which is made when it is needed.
    #[must_use]
    pub fn new_ambient(directory: PathBuf) -> Self {
        Self { directory }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }
}

impl CredentialStore for CredentialFiles {
    fn load(&self, key: &str) -> io::Result<Option<String>> {
        let path = self.path(key);
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            Ok(_) => fs::read_to_string(&path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn save(&self, key: &str, text: &str) -> io::Result<()> {
        let mut directory = fs::DirBuilder::new();
        let mut options = fs::OpenOptions::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
            directory.mode(0o700);
            options.mode(0o600);
        }
        directory.recursive(true).create(&self.directory)?;
        // Written beside and moved, so that nobody ever finds a half, and with a mode that is right
        // from the start.
        let mut name = [0_u8; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let beside = self.directory.join(format!("{key}.{:016x}", u64::from_le_bytes(name)));
        let written = options.write(true).create_new(true).open(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        let moved = written.and_then(|()| fs::rename(&beside, self.path(key)));
        if moved.is_err() {
            let _ = fs::remove_file(&beside);
        }
        moved
    }

    fn clear(&self, key: &str) -> io::Result<()> {
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// The part of a store that belongs to one server.
pub(super) struct OneServer {
    store: Arc<dyn CredentialStore>,
    key: String,
}

impl OneServer {
    pub(super) fn new(store: Arc<dyn CredentialStore>, server: &Url) -> Self {
        Self { store, key: key(server) }
    }
}

/// What the credentials for a server are kept under.
pub(super) fn key(server: &Url) -> String {
    HEXLOWER.encode(&Sha256::digest(server.as_str().as_bytes()))
}

fn failed(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl RmcpStore for OneServer {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let text = self.store.load(&self.key).map_err(failed)?;
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(failed)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(failed)?;
        self.store.save(&self.key, &text).map_err(failed)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear(&self.key).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_for_their_owner_alone_and_can_be_replaced_and_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let files = CredentialFiles::new_ambient(directory.path().join("credentials"));
        assert_eq!(files.load("a").unwrap(), None);
        files.save("a", "1").unwrap();
        files.save("a", "2").unwrap();
        assert_eq!(files.load("a").unwrap().as_deref(), Some("2"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(files.path("a")).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::metadata(&files.directory).unwrap().permissions().mode() & 0o777, 0o700);
        }
        assert_eq!(fs::read_dir(&files.directory).unwrap().count(), 1);
        files.clear("a").unwrap();
        files.clear("a").unwrap();
        assert_eq!(files.load("a").unwrap(), None);
    }
}
