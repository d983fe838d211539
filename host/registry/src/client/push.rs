//! Writing of artifacts.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response, StatusCode};

use super::{ApiRequest, RegistryClient, RepositoryAccess, RequestTarget, at, location};
use crate::error::RegistryErrorKind;
use crate::manifest::MANIFEST_TYPE;
use crate::{Digest, Reference, RegistryError, WasmArtifact};

impl RegistryClient {
    /// Pushes an artifact under the tag of `reference`. Returns the digest of its manifest. The
    /// manifest comes last, so that an interrupted push leaves the tag as it was.
    ///
    /// # Errors
    /// Returns an error if the registry cannot be reached or rejects the artifact.
    pub async fn push(
        &self,
        reference: &Reference,
        artifact: &WasmArtifact,
    ) -> Result<Digest, RegistryError> {
        for blob in [&Bytes::from(artifact.config.clone()), &artifact.component] {
            let digest = Digest::of(blob);
            let step = format!("uploading {digest} to {}", reference.repository());
            at(self.push_blob(reference, digest, blob).await, reference, &step)?;
        }
        let digest = artifact.digest();
        let step = format!("writing {}:{}", reference.repository(), reference.version());
        let manifest = Bytes::from(artifact.manifest.clone());
        let version = reference.version().to_string();
        let written = self.put_manifest(reference, &version, MANIFEST_TYPE, manifest).await;
        at(written, reference, &step)?;
        Ok(digest)
    }

    /// Uploads a blob, unless the repository contains it.
    pub(super) async fn push_blob(
        &self,
        reference: &Reference,
        digest: Digest,
        blob: &Bytes,
    ) -> Result<(), RegistryErrorKind> {
        let path = format!("blobs/{digest}");
        let exists = ApiRequest {
            access: RepositoryAccess::Push,
            ..ApiRequest::new(reference, Method::HEAD, &path)
        };
        if self.send(exists).await?.status() == StatusCode::OK {
            return Ok(());
        }
        let begin = ApiRequest {
            access: RepositoryAccess::Push,
            ..ApiRequest::new(reference, Method::POST, "blobs/uploads/")
        };
        let response = self.send(begin).await?;
        if response.status() != StatusCode::ACCEPTED {
            return Err(self.failure(response, reference).await);
        }
        let mut url = location(&response, response.url())?;
        url.query_pairs_mut().append_pair("digest", &digest.to_string());
        let mut upload = ApiRequest {
            access: RepositoryAccess::Push,
            target: RequestTarget::Url(url),
            body: Some(blob.clone()),
            ..ApiRequest::new(reference, Method::PUT, "")
        };
        let octets = HeaderValue::from_static("application/octet-stream");
        upload.headers.insert(CONTENT_TYPE, octets);
        let response = self.send(upload).await?;
        match response.status() {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.failure(response, reference).await),
        }
    }

    /// Writes a manifest under a tag or its digest.
    pub(super) async fn put_manifest(
        &self,
        reference: &Reference,
        version: &str,
        media_type: &'static str,
        manifest: Bytes,
    ) -> Result<Response, RegistryErrorKind> {
        let path = format!("manifests/{version}");
        let mut request = ApiRequest {
            access: RepositoryAccess::Push,
            body: Some(manifest),
            ..ApiRequest::new(reference, Method::PUT, &path)
        };
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        let response = self.send(request).await?;
        match response.status() {
            StatusCode::CREATED => Ok(response),
            _ => Err(self.failure(response, reference).await),
        }
    }
}
