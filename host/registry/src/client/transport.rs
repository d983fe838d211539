//! HTTP requests to registries and to the hosts that they refer to.
//!
//! Nothing comes from the environment: no proxy, no certificate, no credentials. Plain HTTP is
//! possible only on this machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_tool::permission::is_public_address;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::error::RegistryErrorKind;

/// Maximum time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time without any data.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Time over which the speed of a body is averaged.
const SPEED_WINDOW: Duration = Duration::from_secs(30);
/// Minimum speed of a body. Without it, a server that sends one byte now and then holds a download
/// for as long as it likes.
const BYTES_PER_SECOND_MIN: u64 = 1024;

/// HTTP clients: one for registries that the operator names, one for hosts that a registry names.
pub(super) struct Transport {
    own: Client,
    foreign: Client,
    trusted_hosts: Vec<String>,
}

/// Error of a client that cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryClientError {
    /// The certificate of an authority is invalid, or TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The client cannot be built, such as for an invalid proxy.
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[from] reqwest::Error),
}

/// Error of a file that contains no certificates.
#[derive(Debug, thiserror::Error)]
#[error("expected certificates in PEM")]
pub struct InvalidCertificates;

/// Reads the certificates of a file in PEM, as [`RegistrySettings`](crate::RegistrySettings) takes
/// them.
///
/// # Errors
/// Returns an error if the file contains no certificate, or an invalid one.
pub fn certificates_from_pem(pem: &[u8]) -> Result<Vec<Vec<u8>>, InvalidCertificates> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = read.map_err(|_| InvalidCertificates)?;
    if certificates.is_empty() {
        return Err(InvalidCertificates);
    }
    Ok(certificates.into_iter().map(|certificate| certificate.to_vec()).collect())
}

/// Resolves names that a registry has sent. Returns only public addresses, so that a registry
/// cannot reach into the operator's network.
#[derive(Debug, Clone)]
struct ForeignNames(Arc<[String]>);

#[derive(Debug, thiserror::Error)]
#[error("the name has no public address")]
struct NotPublic;

impl Resolve for ForeignNames {
    fn resolve(&self, name: Name) -> Resolving {
        let trusted = self.0.iter().any(|trusted| trusted == name.as_str());
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> =
                found.filter(|address| trusted || is_public_address(address.ip())).collect();
            if public.is_empty() {
                return Err(NotPublic.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

impl Transport {
    pub(super) fn new(
        authorities: &[Vec<u8>],
        trusted_hosts: Vec<String>,
        proxy: Option<&str>,
    ) -> Result<Self, RegistryClientError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        for authority in authorities {
            roots.add(CertificateDer::from(authority.clone()))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let builder = || -> Result<_, RegistryClientError> {
            let mut builder = Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .no_proxy()
                .redirect(Policy::none())
                .referer(false)
                .user_agent(concat!("cofferdam/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT_TIMEOUT)
                .tcp_nodelay(true);
            if let Some(proxy) = proxy {
                builder = builder.proxy(reqwest::Proxy::https(proxy)?);
            }
            Ok(builder)
        };
        let names = ForeignNames(trusted_hosts.clone().into());
        let foreign = builder()?.dns_resolver(Arc::new(names)).build()?;
        Ok(Self { own: builder()?.build()?, foreign, trusted_hosts })
    }

    pub(super) fn trusted_hosts(&self) -> &[String] {
        &self.trusted_hosts
    }

    /// Returns the client for `url`, to which the registry at `origin` refers.
    ///
    /// # Errors
    /// Returns an error if a registry may not refer to that address.
    pub(super) fn client_for(&self, origin: &Url, url: &Url) -> Result<&Client, RegistryErrorKind> {
        if is_same_origin(origin, url) {
            return Ok(&self.own);
        }
        let shown = || format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default());
        if url.scheme() != "https" {
            return Err(RegistryErrorKind::ForeignHost(format!(
                "the registry refers to {}, which is not encrypted",
                shown()
            )));
        }
        if is_loopback(origin) && is_loopback(url) {
            return Ok(&self.own);
        }
        let host = url.host_str().unwrap_or_default();
        let is_trusted = self.trusted_hosts.iter().any(|trusted| trusted == host);
        if !is_trusted && address(url).is_some_and(|address| !is_public_address(address)) {
            return Err(RegistryErrorKind::ForeignHost(format!(
                "the registry refers to {}, which is not a public address; add the host to \
                 `trusted-hosts` if that is right",
                shown()
            )));
        }
        Ok(&self.foreign)
    }

    /// Returns the client for a registry that the operator has named.
    pub(super) fn own(&self) -> &Client {
        &self.own
    }
}

/// Sends a request and waits for the head of its response.
pub(super) async fn send(request: RequestBuilder) -> Result<Response, RegistryErrorKind> {
    let sent = tokio::time::timeout(SILENCE_MAX, request.send()).await;
    sent.map_err(|_| RegistryErrorKind::Silent(SILENCE_MAX))?
        .map_err(|error| RegistryErrorKind::Connection(root_cause(&error)))
}

/// The body of a response while it is read. It must not stop, and not be slower than
/// [`BYTES_PER_SECOND_MIN`].
pub(super) struct ReceivedBody {
    response: Response,
    speed: SpeedWindow,
}

/// Bytes of a body in the current [`SPEED_WINDOW`].
struct SpeedWindow {
    since: Instant,
    received: u64,
}

impl ReceivedBody {
    pub(super) fn new(response: Response) -> Self {
        Self { response, speed: SpeedWindow { since: Instant::now(), received: 0 } }
    }

    /// Returns the next piece.
    pub(super) async fn next_piece(&mut self) -> Result<Option<bytes::Bytes>, RegistryErrorKind> {
        let piece = tokio::time::timeout(SILENCE_MAX, self.response.chunk()).await;
        let piece = piece
            .map_err(|_| RegistryErrorKind::Silent(SILENCE_MAX))?
            .map_err(|error| RegistryErrorKind::Connection(root_cause(&error)))?;
        if let Some(piece) = &piece
            && !self.speed.add(piece.len() as u64, Instant::now())
        {
            return Err(RegistryErrorKind::Slow(BYTES_PER_SECOND_MIN));
        }
        Ok(piece)
    }
}

impl SpeedWindow {
    /// Counts bytes. Returns false if the window that ends with them was too slow.
    fn add(&mut self, bytes: u64, now: Instant) -> bool {
        self.received = self.received.saturating_add(bytes);
        let elapsed = now.duration_since(self.since);
        if elapsed < SPEED_WINDOW {
            return true;
        }
        let is_fast = self.received >= BYTES_PER_SECOND_MIN.saturating_mul(elapsed.as_secs());
        (self.since, self.received) = (now, 0);
        is_fast
    }
}

/// Reads a body of at most `bytes_max` bytes.
pub(super) async fn read_body(
    response: Response,
    bytes_max: u64,
) -> Result<Vec<u8>, RegistryErrorKind> {
    if response.content_length().is_some_and(|length| length > bytes_max) {
        return Err(RegistryErrorKind::TooLarge(bytes_max));
    }
    let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    let (mut body, mut content) = (ReceivedBody::new(response), Vec::new());
    while let Some(piece) = body.next_piece().await? {
        if piece.len() > limit.saturating_sub(content.len()) {
            return Err(RegistryErrorKind::TooLarge(bytes_max));
        }
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

/// Returns whether two addresses have the same scheme, host and port.
pub(super) fn is_same_origin(one: &Url, other: &Url) -> bool {
    one.origin() == other.origin()
}

/// Returns whether an address is on this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    url.host_str() == Some("localhost") || address(url).is_some_and(|it| it.is_loopback())
}

/// Returns the host of an address if it is an IP address.
fn address(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse().ok()
}

/// Returns the innermost cause of an error, which names neither the address nor its query.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::SpeedWindow;

    #[test]
    fn bodies_have_a_minimum_speed() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut speed = SpeedWindow { since: start, received: 0 };
        assert!(speed.add(1, at(29)) && speed.add(30 * 1024, at(30)));
        // A fast start does not make up for a slow rest.
        assert!(speed.add(200 << 20, at(31)) && speed.add(1, at(60)));
        assert!(speed.add(1, at(79)) && !speed.add(1, at(90)));
    }
}
