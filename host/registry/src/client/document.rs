//! Artifacts of one small document, such as a list of plugins.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{RegistryClient, at};
use crate::error::RegistryErrorKind;
use crate::manifest::{MANIFEST_TYPE, ReferrerArtifact, ReferrerContent};
use crate::{ArtifactStore, Digest, Manifest, Reference, RegistryError};

/// Artifact of one document before it is pushed. Equal documents have equal digests.
#[derive(Debug)]
pub struct DocumentArtifact {
    artifact: ReferrerArtifact,
    content: Bytes,
}

impl DocumentArtifact {
    /// Creates the artifact of a document. The kind is the media type of the artifact and of the
    /// document.
    #[must_use]
    pub fn new(kind: &str, content: Vec<u8>, annotations: BTreeMap<String, String>) -> Self {
        let bytes = &content;
        let layer =
            ReferrerContent { media_type: kind, bytes, annotations, title: None, is_only: false };
        Self { artifact: ReferrerArtifact::new(&layer, None), content: content.into() }
    }

    /// Returns the digest of the manifest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.artifact.entry.digest
    }
}

impl RegistryClient {
    /// Pushes a document under the version of `reference`. The manifest comes last, so that an
    /// interrupted push leaves a tag as it was.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or rejects the artifact.
    pub async fn push_document(
        &self,
        reference: &Reference,
        document: &DocumentArtifact,
    ) -> Result<(), RegistryError> {
        let step = format!("writing {}:{}", reference.repository(), reference.version());
        at(self.write_document(reference, document).await, reference, &step)
    }

    async fn write_document(
        &self,
        reference: &Reference,
        document: &DocumentArtifact,
    ) -> Result<(), RegistryErrorKind> {
        for blob in [&Bytes::from_static(ReferrerArtifact::CONFIG), &document.content] {
            self.push_blob(reference, Digest::of(blob), blob).await?;
        }
        let manifest = Bytes::from(document.artifact.manifest.clone());
        let version = reference.version().to_string();
        self.put_manifest(reference, &version, MANIFEST_TYPE, manifest).await.map(drop)
    }

    /// Downloads the document of a manifest of `reference`, which has at most `bytes_max` bytes.
    /// Passes through `store`.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached, or the artifact is not one document of
    /// that size.
    pub async fn pull_document(
        &self,
        reference: &Reference,
        manifest: &Manifest,
        store: &ArtifactStore,
        bytes_max: u64,
    ) -> Result<Vec<u8>, RegistryError> {
        let step = format!("downloading {}@{}", reference.repository(), manifest.digest);
        let layer = match manifest.layers.as_slice() {
            [layer] if layer.size <= bytes_max => layer,
            [_] => return at(Err(RegistryErrorKind::TooLarge(bytes_max)), reference, &step),
            _ => {
                let message = "expected an artifact of one document".to_owned();
                return at(Err(RegistryErrorKind::Malformed(message)), reference, &step);
            }
        };
        self.pull_blob(reference, layer, store, &|_, _| {}).await?;
        let content = store.read(layer.digest, layer.size).map_err(RegistryErrorKind::from);
        let content = content.and_then(|content| content.ok_or(RegistryErrorKind::NotFound));
        at(content, reference, &step)
    }
}
