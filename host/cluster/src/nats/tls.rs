//! TLS of connections: authorities of servers, and the certificate of this client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{ResolvesClientCert, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, SignatureScheme};

use super::NatsError;
use super::last_read::LastRead;

/// Certificate of a client and its private key, in PEM files that are read again for each
/// connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// File with the certificate, and those of authorities between it and the server's.
    pub certificate_file: PathBuf,
    /// File with the private key.
    pub key_file: PathBuf,
}

/// Returns the settings of TLS. Without a file with authorities, those of Mozilla are trusted.
pub(super) fn config(
    authorities_file: Option<&Path>,
    certificate: Option<&ClientCertificate>,
) -> Result<ClientConfig, NatsError> {
    let roots = match authorities_file {
        Some(path) => authorities(path)?,
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
    };
    let builder = ClientConfig::builder().with_root_certificates(roots);
    let mut config = match certificate {
        Some(certificate) => {
            builder.with_client_cert_resolver(Arc::new(CertificateFiles::read(certificate)?))
        }
        None => builder.with_no_client_auth(),
    };
    // A session that is resumed would show the certificate of the first connection.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn authorities(path: &Path) -> Result<RootCertStore, NatsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| failed(path, error))?;
    }
    Ok(roots)
}

/// Returns the certificates of a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, NatsError> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| failed(path, error))?;
    let certificates: Result<Vec<_>, _> = read.collect();
    let certificates = certificates.map_err(|error| failed(path, error))?;
    if certificates.is_empty() {
        return Err(failed(path, "it has no certificate in PEM form"));
    }
    Ok(certificates)
}

fn failed(path: &Path, cause: impl fmt::Display) -> NatsError {
    NatsError::File { path: path.to_owned(), cause: cause.to_string() }
}

/// Certificate of this client, from files.
#[derive(Debug)]
struct CertificateFiles {
    files: ClientCertificate,
    provider: CryptoProvider,
    last: LastRead<CertifiedKey>,
}

impl CertificateFiles {
    fn read(files: &ClientCertificate) -> Result<Self, NatsError> {
        let provider = aws_lc_rs::default_provider();
        let last = LastRead::new(certified_key(files, &provider)?);
        Ok(Self { files: files.clone(), provider, last })
    }
}

impl ResolvesClientCert for CertificateFiles {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(self.last.update(certified_key(&self.files, &self.provider)))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

fn certified_key(
    files: &ClientCertificate,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, NatsError> {
    let certificates = certificates(&files.certificate_file)?;
    let key = PrivateKeyDer::from_pem_file(&files.key_file)
        .map_err(|error| failed(&files.key_file, error))?;
    // Fails if the key is not that of the certificate.
    CertifiedKey::from_der(certificates, key, provider)
        .map_err(|error| failed(&files.key_file, error))
}
