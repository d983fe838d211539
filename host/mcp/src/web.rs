//! HTTP client shared by both directions: one TLS provider, Mozilla's root certificates, and no
//! settings from the environment.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rustls::{ClientConfig, RootCertStore};
use url::Url;

/// Maximum time to open a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time to fetch a document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Error returned when an HTTP client cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// TLS cannot be set up, or the certificate of an authority is invalid.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[from] reqwest::Error),
}

/// Returns a builder with the settings that all clients share. It trusts Mozilla's list of
/// certificate authorities.
pub(crate) fn builder() -> Result<reqwest::ClientBuilder, ClientError> {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy();
    Ok(builder.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true))
}

/// Returns a client for documents. It follows no redirects.
pub(crate) fn client() -> Result<reqwest::Client, ClientError> {
    let builder = builder()?.timeout(DOCUMENT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
    Ok(builder.build()?)
}

/// Fetches a document of at most `bytes_max` bytes. Returns `None` if that fails in any way.
pub(crate) async fn get(client: &reqwest::Client, url: Url, bytes_max: usize) -> Option<Vec<u8>> {
    let response = client.get(url).send().await.ok()?;
    if !response.status().is_success() {
        return None;
    }
    let mut body = response.bytes_stream();
    let mut document = Vec::new();
    while let Some(chunk) = body.next().await {
        let chunk = chunk.ok()?;
        if document.len().saturating_add(chunk.len()) > bytes_max {
            return None;
        }
        document.extend_from_slice(&chunk);
    }
    Some(document)
}
