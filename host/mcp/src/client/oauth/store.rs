//! Storage for tokens.

use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rmcp::transport::auth::CredentialRefreshGuard;
use rmcp::transport::{AuthError, CredentialStore as RmcpStore, StoredCredentials};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::OAuthClient;

/// Maximum size of a credential file, in bytes; tokens are a few KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum time to wait for another process that refreshes the same credentials, a request of at
/// most 30 s.
const LOCK_WAIT: Duration = Duration::from_secs(40);
const LOCK_POLL: Duration = Duration::from_millis(50);

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

    /// Locks a key against other processes while its string is replaced, if the store can. Returns
    /// `None` if another process has the lock. Dropping the lock releases it.
    ///
    /// # Errors
    /// If the key cannot be locked.
    fn try_lock(&self, key: &str) -> io::Result<Option<Box<dyn Send>>> {
        let _ = key;
        Ok(Some(Box::new(())))
    }
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

    /// Creates the directory, and returns options for files that only their owner can read.
    fn prepared(&self) -> io::Result<fs::OpenOptions> {
        let mut directory = fs::DirBuilder::new();
        let mut options = fs::OpenOptions::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
            directory.mode(0o700);
            options.mode(0o600);
        }
        directory.recursive(true).create(&self.directory)?;
        options.write(true);
        Ok(options)
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
        let mut options = self.prepared()?;
        // Written to a temporary file and renamed, so that readers never see a partial file, and
        // with the right mode from the start.
        let mut name = [0_u8; 8];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let beside = self.directory.join(format!("{key}.{:016x}", u64::from_le_bytes(name)));
        let written = options.create_new(true).open(&beside).and_then(|mut file| {
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

    fn try_lock(&self, key: &str) -> io::Result<Option<Box<dyn Send>>> {
        let mut options = self.prepared()?;
        let file = options.create(true).open(self.directory.join(format!("{key}.lock")))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// View of a store for one server and client.
pub(super) struct OneServer {
    store: Arc<dyn CredentialStore>,
    key: String,
    /// True if stored credentials are not used until others are stored.
    is_hidden: AtomicBool,
}

impl OneServer {
    pub(super) fn new(store: Arc<dyn CredentialStore>, key: String) -> Self {
        Self { store, key, is_hidden: AtomicBool::new(false) }
    }

    /// Returns a view without the credentials that are stored now.
    pub(super) fn not_loaded(self) -> Self {
        Self { is_hidden: AtomicBool::new(true), ..self }
    }
}

/// Returns the key for the credentials of a server. Those of one registered client are not used for
/// another.
pub(super) fn key(server: &Url, client: &OAuthClient) -> String {
    let mut digest = Sha256::new_with_prefix(server.as_str());
    if let Some(id) = client.registered_id() {
        let kind = if matches!(client, OAuthClient::Host { .. }) { "host" } else { "person" };
        digest.update(format!("\n{kind}\n{id}"));
    }
    HEXLOWER.encode(&digest.finalize())
}

fn failed(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl RmcpStore for OneServer {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        if self.is_hidden.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let text = self.store.load(&self.key).map_err(failed)?;
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(failed)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(failed)?;
        self.store.save(&self.key, &text).map_err(failed)?;
        self.is_hidden.store(false, Ordering::Relaxed);
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear(&self.key).map_err(failed)
    }

    /// Many authorization servers take the second use of a refresh token for a theft, and revoke
    /// everything that the first one returned.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let waited_since = Instant::now();
        loop {
            match self.store.try_lock(&self.key).map_err(failed)? {
                Some(lock) => return Ok(Some(CredentialRefreshGuard::new(lock))),
                None if waited_since.elapsed() > LOCK_WAIT => {
                    return Err(failed("another process has been refreshing them for too long"));
                }
                None => tokio::time::sleep(LOCK_POLL).await,
            }
        }
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
        let lock = files.try_lock("a").unwrap();
        assert!(lock.is_some() && files.try_lock("a").unwrap().is_none());
        drop(lock);
        assert!(files.try_lock("a").unwrap().is_some());
        assert_eq!(files.load("a").unwrap(), None);
    }
}
