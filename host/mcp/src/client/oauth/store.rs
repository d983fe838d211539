//! Storage for tokens.

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

/// Maximum size of a credential file, in bytes; tokens are a few KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// Storage for one secret string per key. The string names the authorization server (issuer) that
/// issued the secrets, and they are never used with another one.
pub trait CredentialStore: Send + Sync {
    /// Returns the string under a key, if there is one.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn load(&self, key: &str) -> io::Result<Option<String>>;

    /// Stores a string and replaces the previous one.
    ///
    /// # Errors
    /// If the string was not stored.
    fn save(&self, key: &str, text: &str) -> io::Result<()>;

    /// Deletes the string under a key.
    ///
    /// # Errors
    /// If the string may still exist.
    fn clear(&self, key: &str) -> io::Result<()>;
}

/// Credentials in memory, which end with the process.
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
    /// Creates a store in a directory of the host. The directory is created when it is first
    /// needed.
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
        // Written to a temporary file and renamed, so that readers never see a partial file, and
        // with the right mode from the start.
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

/// View of a store for one server.
pub(super) struct OneServer {
    store: Arc<dyn CredentialStore>,
    key: String,
}

impl OneServer {
    pub(super) fn new(store: Arc<dyn CredentialStore>, server: &Url) -> Self {
        Self { store, key: key(server) }
    }
}

/// Returns the key for the credentials of a server.
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
