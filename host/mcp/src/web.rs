//! The HTTP client that documents are fetched with.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use url::Url;

/// How long a document may take.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("the HTTP client cannot be set up: {0}")]
pub(crate) struct NoClient(String);

/// A client with the one TLS provider and Mozilla's roots, that follows no redirect and asks no proxy of the environment.
pub(crate) fn client() -> Result<reqwest::Client, NoClient> {
    builder()?.timeout(TIME_MAX).build().map_err(|error| NoClient(error.to_string()))
}

/// The same, still open to settings.
pub(crate) fn builder() -> Result<reqwest::ClientBuilder, NoClient> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| NoClient(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy())
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
