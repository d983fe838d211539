//! The HTTP client of the log: the same TLS as everywhere, with one provider and Mozilla's roots.
//! Redirects are not followed, and nothing comes from the environment.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, redirect};
use rustls::{ClientConfig, RootCertStore};

/// Creates a client that also trusts certificates of `authorities` in DER.
///
/// # Errors
/// The reason in words.
pub(crate) fn client(authorities: &[Vec<u8>], timeout: Duration) -> Result<Client, String> {
    let refused = |error: rustls::Error| format!("TLS cannot be set up: {error}");
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for authority in authorities {
        roots.add(authority.clone().into()).map_err(refused)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(timeout)
        .build()
        .map_err(|error| root_cause(&error))
}

/// Returns the text of the cause that has no cause itself.
pub(crate) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
