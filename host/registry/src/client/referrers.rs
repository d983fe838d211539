//! Artifacts that refer to another one, such as signatures.
//!
//! A registry lists them by the referrers API of OCI 1.1. Where that is missing, an index has the
//! tag `sha256-DIGEST`.

use bytes::Bytes;
use reqwest::header::LINK;
use reqwest::{Method, Response, StatusCode, Url};

use super::transport::read_body;
use super::{ApiRequest, RegistryClient, RequestTarget};
use crate::error::RegistryErrorKind;
use crate::manifest::{
    Document, INDEX_TYPE, Index, MANIFEST_BYTES_MAX, MANIFEST_TYPE, Manifest, ReferrerArtifact,
    ReferrerContent, fallback_tag,
};
use crate::{Descriptor, Digest, Reference};

/// Maximum number of artifacts of a kind that refer to one.
pub(super) const CANDIDATES_MAX: usize = 64;
/// Maximum number of pages of a list.
const PAGES_MAX: usize = 8;
/// Header of a registry that lists an artifact that refers to another.
const SUBJECT_HEADER: &str = "oci-subject";
/// Number of tries to write an index that others write as well.
const INDEX_TRIES: usize = 3;

impl RegistryClient {
    /// Returns the artifacts that refer to `manifest`.
    pub(super) async fn referrers(
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

    /// Reads the content of an artifact that refers to `manifest`. Returns `None` if it does not
    /// refer to it, or has not exactly one layer of the expected type and maximum size in bytes.
    pub(super) async fn referrer(
        &self,
        reference: &Reference,
        manifest: Digest,
        entry: &Descriptor,
        expected: (&str, u64),
    ) -> Result<Option<Vec<u8>>, RegistryErrorKind> {
        let document = self.document(&reference.with_digest(entry.digest)).await?;
        let Document::Manifest(found) = document else { return Ok(None) };
        let Some(layer) = found.referrer_layer(manifest, expected) else { return Ok(None) };
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
        Ok(Some(content))
    }

    /// Pushes an artifact that refers to `manifest`.
    pub(super) async fn write_referrer(
        &self,
        reference: &Reference,
        manifest: &Manifest,
        content: &ReferrerContent<'_>,
    ) -> Result<(), RegistryErrorKind> {
        let subject = Descriptor::of(MANIFEST_TYPE, &manifest.bytes);
        let artifact = ReferrerArtifact::new(content, Some(subject));
        for blob in [ReferrerArtifact::CONFIG, content.bytes] {
            let blob = Bytes::copy_from_slice(blob);
            self.push_blob(reference, Digest::of(&blob), &blob).await?;
        }
        let version = artifact.entry.digest.to_string();
        let written = Bytes::from(artifact.manifest);
        let response = self.put_manifest(reference, &version, MANIFEST_TYPE, written).await?;
        if response.headers().contains_key(SUBJECT_HEADER) {
            return Ok(());
        }
        let tag = fallback_tag(manifest.digest);
        self.add_to_index(reference, &tag, &artifact.entry, content.is_only).await
    }

    /// Adds an entry to the index at a tag, instead of others of its type if it `is_only`. Reads
    /// the index again afterwards, because another program may have written it in between.
    async fn add_to_index(
        &self,
        reference: &Reference,
        tag: &str,
        entry: &Descriptor,
        is_only: bool,
    ) -> Result<(), RegistryErrorKind> {
        let is_other = |known: &Descriptor| {
            is_only && known.artifact_type == entry.artifact_type && known.digest != entry.digest
        };
        let is_done = |index: &Index| {
            let is_listed = index.manifests.iter().any(|known| known.digest == entry.digest);
            is_listed && !index.manifests.iter().any(is_other)
        };
        for _ in 0..INDEX_TRIES {
            let mut index = self.tagged_index(reference, tag).await?.unwrap_or_default();
            if is_done(&index) {
                return Ok(());
            }
            index.manifests.retain(|known| known.digest != entry.digest && !is_other(known));
            index.manifests.push(entry.clone());
            self.put_manifest(reference, tag, INDEX_TYPE, index.to_json().into()).await?;
        }
        match is_done(&self.tagged_index(reference, tag).await?.unwrap_or_default()) {
            true => Ok(()),
            false => Err(RegistryErrorKind::Malformed(format!(
                "the index `{tag}` is overwritten by others; try again"
            ))),
        }
    }
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
