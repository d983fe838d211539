//! Components and documents at addresses on the web, such as files of a release.

use std::time::Duration;

use reqwest::{Response, StatusCode, Url};

use super::transport::{ReceivedBody, is_loopback, read_body, send};
use super::{Progress, RegistryClient, failed, redirect};
use crate::error::RegistryErrorKind;
use crate::{ArtifactStore, Descriptor, RegistryError};

/// Maximum time to read a document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(60);

impl RegistryClient {
    /// Reads the document at an `https` address, or at an `http` address of this machine. It may
    /// have at most `bytes_max` bytes. Sends no credentials.
    ///
    /// # Errors
    /// Returns an error if the address is invalid or cannot be reached, or the document is too
    /// large.
    pub async fn read_web(&self, address: &str, bytes_max: u64) -> Result<Vec<u8>, RegistryError> {
        let read = async {
            let url = Url::parse(address).ok();
            let is_plain = |url: &Url| url.scheme() == "http" && is_loopback(url);
            let url = url.filter(|url| url.scheme() == "https" || is_plain(url));
            let url = url.ok_or_else(|| {
                RegistryErrorKind::Malformed(format!("`{address}` is not an https address"))
            })?;
            read_body(self.get_web(url).await?, bytes_max).await
        };
        let read = tokio::time::timeout(DOCUMENT_TIMEOUT, read).await;
        let read = read.unwrap_or_else(|_| {
            let limit = DOCUMENT_TIMEOUT.as_secs();
            Err(RegistryErrorKind::Connection(format!("the document takes longer than {limit} s")))
        });
        read.map_err(|kind| at_address(kind, address, "reading"))
    }

    /// Downloads the component at an `https` address into `store`. It may have at most `bytes_max`
    /// bytes. Sends no credentials.
    ///
    /// # Errors
    /// Returns an error if the address is invalid or cannot be reached, or the component is too
    /// large.
    pub async fn fetch_web(
        &self,
        address: &str,
        store: &ArtifactStore,
        bytes_max: u64,
        progress: Progress<'_>,
    ) -> Result<Descriptor, RegistryError> {
        let fetched = self.download_web(address, store, bytes_max, progress).await;
        fetched.map_err(|kind| at_address(kind, address, "downloading"))
    }

    async fn download_web(
        &self,
        address: &str,
        store: &ArtifactStore,
        bytes_max: u64,
        progress: Progress<'_>,
    ) -> Result<Descriptor, RegistryErrorKind> {
        let origin = Url::parse(address).ok().filter(|url| url.scheme() == "https");
        let origin = origin.ok_or_else(|| {
            RegistryErrorKind::Malformed(format!("`{address}` is not an https address"))
        })?;
        let response = self.get_web(origin).await?;
        let length = response.content_length();
        if let Some(size) = length.filter(|length| *length > bytes_max) {
            return Err(RegistryErrorKind::ComponentSize { size, bytes_max });
        }
        let mut writer = store.begin_unknown(bytes_max)?;
        let mut body = ReceivedBody::new(response);
        while let Some(piece) = body.next_piece().await? {
            writer.write(&piece)?;
            progress(writer.written(), length.unwrap_or(bytes_max));
        }
        if length.is_some_and(|length| length != writer.written()) {
            return Err(RegistryErrorKind::Connection("the response ended early".to_owned()));
        }
        let (digest, size) = writer.finish()?;
        Ok(Descriptor::component(digest, size))
    }

    /// Requests an address, follows its redirects, and returns the response if it is a success.
    async fn get_web(&self, origin: Url) -> Result<Response, RegistryErrorKind> {
        let (mut url, mut redirects) = (origin.clone(), 0);
        loop {
            let client = self.transport.client_for(&origin, &url)?;
            let response = send(client.get(url.clone())).await?;
            match redirect(&response, &url, &mut redirects)? {
                Some(target) => url = target,
                None if response.status() == StatusCode::OK => return Ok(response),
                None => return Err(failed(response, true, "").await),
            }
        }
    }
}

/// Adds the host, the step and the path of an address to an error.
pub(super) fn at_address(kind: RegistryErrorKind, address: &str, step: &str) -> RegistryError {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or(address);
    let path = url.as_ref().map(Url::path).unwrap_or_default();
    kind.at(host, &format!("{step} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RegistrySettings;
    use crate::testing::{Reply, TestRegistry};

    async fn read(server: &TestRegistry, path: &str) -> Result<Vec<u8>, RegistryErrorKind> {
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        let address = format!("http://{}{path}", server.host());
        client.read_web(&address, 10).await.map_err(|error| *error.kind)
    }

    #[tokio::test]
    async fn a_document_is_read_up_to_its_limit_and_redirects_are_counted() {
        let server = TestRegistry::start().await.unwrap();
        server.intercept(|request| {
            let to = |target: &str| Reply::new(302, "").with_header("location", target);
            Some(match request.path.as_str() {
                "/moved" => to("/short"),
                "/circle" => to("/circle"),
                "/away" => to("http://169.254.169.254/short"),
                "/short" => Reply::new(200, "0123456789"),
                "/long" => Reply::new(200, "0123456789x"),
                "/endless" => Reply::endless(),
                _ => Reply::new(404, ""),
            })
        });
        assert_eq!(read(&server, "/moved").await.unwrap(), b"0123456789");
        for (path, expected) in [
            ("/circle", "invalid response: more than 3 redirects"),
            ("/away", "the registry refers to http://169.254.169.254, which is not encrypted"),
            ("/long", "the response is larger than 10 bytes"),
            ("/endless", "the response is larger than 10 bytes"),
            ("/gone", "not found (HTTP 404)"),
        ] {
            assert_eq!(read(&server, path).await.unwrap_err().to_string(), expected, "{path}");
        }
    }

    #[tokio::test]
    async fn only_encrypted_addresses_are_read() {
        let client = RegistryClient::new(RegistrySettings::default()).unwrap();
        for address in ["http://192.0.2.1/osv.json", "file:///etc/passwd", "osv.json"] {
            let error = client.read_web(address, 10).await.unwrap_err().to_string();
            assert!(error.ends_with("is not an https address"), "{error}");
        }
    }
}
