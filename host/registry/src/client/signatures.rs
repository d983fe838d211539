//! Signatures of artifacts: artifacts of their own, which refer to the signed one.

use super::referrers::CANDIDATES_MAX;
use super::{RegistryClient, at};
use crate::error::RegistryErrorKind;
use crate::manifest::{EMPTY_TYPE, Manifest};
use crate::signature::{BUNDLE_BYTES_MAX, BUNDLE_TYPE, SignatureBundle};
use crate::{Descriptor, Digest, Reference, RegistryError};

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
        let expected = (BUNDLE_TYPE, BUNDLE_BYTES_MAX);
        for entry in &listed {
            match self.referrer(reference, manifest, entry, expected).await {
                Ok(found) => signatures.extend(found.map(SignatureBundle::from_bytes)),
                // An index may list an artifact that was deleted.
                Err(RegistryErrorKind::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(signatures)
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
        let bytes = signature.as_bytes();
        if u64::try_from(bytes.len()).is_ok_and(|length| length > BUNDLE_BYTES_MAX) {
            let message = format!("the signature has more than {BUNDLE_BYTES_MAX} bytes");
            return Err(RegistryErrorKind::Malformed(message));
        }
        self.write_referrer(reference, manifest, &signature.content()).await
    }
}

/// Returns whether an entry of a list may be a signature. Some programs write a wrong type.
fn may_be_signature(entry: &Descriptor) -> bool {
    matches!(entry.artifact_type.as_deref(), None | Some(BUNDLE_TYPE | EMPTY_TYPE))
}
