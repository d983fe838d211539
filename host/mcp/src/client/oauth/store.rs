//! Storage for tokens.

use data_encoding::HEXLOWER;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;
use rmcp::transport::auth::CredentialRefreshGuard;
use rmcp::transport::{AuthError, CredentialStore as RmcpStore, StoredCredentials};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::OAuthClient;

/// Maximum size of a credential file, in bytes; tokens are a few KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Maximum time to wait for another process that refreshes the same credentials, a request of at
/// most 30 s.
const LOCK_WAIT: Duration = Duration::from_secs(40);
const LOCK_POLL: Duration = Duration::from_millis(50);
const LOCKED_TOO_LONG: &str = "another process has been refreshing the tokens for too long";
/// Time before its end in which a token is not used any more. rmcp refreshes it in that time.
const REFRESH_MARGIN: Duration = Duration::from_secs(30);
/// Kinds of registered clients in keys.
const HOST: &str = "host";
const PERSON: &str = "person";

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

    /// Returns the keys of the stored strings, if the store can list them.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn keys(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Locks a key against other processes and connections while its string is replaced, if the
    /// store can. Returns `None` if another one has the lock. Dropping the lock releases it.
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
    locked: Arc<Mutex<BTreeSet<String>>>,
}

/// Lock of a key in memory.
struct MemoryLock {
    key: String,
    locked: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.locked.lock().remove(&self.key);
    }
}

impl CredentialStore for MemoryCredentials {
    fn load(&self, key: &str) -> io::Result<Option<String>> {
        Ok(self.texts.lock().get(key).cloned())
    }

    fn save(&self, key: &str, text: &str) -> io::Result<()> {
        self.texts.lock().insert(key.to_owned(), text.to_owned());
        Ok(())
    }

    fn clear(&self, key: &str) -> io::Result<()> {
        self.texts.lock().remove(key);
        Ok(())
    }

    fn keys(&self) -> io::Result<Vec<String>> {
        Ok(self.texts.lock().keys().cloned().collect())
    }

    fn try_lock(&self, key: &str) -> io::Result<Option<Box<dyn Send>>> {
        let is_free = self.locked.lock().insert(key.to_owned());
        let lock = || MemoryLock { key: key.to_owned(), locked: Arc::clone(&self.locked) };
        Ok(is_free.then(|| Box::new(lock()) as _))
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

    fn keys(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut keys = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            keys.extend(
                name.to_str().and_then(|name| name.strip_suffix(".json")).map(str::to_owned),
            );
        }
        Ok(keys)
    }

    fn try_lock(&self, key: &str) -> io::Result<Option<Box<dyn Send>>> {
        let mut options = self.prepared()?;
        let file = options.create(true).open(self.directory.join(format!("{key}.lock")))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            // Some network file systems have no locks.
            Err(fs::TryLockError::Error(error)) => {
                tracing::warn!(%error, "tokens of remote servers are not locked");
                Ok(Some(Box::new(())))
            }
        }
    }
}

/// View of a store for one server and client.
pub(super) struct OneServer {
    store: Arc<dyn CredentialStore>,
    key: String,
    /// Use of the credentials that are stored now, until others are stored.
    uses: Mutex<StoredUse>,
    /// Credentials that the authorization server does not refresh.
    rejected: Mutex<Option<String>>,
    /// True while this view has the lock of its key.
    is_refreshing: Arc<AtomicBool>,
}

/// Use of stored credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredUse {
    /// The token is sent, and refreshed when it expires.
    Full,
    /// The token is sent until it expires.
    UntilExpiry,
    Never,
}

impl OneServer {
    pub(super) fn new(store: Arc<dyn CredentialStore>, key: String, uses: StoredUse) -> Self {
        let (uses, rejected) = (Mutex::new(uses), Mutex::default());
        Self { store, key, uses, rejected, is_refreshing: Arc::default() }
    }

    /// Waits until no other process replaces the credentials.
    async fn lock(&self) -> Result<Box<dyn Send>, AuthError> {
        let waited_since = Instant::now();
        loop {
            match self.store.try_lock(&self.key).map_err(failed)? {
                Some(lock) => return Ok(lock),
                None if waited_since.elapsed() > LOCK_WAIT => return Err(failed(LOCKED_TOO_LONG)),
                None => tokio::time::sleep(LOCK_POLL).await,
            }
        }
    }
}

/// Lock during a refresh, in which the view that has it stores credentials.
struct RefreshLock {
    _lock: Box<dyn Send>,
    is_refreshing: Arc<AtomicBool>,
}

impl Drop for RefreshLock {
    fn drop(&mut self) {
        self.is_refreshing.store(false, Ordering::Relaxed);
    }
}

/// Returns the key for the credentials of a server. Those of one registered client are not used for
/// another.
pub(super) fn key(server: &Url, client: &OAuthClient) -> String {
    let kind = if matches!(client, OAuthClient::Host { .. }) { HOST } else { PERSON };
    key_of(server, client.registered_id().map(|id| (kind, id)))
}

fn key_of(server: &Url, registered: Option<(&str, &str)>) -> String {
    let mut digest = Sha256::new_with_prefix(server.as_str());
    if let Some((kind, id)) = registered {
        digest.update(format!("\n{kind}\n{id}"));
    }
    HEXLOWER.encode(&digest.finalize())
}

/// Deletes the credentials of all clients for one server.
pub(super) fn forget(
    store: &dyn CredentialStore,
    server: &Url,
    client: &OAuthClient,
) -> io::Result<()> {
    let own = key(server, client);
    let others = store.keys()?;
    let others = others.iter().filter(|key| **key != own && is_of_server(store, key, server));
    for key in std::iter::once(&own).chain(others) {
        // A refresh that runs would store its tokens afterwards.
        let waited_since = Instant::now();
        let _lock = loop {
            match store.try_lock(key)? {
                Some(lock) => break lock,
                None if waited_since.elapsed() > LOCK_WAIT => {
                    return Err(io::Error::other(LOCKED_TOO_LONG));
                }
                None => std::thread::sleep(LOCK_POLL),
            }
        };
        store.clear(key)?;
    }
    Ok(())
}

fn is_of_server(store: &dyn CredentialStore, key: &str, server: &Url) -> bool {
    let Ok(Some(text)) = store.load(key) else { return false };
    let Ok(stored) = serde_json::from_str::<StoredCredentials>(&text) else { return false };
    let id = stored.client_id.as_str();
    [None, Some((HOST, id)), Some((PERSON, id))]
        .iter()
        .any(|registered| key_of(server, *registered) == key)
}

/// Part of stored credentials that says when their token expires. rmcp does not offer it.
#[derive(Deserialize)]
struct TokenExpiry {
    token_response: Option<TokenLifetime>,
    token_received_at: Option<u64>,
}

#[derive(Deserialize)]
struct TokenLifetime {
    /// Seconds from the receipt of the token.
    expires_in: Option<u64>,
}

/// Returns whether the token of stored credentials has expired, or is about to.
fn has_expired(stored: &str) -> bool {
    let Ok(TokenExpiry { token_response, token_received_at }) = serde_json::from_str(stored) else {
        return false;
    };
    let lifetime = token_response.and_then(|token| token.expires_in);
    let (Some(lifetime), Some(received)) = (lifetime, token_received_at) else { return false };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now + REFRESH_MARGIN > Duration::from_secs(received.saturating_add(lifetime))
}

fn failed(error: impl std::fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

#[async_trait]
impl RmcpStore for OneServer {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let uses = *self.uses.lock();
        if uses == StoredUse::Never {
            return Ok(None);
        }
        let text = self.store.load(&self.key).map_err(failed)?;
        let text = text.filter(|text| uses == StoredUse::Full || !has_expired(text));
        let text = text.filter(|text| self.rejected.lock().as_ref() != Some(text));
        text.map(|text| serde_json::from_str(&text)).transpose().map_err(failed)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let text = serde_json::to_string(&credentials).map_err(failed)?;
        // A refresh of another process must not replace the credentials of a login.
        let _lock = match self.is_refreshing.load(Ordering::Relaxed) {
            true => None,
            false => Some(self.lock().await?),
        };
        self.store.save(&self.key, &text).map_err(failed)?;
        *self.uses.lock() = StoredUse::Full;
        Ok(())
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.store.clear(&self.key).map_err(failed)
    }

    /// Leaves out the credentials until others are stored, so that their refresh token is not sent
    /// again.
    async fn on_refresh_token_rejected(&self, _: &StoredCredentials) -> Result<(), AuthError> {
        *self.rejected.lock() = self.store.load(&self.key).map_err(failed)?;
        Ok(())
    }

    /// Many authorization servers take the second use of a refresh token for a theft, and revoke
    /// everything that the first one returned.
    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let lock = self.lock().await?;
        self.is_refreshing.store(true, Ordering::Relaxed);
        let is_refreshing = Arc::clone(&self.is_refreshing);
        Ok(Some(CredentialRefreshGuard::new(RefreshLock { _lock: lock, is_refreshing })))
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
        assert!(files.keys().unwrap().is_empty());
        files.save("a", "1").unwrap();
        assert_eq!(files.keys().unwrap(), ["a"]);
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

    #[test]
    fn a_token_is_not_used_half_a_minute_before_its_end() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let stored = |received: u64, lifetime: &str| {
            format!(
                r#"{{"token_response":{{"expires_in":{lifetime}}},"token_received_at":{received}}}"#
            )
        };
        assert!(has_expired(&stored(now - 100, "120")) && has_expired(&stored(1, "60")));
        assert!(!has_expired(&stored(now - 100, "140")) && !has_expired(&stored(1, "null")));
        assert!(!has_expired(&stored(u64::MAX, "1")) && !has_expired("{}"));
    }
}
