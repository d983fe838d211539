//! Client for registries by the OCI distribution specification.

mod auth;
mod catalog;
mod document;
mod pull;
mod push;
mod readme;
mod referrers;
mod signatures;
mod transport;
mod web;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RANGE,
};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;

pub use self::catalog::CatalogSearch;
pub use self::document::DocumentArtifact;
pub use self::pull::{Progress, PullOptions, PulledArtifact};
pub use self::readme::README_BYTES_MAX;
pub use self::transport::{InvalidCertificates, RegistryClientError, certificates_from_pem};

use self::auth::{Authorization, Challenge};
use self::transport::{Transport, is_loopback, is_same_origin, read_body, send};
use crate::error::RegistryErrorKind;
use crate::{CredentialSource, Credentials, Reference, ReferencePattern, RegistryError};

/// Maximum size of an error response in bytes.
const ERROR_BYTES_MAX: u64 = 64 * 1024;
/// Maximum length of a message of a registry, in characters.
const MESSAGE_CHARS_MAX: usize = 200;
/// Maximum number of redirects of one request.
const REDIRECTS_MAX: usize = 3;

/// Settings of a [`RegistryClient`].
#[derive(Default)]
pub struct RegistrySettings {
    /// Source of credentials. Without one, requests are anonymous.
    pub credentials: Option<Arc<dyn CredentialSource>>,
    /// Certificates in DER of further authorities, beside Mozilla's list.
    pub authorities: Vec<Vec<u8>>,
    /// Hosts other than a registry that it may refer to with credentials, or at a private address.
    pub trusted_hosts: Vec<String>,
    /// Address of a proxy for all registries.
    pub proxy: Option<String>,
    /// Mirrors, in the order in which they are tried.
    pub mirrors: Vec<RegistryMirror>,
}

/// Mirror of registries. Only contents with known digests are read from it: it never resolves a
/// tag, and never says who has signed an artifact.
#[derive(Debug, Clone)]
pub struct RegistryMirror {
    /// What the mirror has.
    pub of: ReferencePattern,
    /// Host and path that stand for `of` without its `*`, such as `mirror.example/ghcr`.
    pub at: String,
}

/// Client for registries. It sends credentials only to the registry that they are for and to its
/// own token server, limits every response, and follows redirects only to public addresses.
pub struct RegistryClient {
    transport: Transport,
    credentials: Option<Arc<dyn CredentialSource>>,
    mirrors: Vec<RegistryMirror>,
    /// Authorizations by host and scope.
    authorizations: Mutex<BTreeMap<(String, String), Authorization>>,
    /// Base addresses of registries on this machine, by host.
    local: Mutex<BTreeMap<String, Url>>,
}

/// Permissions of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RepositoryAccess {
    Pull,
    Push,
}

/// One request to a registry.
struct ApiRequest<'a> {
    reference: &'a Reference,
    access: RepositoryAccess,
    method: Method,
    /// Address, absolute or below the registry's `/v2/REPOSITORY/`.
    target: RequestTarget<'a>,
    headers: HeaderMap,
    body: Option<bytes::Bytes>,
}

enum RequestTarget<'a> {
    Path(&'a str),
    Url(Url),
}

/// Error response of a registry.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorResponse {
    errors: Vec<ErrorEntry>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorEntry {
    code: String,
    message: String,
}

impl RegistryClient {
    /// Creates a client.
    ///
    /// # Errors
    /// Returns an error if the certificate of an authority or the proxy is invalid.
    pub fn new(settings: RegistrySettings) -> Result<Self, RegistryClientError> {
        let RegistrySettings { credentials, authorities, trusted_hosts, proxy, mirrors } = settings;
        Ok(Self {
            transport: Transport::new(&authorities, trusted_hosts, proxy.as_deref())?,
            credentials,
            mirrors,
            authorizations: Mutex::default(),
            local: Mutex::default(),
        })
    }

    /// Returns `reference` at its mirrors and finally at its registry.
    fn sources<'a>(&'a self, reference: &'a Reference) -> impl Iterator<Item = Reference> + 'a {
        let mirrored = self.mirrors.iter().filter_map(|it| it.of.at_mirror(reference, &it.at));
        mirrored.chain([reference.clone()])
    }

    /// Sends a request, with the authorization that the registry asks for. Follows redirects of
    /// requests that only read.
    async fn send(&self, request: ApiRequest<'_>) -> Result<Response, RegistryErrorKind> {
        let base = self.base(request.reference.host()).await?;
        let mut url = match &request.target {
            RequestTarget::Path(path) => {
                let path = format!("v2/{}/{path}", request.reference.repository());
                base.join(&path)
                    .map_err(|_| RegistryErrorKind::Malformed(format!("`{path}` is not a path")))?
            }
            RequestTarget::Url(url) => url.clone(),
        };
        let mut has_logged_in = false;
        let mut redirects = 0;
        loop {
            let client = self.transport.client_for(&base, &url)?;
            let mut sent = client.request(request.method.clone(), url.clone());
            sent = sent.headers(request.headers.clone());
            if let Some(body) = &request.body {
                sent = sent.body(body.clone());
            }
            let is_own = is_same_origin(&base, &url);
            if is_own && let Some(authorization) = self.authorization(&request) {
                sent = sent.header(AUTHORIZATION, authorization);
            }
            let response = send(sent).await?;
            if response.status() == StatusCode::UNAUTHORIZED && is_own && !has_logged_in {
                has_logged_in = true;
                self.log_in(&request, &base, response.headers()).await?;
                continue;
            }
            let is_read = request.method == Method::GET || request.method == Method::HEAD;
            if !is_read {
                return Ok(response);
            }
            match redirect(&response, &url, &mut redirects)? {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
    }

    /// Returns the base address of a registry. Plain HTTP is used only for a registry on this
    /// machine that does not offer TLS.
    async fn base(&self, host: &str) -> Result<Url, RegistryErrorKind> {
        let address = |scheme: &str| {
            Url::parse(&format!("{scheme}://{host}/"))
                .map_err(|_| RegistryErrorKind::Malformed(format!("`{host}` is not a host")))
        };
        let secure = address("https")?;
        if !is_loopback(&secure) {
            return Ok(secure);
        }
        let lock = || self.local.lock();
        if let Some(known) = lock().get(host).cloned() {
            return Ok(known);
        }
        let probe = self.transport.own().head(secure.join("v2/").unwrap_or(secure.clone()));
        let base = match send(probe).await {
            Ok(_) => secure,
            Err(failed) => {
                let plain = address("http")?;
                let probe = plain.join("v2/").unwrap_or(plain.clone());
                // A server with TLS that is not trusted may answer plain HTTP with an error.
                // Then the error with TLS is the one to show.
                let answered = send(self.transport.own().head(probe)).await;
                let status = answered.map(|response| response.status());
                if !status.is_ok_and(|it| it.is_success() || it == StatusCode::UNAUTHORIZED) {
                    return Err(failed);
                }
                plain
            }
        };
        lock().insert(host.to_owned(), base.clone());
        Ok(base)
    }

    /// Returns the error of a response that is not a success.
    async fn failure(&self, response: Response, reference: &Reference) -> RegistryErrorKind {
        failed(response, self.credentials.is_some(), reference.registry()).await
    }

    fn authorization(&self, request: &ApiRequest<'_>) -> Option<HeaderValue> {
        let key = (request.reference.host().to_owned(), request.scope());
        let known = self.authorizations.lock();
        let authorization = known.get(&key).filter(|it| it.is_valid(Instant::now()))?;
        Some(authorization.header.clone())
    }

    /// Gets the authorization that a response asks for.
    async fn log_in(
        &self,
        request: &ApiRequest<'_>,
        base: &Url,
        headers: &HeaderMap,
    ) -> Result<(), RegistryErrorKind> {
        let registry = request.reference.registry();
        let credentials = match &self.credentials {
            Some(source) => source.credentials(registry).await,
            None => Ok(None),
        };
        let credentials = credentials.map_err(RegistryErrorKind::Credentials)?;
        let authorization = match Challenge::of(headers)? {
            Challenge::Basic => match &credentials {
                Some(Credentials::Password { username, password }) => {
                    Authorization::basic(username, password)?
                }
                _ => return Err(auth::refused(credentials.as_ref(), registry)),
            },
            Challenge::Bearer { realm, service } => {
                self.token(request, base, &realm, service.as_deref(), credentials.as_ref()).await?
            }
        };
        let key = (request.reference.host().to_owned(), request.scope());
        let mut known = self.authorizations.lock();
        known.insert(key, authorization);
        Ok(())
    }

    /// Requests a token.
    async fn token(
        &self,
        request: &ApiRequest<'_>,
        base: &Url,
        realm: &Url,
        service: Option<&str>,
        credentials: Option<&Credentials>,
    ) -> Result<Authorization, RegistryErrorKind> {
        let registry = request.reference.registry();
        let trusted = self.transport.trusted_hosts();
        if credentials.is_some() && !auth::may_have_credentials(base, realm, trusted) {
            let host = realm.host_str().unwrap_or_default();
            return Err(RegistryErrorKind::ForeignHost(format!(
                "the registry asks to send the credentials for {registry} to {host}; add `{host}` \
                 to `trusted-hosts` if that is right"
            )));
        }
        let client = self.transport.client_for(base, realm)?;
        let scope = request.scope();
        let sent = match credentials {
            None => client.get(auth::token_query(realm, service, &scope)),
            Some(Credentials::Password { username, password }) => {
                let header = Authorization::basic(username, password)?.header;
                client.get(auth::token_query(realm, service, &scope)).header(AUTHORIZATION, header)
            }
            Some(Credentials::IdentityToken(token)) => client
                .post(realm.clone())
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(auth::refresh_form(token, service, &scope)),
        };
        let response = send(sent).await?;
        match response.status() {
            status if status.is_success() => {
                let body = read_body(response, auth::TOKEN_BYTES_MAX).await?;
                Authorization::bearer(&body, Instant::now())
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(auth::refused(credentials, registry))
            }
            _ => Err(failed(response, credentials.is_some(), registry).await),
        }
    }
}

impl std::fmt::Debug for RegistryClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegistryClient").finish_non_exhaustive()
    }
}

impl<'a> ApiRequest<'a> {
    fn new(reference: &'a Reference, method: Method, path: &'a str) -> Self {
        Self {
            reference,
            access: RepositoryAccess::Pull,
            method,
            target: RequestTarget::Path(path),
            headers: HeaderMap::new(),
            body: None,
        }
    }

    /// Accepts these media types.
    fn accept(mut self, types: &'static str) -> Self {
        self.headers.insert(ACCEPT, HeaderValue::from_static(types));
        self
    }

    /// Asks for the bytes from `first` on.
    fn starting_at(mut self, first: u64) -> Self {
        if let Ok(range) = HeaderValue::from_str(&format!("bytes={first}-")) {
            self.headers.insert(RANGE, range);
        }
        self
    }

    fn scope(&self) -> String {
        let access = match self.access {
            RepositoryAccess::Pull => "pull",
            RepositoryAccess::Push => "pull,push",
        };
        format!("repository:{}:{access}", self.reference.repository())
    }
}

/// Returns the address that a response redirects to from `url`. `count` is the number of redirects
/// so far.
fn redirect(
    response: &Response,
    url: &Url,
    count: &mut usize,
) -> Result<Option<Url>, RegistryErrorKind> {
    if !response.status().is_redirection() {
        return Ok(None);
    }
    if *count >= REDIRECTS_MAX {
        let message = format!("more than {REDIRECTS_MAX} redirects");
        return Err(RegistryErrorKind::Malformed(message));
    }
    *count += 1;
    location(response, url).map(Some)
}

/// Returns the address that a response refers to.
fn location(response: &Response, url: &Url) -> Result<Url, RegistryErrorKind> {
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    location.and_then(|location| url.join(location).ok()).ok_or_else(|| {
        RegistryErrorKind::Malformed("a redirect without a valid address".to_owned())
    })
}

/// Returns whether a response continues at byte `first`.
fn continues_at(response: &Response, first: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let start = range.and_then(|range| range.strip_prefix("bytes ")?.split_once('-'));
    start.is_some_and(|(start, _)| start.parse() == Ok(first))
}

/// Returns the error of a response that is not a success.
async fn failed(response: Response, has_credentials: bool, registry: &str) -> RegistryErrorKind {
    let status = response.status();
    match status {
        StatusCode::NOT_FOUND => return RegistryErrorKind::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if !has_credentials => {
            return auth::refused(None, registry);
        }
        _ => {}
    }
    let body = read_body(response, ERROR_BYTES_MAX).await.unwrap_or_default();
    let parsed: ErrorResponse = serde_json::from_slice(&body).unwrap_or_default();
    let message = parsed.errors.into_iter().next().map_or_else(String::new, |entry| {
        let both = format!("{} {}", entry.code, entry.message);
        both.trim().chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect()
    });
    RegistryErrorKind::Status { status: status.as_u16(), message }
}

/// Adds registry and step to an error.
fn at<T>(
    result: Result<T, RegistryErrorKind>,
    reference: &Reference,
    step: &str,
) -> Result<T, RegistryError> {
    result.map_err(|kind| kind.at(reference.registry(), step))
}
