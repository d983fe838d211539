//! Authorization at servers that require it, on top of rmcp's state machine: discovery, PKCE,
//! `resource`, `iss`, client registration, and additional scopes on request.
//!
//! Authorization only starts after a server has rejected a request. Tokens are sent to the server's
//! origin like any other header. Addresses that a server names are resolved only in this module,
//! and must be public, so that no server can make the host probe its own network.

mod client;
mod exchange;
mod fetch;
mod issuer;
mod login_time;
mod loopback;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rmcp::transport::auth::OAuthClientConfig;
use rmcp::transport::auth::{AuthorizationRequest, AuthorizationSession};
use rmcp::transport::{
    AuthError, AuthorizationManager, ClientCredentialsConfig, CredentialStore as _,
};
use tokio::sync::Mutex;
use url::Url;

pub(crate) use self::client::TokenClient;
pub(crate) use self::exchange::finished;
use self::fetch::Fetch;
pub(crate) use self::login_time::LoginTime;
pub use self::loopback::Loopback;
pub use self::store::{CredentialFiles, CredentialStore, MemoryCredentials};
use self::store::{OneServer, StoredUse};
use super::ConnectError;
use super::http::HttpClient;
use super::limits::cut;
use super::settings::{HttpEndpoint, is_loopback};

/// Client name that authorization servers display.
const CLIENT_NAME: &str = "Cofferdam";

/// Maximum number of bytes of a refused address that are shown.
const ADDRESS_BYTES_MAX: usize = 200;

/// Sends the user to an authorization server and waits for the response.
#[async_trait]
pub trait Browser: Send + Sync {
    /// Returns the address that the user is redirected back to. Called once before each visit.
    ///
    /// # Errors
    /// A message if no redirect is possible.
    async fn redirect_uri(&self) -> Result<String, String>;

    /// Opens or shows `address`, and returns the full address that the user was redirected to.
    ///
    /// # Errors
    /// A message if the user did not come back, or not in time.
    async fn visit(&self, address: &str) -> Result<String, String>;
}

/// Settings for authorization.
#[derive(Clone)]
pub struct OAuthSettings {
    /// Identity of the client.
    pub client: OAuthClient,
    /// Issuer of the authorization server at which the client is registered. Without it, a client
    /// that was registered beforehand is used only if the server is its own authorization server.
    pub issuer: Option<String>,
    /// Scopes to request in addition to those that the server names.
    pub scopes: Vec<String>,
    /// Storage for tokens.
    pub store: Arc<dyn CredentialStore>,
    /// True if authorization servers may have private addresses, as within a company network.
    pub allows_private_addresses: bool,
}

impl OAuthSettings {
    /// Deletes the tokens for one server, also those of clients that were configured before.
    pub(crate) fn forget(&self, server: &Url) -> std::io::Result<()> {
        store::forget(&*self.store, server, &self.client)
    }
}

/// Identity that requests authorization.
#[derive(Clone)]
pub enum OAuthClient {
    /// A user in front of a browser.
    Person {
        /// Browser that opens the authorization page.
        browser: Arc<dyn Browser>,
        /// Client id that was registered beforehand, with its secret if it has one.
        registered: Option<(String, Option<String>)>,
        /// Address (https) of a metadata document about this client, for authorization servers that
        /// support such documents.
        metadata_url: Option<String>,
    },
    /// The host itself, without a user.
    Host {
        /// Client id.
        id: String,
        /// Client secret.
        secret: String,
    },
}

impl OAuthClient {
    /// Returns the client id that was registered beforehand, if there is one.
    fn registered_id(&self) -> Option<&str> {
        match self {
            Self::Person { registered, .. } => Some(registered.as_ref()?.0.as_str()),
            Self::Host { id, .. } => Some(id),
        }
    }

    /// Returns the client secret, if there is one.
    pub(super) fn secret(&self) -> Option<&str> {
        match self {
            Self::Person { registered, .. } => registered.as_ref()?.1.as_deref(),
            Self::Host { secret, .. } => Some(secret),
        }
    }
}

/// Request for tokens, which returns the manager that uses them.
type TokenRequest = BoxFuture<'static, Result<AuthorizationManager, ConnectError>>;

/// Authorization state for one server.
pub(crate) struct Authorizer {
    url: Url,
    settings: OAuthSettings,
    fetch: Arc<Fetch>,
    client: TokenClient,
    logins: Arc<LoginTime>,
    /// Number of times that new credentials were obtained.
    count: AtomicU64,
    /// Held until new credentials are in use, so that the user is asked only once.
    asking: Arc<Mutex<()>>,
    /// True if the stored token can be refreshed only after the server has named its authorization
    /// server in a challenge.
    needs_challenge: AtomicBool,
}

impl Authorizer {
    /// Creates the state, with stored credentials if there are any.
    pub(crate) async fn new(
        endpoint: &HttpEndpoint,
        settings: OAuthSettings,
        http: HttpClient,
        logins: Arc<LoginTime>,
    ) -> Result<Self, ConnectError> {
        let fetch = Arc::new(Fetch::new(endpoint, settings.allows_private_addresses)?);
        let url = endpoint.url().clone();
        let (manager, needs_challenge) = restored(&url, &settings, &fetch).await?;
        let client = TokenClient::new(http, manager);
        Ok(Self {
            url,
            settings,
            fetch,
            client,
            logins,
            count: AtomicU64::new(0),
            asking: Arc::default(),
            needs_challenge: AtomicBool::new(needs_challenge),
        })
    }

    /// Refreshes a token that has expired. If the caller gives up, the refresh goes on and its
    /// token is stored. Without a token that can be refreshed, the server asks for authorization.
    pub(crate) async fn refresh(&self) -> Result<(), ConnectError> {
        match self.client.token().await {
            Ok(_) | Err(AuthError::AuthorizationRequired) => Ok(()),
            Err(error) => Err(ConnectError::Refresh(error.into())),
        }
    }

    /// Returns a client that sends the current token and refreshes it.
    pub(crate) fn client(&self) -> TokenClient {
        self.client.clone()
    }

    /// Obtains new credentials according to the challenge with which the server rejected the
    /// current ones. If the caller gives up while the authorization server issues them, they are
    /// still stored and used.
    pub(crate) async fn authorize(self: &Arc<Self>, challenge: &str) -> Result<(), ConnectError> {
        let seen = self.count.load(Ordering::Acquire);
        let asking = Arc::new(Arc::clone(&self.asking).lock_owned().await);
        if self.count.load(Ordering::Acquire) != seen {
            return Ok(());
        }
        let granted = self.client.manager.lock().await.get_current_scopes().await;
        let (mut manager, issuer) = self.discovered(challenge).await?;
        if self.needs_challenge.load(Ordering::Relaxed)
            && self.takes_stored(&mut manager, issuer).await?
        {
            let (authorizer, asking) = (Arc::clone(self), Arc::clone(&asking));
            let refreshing = async move {
                let _asking = asking;
                match manager.refresh_token().await {
                    Ok(_) => {
                        authorizer.replace(manager).await;
                        Ok::<_, ConnectError>(None)
                    }
                    Err(error) => {
                        tracing::debug!(%error, "stored credentials were not refreshed");
                        Ok(Some(manager))
                    }
                }
            };
            match exchange::finish(refreshing).await? {
                Some(unused) => manager = unused,
                None => return Ok(()),
            }
        }
        let (authorizer, exchange) = (Arc::clone(self), self.login(manager, granted).await?);
        let obtaining = async move {
            let _asking = asking;
            authorizer.replace(exchange.await?).await;
            Ok(())
        };
        exchange::finish(obtaining).await
    }

    /// Uses the credentials of a manager from now on.
    async fn replace(&self, manager: AuthorizationManager) {
        *self.client.manager.lock().await = manager;
        self.needs_challenge.store(false, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Release);
    }

    /// Returns a manager for the authorization server that a challenge names, and its issuer.
    async fn discovered(
        &self,
        challenge: &str,
    ) -> Result<(AuthorizationManager, Option<String>), ConnectError> {
        let mut manager = manager(&self.url, &self.settings, &self.fetch).await?;
        self.fetch.begin_discovery();
        let metadata = manager.resolve_metadata_from_challenge(Some(challenge)).await?.metadata;
        check_address("authorization endpoint", &metadata.authorization_endpoint)?;
        check_address("token endpoint", &metadata.token_endpoint)?;
        if let Some(address) = &metadata.registration_endpoint {
            check_address("registration endpoint", address)?;
        }
        issuer::check(&self.settings, &self.url, &metadata)?;
        let issuer = metadata.issuer.clone();
        manager.set_metadata(metadata);
        Ok((manager, issuer))
    }

    /// Logs in, up to the request for tokens, which is returned.
    async fn login(
        &self,
        mut manager: AuthorizationManager,
        granted: Vec<String>,
    ) -> Result<TokenRequest, ConnectError> {
        let wanted = manager.select_scopes(None, &[]);
        match &self.settings.client {
            OAuthClient::Host { id, secret } => {
                let config = ClientCredentialsConfig::ClientSecret {
                    client_id: id.clone(),
                    client_secret: secret.clone(),
                    scopes: self.scopes(wanted, granted),
                    resource: Some(self.url.to_string()),
                };
                manager.validate_client_credentials_metadata(&config)?;
                manager.configure_client_credentials(&config)?;
                let exchange = async move {
                    manager.exchange_client_credentials(&config).await?;
                    Ok(manager)
                };
                Ok(exchange.boxed())
            }
            OAuthClient::Person { browser, registered, metadata_url } => {
                let redirect = browser.redirect_uri().await.map_err(ConnectError::Browser)?;
                let mut request = AuthorizationRequest::new(redirect)
                    .with_client_name(CLIENT_NAME)
                    .with_scopes(self.scopes(wanted, granted));
                if let Some((id, secret)) = registered {
                    request = request.with_preregistered_client(id);
                    if let Some(secret) = secret {
                        request = request.with_client_secret(secret);
                    }
                }
                if let Some(url) = metadata_url {
                    request = request.with_client_metadata_url(url);
                }
                let session = AuthorizationSession::new(manager, request)
                    .await
                    .map_err(|(_, error)| error)?;
                check_address("authorization endpoint", session.get_authorization_url())?;
                let login = self.logins.begin();
                let answer = browser.visit(session.get_authorization_url()).await;
                drop(login);
                let answer = answer.map_err(ConnectError::Browser)?;
                let exchange = async move {
                    session.handle_callback_url(&answer).await?;
                    Ok(session.auth_manager)
                };
                Ok(exchange.boxed())
            }
        }
    }

    /// Prepares a manager for the refresh of stored credentials. Returns false if there are none
    /// that its authorization server, which has an issuer, has issued.
    async fn takes_stored(
        &self,
        manager: &mut AuthorizationManager,
        issuer: Option<String>,
    ) -> Result<bool, ConnectError> {
        let stored = credentials(&self.url, &self.settings, StoredUse::Full).load().await?;
        match stored.filter(|stored| stored.token_response.is_some()) {
            Some(stored) if issuer.is_some() && stored.issuer == issuer => {
                configure(manager, stored.client_id, &self.url, &self.settings)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Combines the scopes that were granted before, those that the server wants now, and the
    /// configured ones.
    fn scopes(&self, wanted: Vec<String>, granted: Vec<String>) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let all = granted.into_iter().chain(wanted).chain(self.settings.scopes.iter().cloned());
        all.filter(|scope| seen.insert(scope.clone())).collect()
    }
}

async fn manager(
    url: &Url,
    settings: &OAuthSettings,
    fetch: &Arc<Fetch>,
) -> Result<AuthorizationManager, AuthError> {
    let mut manager =
        AuthorizationManager::new_with_oauth_http_client(url.clone(), Arc::clone(fetch) as _)
            .await?;
    manager.set_credential_store(credentials(url, settings, StoredUse::Full));
    Ok(manager)
}

/// Prepares a manager for the refresh of tokens of a client.
fn configure(
    manager: &mut AuthorizationManager,
    client_id: String,
    url: &Url,
    settings: &OAuthSettings,
) -> Result<(), AuthError> {
    let mut config = OAuthClientConfig::new(client_id, url.as_str());
    if let Some(secret) = settings.client.secret() {
        config = config.with_client_secret(secret);
    }
    manager.configure_client(config)
}

/// Returns a manager that uses the stored credentials if there are any, and whether only a
/// challenge of the server can say where they are refreshed. They may no longer be valid. The
/// server then rejects them, and authorization proceeds as without them.
async fn restored(
    url: &Url,
    settings: &OAuthSettings,
    fetch: &Arc<Fetch>,
) -> Result<(AuthorizationManager, bool), ConnectError> {
    let mut restored = manager(url, settings, fetch).await?;
    fetch.begin_discovery();
    let uses = match restore(&mut restored, url, settings).await {
        Ok(uses) => uses,
        Err(error) => {
            tracing::debug!(%error, "stored credentials cannot be refreshed");
            StoredUse::UntilExpiry
        }
    };
    restored.set_credential_store(credentials(url, settings, uses));
    Ok((restored, uses == StoredUse::UntilExpiry))
}

/// Prepares a manager for the refresh of stored credentials. Returns how they may be used: the
/// server must still name the authorization server that has issued them.
async fn restore(
    manager: &mut AuthorizationManager,
    url: &Url,
    settings: &OAuthSettings,
) -> Result<StoredUse, ConnectError> {
    let stored = credentials(url, settings, StoredUse::Full).load().await?;
    let Some(stored) = stored.filter(|stored| stored.token_response.is_some()) else {
        return Ok(StoredUse::Full);
    };
    let metadata = manager.resolve_metadata().await?.metadata;
    check_address("token endpoint", &metadata.token_endpoint)?;
    if stored.issuer.is_some() && metadata.issuer.is_none() {
        // The server may name its authorization server in challenges only.
        return Ok(StoredUse::UntilExpiry);
    }
    if stored.issuer != metadata.issuer {
        let (stored, found) = (stored.issuer, metadata.issuer);
        tracing::warn!(?stored, ?found, "the authorization server of stored credentials differs");
        return Ok(StoredUse::Never);
    }
    if let Err(error) = issuer::check(settings, url, &metadata) {
        tracing::warn!(%error, "stored credentials are not used");
        return Ok(StoredUse::Never);
    }
    manager.set_metadata(metadata);
    configure(manager, stored.client_id, url, settings)?;
    Ok(StoredUse::Full)
}

fn credentials(url: &Url, settings: &OAuthSettings, uses: StoredUse) -> OneServer {
    OneServer::new(Arc::clone(&settings.store), store::key(url, &settings.client), uses)
}

/// Rejects an address of an authorization server that is neither encrypted nor on this machine,
/// because the user, codes and tokens are sent there.
fn check_address(what: &'static str, address: &str) -> Result<(), ConnectError> {
    let is_safe = Url::parse(address)
        .is_ok_and(|url| url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url));
    if is_safe {
        return Ok(());
    }
    Err(ConnectError::UnsafeAddress {
        what,
        address: cut(address, ADDRESS_BYTES_MAX).escape_debug().to_string(),
    })
}

impl std::fmt::Debug for OAuthSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthSettings").field("scopes", &self.scopes).finish_non_exhaustive()
    }
}
