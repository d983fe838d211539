//! Signatures of artifacts: artifacts of their own, which refer to the signed one.
//!
//! A registry lists them by the referrers API of OCI 1.1. Where that is missing, an index has the
//! tag `sha256-DIGEST`.

use bytes::Bytes;
use reqwest::header::LINK;
use reqwest::{Method, Response, StatusCode, Url};

use super::transport::read_body;
use super::{ApiRequest, RegistryClient, RequestTarget, at};
use crate::error::RegistryErrorKind;
use crate::manifest::{
    Document, EMPTY_TYPE, INDEX_TYPE, Index, MANIFEST_BYTES_MAX, MANIFEST_TYPE, Manifest,
    ReferrerArtifact, fallback_tag,
};
use crate::signature::{BUNDLE_BYTES_MAX, BUNDLE_TYPE, SignatureBundle};
use crate::{Descriptor, Digest, Reference, RegistryError};

/// Maximum number of artifacts that refer to one and may be signatures.
const CANDIDATES_MAX: usize = 64;
/// Maximum number of pages of a list.
const PAGES_MAX: usize = 8;
/// Header of a registry that lists an artifact that refers to another.
const SUBJECT_HEADER: &str = "oci-subject";
/// Number of tries to write an index that others write as well.
const INDEX_TRIES: usize = 3;

impl RegistryClient {
    /// Returns the signatures of the artifact with the manifest `manifest`, and signed statements
    /// about it. Nothing about them is verified. An empty list means that the registry lists none.
    ///
    /// # Errors
    /// Returns an error if it is not known whether there are signatures, such as for a registry
    /// that reports an error.
    pub async fn signatures(
        &self,
        reference: &Reference,
        manifest: Digest,
    ) -> Result<Vec<SignatureBundle>, RegistryError> {
        let step = format!("reading the signatures of {}@{manifest}", reference.repository());
        at(self.read_signatures(reference, manifest).await, reference, &step)
    }

    async fn read_signatures(
        &self,
        reference: &Reference,
        manifest: Digest,
    ) -> Result<Vec<SignatureBundle>, RegistryErrorKind> {
        let mut listed = self.referrers(reference, manifest).await?;
        listed.retain(may_be_signature);
        if listed.len() > CANDIDATES_MAX {
            let message = format!("more than {CANDIDATES_MAX} signatures");
            return Err(RegistryErrorKind::Malformed(message));
        }
        let mut signatures = Vec::new();
        for entry in &listed {
            match self.signature(reference, manifest, entry).await {
                Ok(found) => signatures.extend(found),
                // An index may list an artifact that was deleted.
                Err(RegistryErrorKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(signatures)
    }

    /// Returns the artifacts that refer to `manifest`.
    async fn referrers(
        &self,
        reference: &Reference,
        manifest: Digest,
    ) -> Result<Vec<Descriptor>, RegistryErrorKind> {
        let path = format!("referrers/{manifest}");
        let mut listed = Vec::new();
        let mut next = None;
        for _ in 0..PAGES_MAX {
            let mut request = ApiRequest::new(reference, Method::GET, &path).accept(INDEX_TYPE);
            if let Some(url) = next.take() {
                request.target = RequestTarget::Url(url);
            }
            let response = self.send(request).await?;
            if listed.is_empty() && has_no_referrers_api(response.status()) {
                let tag = fallback_tag(manifest);
                let index = self.tagged_index(reference, &tag).await?;
                return Ok(index.map(|index| index.manifests).unwrap_or_default());
            }
            if response.status() != StatusCode::OK {
                return Err(self.failure(response, reference).await);
            }
            next = next_page(&response);
            listed.extend(read_index(response).await?.manifests);
            if next.is_none() {
                return Ok(listed);
            }
        }
        Err(RegistryErrorKind::Malformed(format!("more than {PAGES_MAX} pages of referrers")))
    }

    /// Returns the index at a tag, if there is one.
    async fn tagged_index(
        &self,
        reference: &Reference,
        tag: &str,
    ) -> Result<Option<Index>, RegistryErrorKind> {
        let path = format!("manifests/{tag}");
        let request = ApiRequest::new(reference, Method::GET, &path).accept(INDEX_TYPE);
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::OK => read_index(response).await.map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.failure(response, reference).await),
        }
    }

    /// Reads one artifact that refers to `manifest`. Returns `None` if it is not a signature of it.
    async fn signature(
        &self,
        reference: &Reference,
        manifest: Digest,
        entry: &Descriptor,
    ) -> Result<Option<SignatureBundle>, RegistryErrorKind> {
        let document = self.document(&reference.with_digest(entry.digest)).await?;
        let Document::Manifest(found) = document else { return Ok(None) };
        let Some(layer) = found.signature_of(manifest) else { return Ok(None) };
        let path = format!("blobs/{}", layer.digest);
        let response = self.send(ApiRequest::new(reference, Method::GET, &path)).await?;
        if response.status() != StatusCode::OK {
            return Err(self.failure(response, reference).await);
        }
        let content = read_body(response, layer.size).await?;
        let digest = Digest::of(&content);
        if digest != layer.digest {
            let expected = layer.digest;
            return Err(RegistryErrorKind::ManifestDigest { expected, found: digest });
        }
        Ok(Some(SignatureBundle::from_bytes(content)))
    }

    /// Pushes a signature of the artifact with the manifest `manifest`.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or rejects the signature.
    pub async fn push_signature(
        &self,
        reference: &Reference,
        manifest: &Manifest,
        signature: &SignatureBundle,
    ) -> Result<(), RegistryError> {
        let step = format!("writing a signature of {}@{}", reference.repository(), manifest.digest);
        at(self.write_signature(reference, manifest, signature).await, reference, &step)
    }

    async fn write_signature(
        &self,
        reference: &Reference,
        manifest: &Manifest,
        signature: &SignatureBundle,
    ) -> Result<(), RegistryErrorKind> {
        let content = signature.as_bytes();
        if u64::try_from(content.len()).is_ok_and(|length| length > BUNDLE_BYTES_MAX) {
            let message = format!("the signature has more than {BUNDLE_BYTES_MAX} bytes");
            return Err(RegistryErrorKind::Malformed(message));
        }
        let artifact = signature.artifact(manifest);
        for blob in [ReferrerArtifact::CONFIG, content] {
            let blob = Bytes::copy_from_slice(blob);
            self.push_blob(reference, Digest::of(&blob), &blob).await?;
        }
        let version = artifact.entry.digest.to_string();
        let written = Bytes::from(artifact.manifest);
        let response = self.put_manifest(reference, &version, MANIFEST_TYPE, written).await?;
        if response.headers().contains_key(SUBJECT_HEADER) {
            return Ok(());
        }
        self.add_to_index(reference, &fallback_tag(manifest.digest), &artifact.entry).await
    }

    /// Adds an entry to the index at a tag. Reads it again afterwards, because another program may
    /// have written the index in between.
    async fn add_to_index(
        &self,
        reference: &Reference,
        tag: &str,
        entry: &Descriptor,
    ) -> Result<(), RegistryErrorKind> {
        for _ in 0..INDEX_TRIES {
            let mut index = self.tagged_index(reference, tag).await?.unwrap_or_default();
            if index.manifests.iter().any(|known| known.digest == entry.digest) {
                return Ok(());
            }
            index.manifests.push(entry.clone());
            self.put_manifest(reference, tag, INDEX_TYPE, index.to_json().into()).await?;
        }
        let index = self.tagged_index(reference, tag).await?.unwrap_or_default();
        match index.manifests.iter().any(|known| known.digest == entry.digest) {
            true => Ok(()),
            false => Err(RegistryErrorKind::Malformed(format!(
                "the index `{tag}` is overwritten by others; try again"
            ))),
        }
    }
}

/// Returns whether an entry of a list may be a signature. Some programs write a wrong type.
fn may_be_signature(entry: &Descriptor) -> bool {
    matches!(entry.artifact_type.as_deref(), None | Some(BUNDLE_TYPE | EMPTY_TYPE))
}

/// Returns whether a response means that the registry does not know the referrers API.
fn has_no_referrers_api(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NOT_FOUND
            | StatusCode::BAD_REQUEST
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::NOT_ACCEPTABLE
    )
}

async fn read_index(response: Response) -> Result<Index, RegistryErrorKind> {
    match Document::parse(read_body(response, MANIFEST_BYTES_MAX).await?.into())? {
        Document::Index(index) => Ok(index),
        Document::Manifest(_) => {
            Err(RegistryErrorKind::Malformed("expected an index of manifests".to_owned()))
        }
    }
}

/// Returns the address of the next page of a list.
fn next_page(response: &Response) -> Option<Url> {
    let link = response.headers().get(LINK)?.to_str().ok()?;
    let (address, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = parameters.contains("rel=\"next\"") || parameters.contains("rel=next");
    response.url().join(address).ok().filter(|_| is_next)
}
