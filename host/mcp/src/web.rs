//! The HTTP client of both directions: one TLS provider, Mozilla's roots, nothing of the
//! environment.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rustls::{ClientConfig, RootCertStore};
use url::Url;

/// How long a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a document may take.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// TLS cannot be set up, or an authority's certificate is none.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    /// The client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Client(#[from] reqwest::Error),
}

/// Returns a builder with the settings that all clients share. Servers are trusted by Mozilla's
/// list of authorities.
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

/// A client for documents, which follows no redirect.
pub(crate) fn client() -> Result<reqwest::Client, ClientError> {
    let builder = builder()?.timeout(DOCUMENT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
    Ok(builder.build()?)
}

/// Fetches a document of at most `bytes_max` bytes; `None` if that fails in any way.
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
