//! Reading of artifacts.

use std::str::FromStr as _;

use bytes::Bytes;
use reqwest::{Method, StatusCode};

use super::transport::{ReceivedBody, read_body};
use super::{ApiRequest, RegistryClient, at, continues_at};
use crate::error::RegistryErrorKind;
use crate::manifest::{Document, MANIFEST_BYTES_MAX};
use crate::reference::Version;
use crate::{ArtifactStore, BlobWriter, Descriptor, Digest, Manifest, Reference, RegistryError};

/// Media types of manifests that are accepted.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
                              application/vnd.oci.image.index.v1+json";
/// Header with the digest of a manifest.
const DIGEST_HEADER: &str = "docker-content-digest";
/// Maximum number of requests for one layer, each of which continues where the last one broke off.
const LAYER_TRIES_MAX: u32 = 4;

/// Maximum size of the configuration of an artifact in bytes.
const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Observer of a download: bytes so far, and bytes in total.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Send + Sync);

/// Limit and observer of a download.
#[derive(Clone, Copy)]
pub struct PullOptions<'a> {
    /// Maximum size of the component in bytes.
    pub bytes_max: u64,
    /// Observer of the download of the component.
    pub progress: Progress<'a>,
}

/// Artifact of a plugin whose manifest and component are in the store.
#[derive(Debug, Clone)]
pub struct PulledArtifact {
    /// Version that the reference named.
    pub version: Version,
    /// Manifest.
    pub manifest: Manifest,
    /// Component.
    pub component: Descriptor,
}

impl RegistryClient {
    /// Reads the manifest of `reference`. An index is resolved to its manifest for WebAssembly.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached, or does not return a valid manifest with
    /// the expected digest.
    pub async fn manifest(&self, reference: &Reference) -> Result<Manifest, RegistryError> {
        let step = format!("reading the manifest of {}", shown(reference));
        at(self.read_manifest(reference).await, reference, &step)
    }

    async fn read_manifest(&self, reference: &Reference) -> Result<Manifest, RegistryErrorKind> {
        if let Version::Tag(_) = reference.version() {
            return self.manifest_at(reference).await;
        }
        let mut result = Err(RegistryErrorKind::NotFound);
        // The last source is the registry itself, whose error is the one to show.
        for source in self.sources(reference) {
            result = self.manifest_at(&source).await;
            if result.is_ok() {
                break;
            }
        }
        result
    }

    async fn manifest_at(&self, reference: &Reference) -> Result<Manifest, RegistryErrorKind> {
        let index = match self.document(reference).await? {
            Document::Manifest(manifest) => return Ok(*manifest),
            Document::Index(index) => index,
        };
        let chosen = reference.with_digest(index.wasm()?.digest);
        match self.document(&chosen).await? {
            Document::Manifest(manifest) => Ok(*manifest),
            Document::Index(_) => Err(crate::ManifestError::Nested.into()),
        }
    }

    pub(super) async fn document(
        &self,
        reference: &Reference,
    ) -> Result<Document, RegistryErrorKind> {
        let version = reference.version();
        let path = format!("manifests/{version}");
        let request = ApiRequest::new(reference, Method::GET, &path).accept(MANIFEST_TYPES);
        let response = self.send(request).await?;
        if response.status() != StatusCode::OK {
            return Err(self.failure(response, reference).await);
        }
        let stated = response.headers().get(DIGEST_HEADER).and_then(|value| value.to_str().ok());
        let stated = stated.and_then(|digest| Digest::from_str(digest).ok());
        let bytes = Bytes::from(read_body(response, MANIFEST_BYTES_MAX).await?);
        let found = Digest::of(&bytes);
        let named = match version {
            Version::Digest(digest) => Some(digest),
            Version::Tag(_) => None,
        };
        if let Some(expected) = [named, stated].into_iter().flatten().find(|it| *it != found) {
            return Err(RegistryErrorKind::ManifestDigest { expected, found });
        }
        Ok(Document::parse(bytes)?)
    }

    /// Downloads the plugin of a manifest of `reference` into `store`, except what the store
    /// contains. Checks all digests.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached, or the artifact is not a valid plugin.
    pub async fn pull(
        &self,
        reference: &Reference,
        manifest: Manifest,
        store: &ArtifactStore,
        options: PullOptions<'_>,
    ) -> Result<PulledArtifact, RegistryError> {
        let PullOptions { bytes_max, progress } = options;
        let step = format!("reading the manifest of {}", shown(reference));
        let component = at(manifest.component().map_err(Into::into), reference, &step)?.clone();
        if component.size > bytes_max {
            let kind = RegistryErrorKind::ComponentSize { size: component.size, bytes_max };
            return Err(kind.at(reference.registry(), &step));
        }
        self.pull_blob(reference, &component, store, progress).await?;
        // Other programs need it to read a copy of the artifact.
        if manifest.config.size <= CONFIG_BYTES_MAX {
            self.pull_blob(reference, &manifest.config, store, &|_, _| {}).await?;
        }
        let step = format!("storing {}", shown(reference));
        let stored = store.insert(&manifest.bytes).map_err(RegistryErrorKind::from);
        at(stored, reference, &step)?;
        Ok(PulledArtifact { version: reference.version(), manifest, component })
    }

    /// Downloads a blob of the repository of `reference` into `store`, unless the store contains
    /// it. Continues a download that breaks off.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached, or returns another content.
    pub async fn pull_blob(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        store: &ArtifactStore,
        progress: Progress<'_>,
    ) -> Result<(), RegistryError> {
        let step = format!("downloading {} of {}", blob.digest, reference.repository());
        let mut result = Ok(());
        // The last source is the registry itself, whose error is the one to show.
        for source in self.sources(reference) {
            result = self.download(&source, blob, store, progress).await;
            if result.is_ok() {
                break;
            }
        }
        at(result, reference, &step)
    }

    async fn download(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        store: &ArtifactStore,
        progress: Progress<'_>,
    ) -> Result<(), RegistryErrorKind> {
        if matches!(store.read(blob.digest, blob.size), Ok(Some(_))) {
            store.refresh(blob.digest);
            return Ok(());
        }
        let mut writer = store.begin(blob)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.download_rest(reference, blob, &mut writer, progress).await {
                Ok(()) => {
                    writer.finish()?;
                    return Ok(());
                }
                Err(RegistryErrorKind::Connection(_)) if tries < LAYER_TRIES_MAX => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Downloads what `writer` does not have yet.
    async fn download_rest(
        &self,
        reference: &Reference,
        blob: &Descriptor,
        writer: &mut BlobWriter,
        progress: Progress<'_>,
    ) -> Result<(), RegistryErrorKind> {
        let path = format!("blobs/{}", blob.digest);
        let mut request = ApiRequest::new(reference, Method::GET, &path);
        let first = writer.written();
        if first > 0 {
            request = request.starting_at(first);
        }
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if first > 0 && continues_at(&response, first) => {}
            StatusCode::OK => writer.restart()?,
            _ => return Err(self.failure(response, reference).await),
        }
        let expected = blob.size.saturating_sub(writer.written());
        if response.content_length().is_some_and(|length| length > expected) {
            return Err(RegistryErrorKind::TooLarge(blob.size));
        }
        let mut body = ReceivedBody::new(response);
        while let Some(piece) = body.next_piece().await? {
            writer.write(&piece)?;
            progress(writer.written(), blob.size);
        }
        // Some servers end a body early without an error of the connection.
        if writer.written() < blob.size {
            return Err(RegistryErrorKind::Connection("the response ended early".to_owned()));
        }
        Ok(())
    }
}

/// Returns the repository and the version of a reference, for messages.
fn shown(reference: &Reference) -> String {
    match reference.version() {
        Version::Tag(tag) => format!("{}:{tag}", reference.repository()),
        Version::Digest(digest) => format!("{}@{digest}", reference.repository()),
    }
}
