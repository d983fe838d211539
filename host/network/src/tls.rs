//! TLS configuration.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::ClientError;

/// Returns a configuration that trusts Mozilla's certificate authorities and those in
/// `authorities_pem`.
///
/// Mozilla's list is compiled into the program, so that the same servers are trusted on every
/// machine and in an empty container. The system's store depends on environment variables on some
/// systems and differs between machines.
pub(crate) fn config(authorities_pem: &[Vec<u8>]) -> Result<Arc<ClientConfig>, ClientError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for file in authorities_pem {
        let refused = |reason: String| ClientError::Authority { reason };
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(file).collect();
        let certificates = certificates.map_err(|error| refused(error.to_string()))?;
        if certificates.is_empty() {
            return Err(refused("it holds no certificate in PEM form".to_owned()));
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|error| refused(error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(ClientError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // Sessions are not resumed: requesters share nothing with each other.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_can_be_added_and_must_be_certificates() {
        let authority =
            rcgen::generate_simple_self_signed(["a.example".to_owned()]).unwrap().cert.pem();
        assert!(config(&[authority.into_bytes()]).is_ok());
        for file in
            ["", "nothing", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            assert!(matches!(config(&[file.into()]), Err(ClientError::Authority { .. })), "{file}");
        }
    }
}
