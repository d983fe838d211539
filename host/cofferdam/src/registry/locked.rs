//! Plugins that the lock file pins: fetched by their digests, or not at all.

use cofferdam_registry::{
    Descriptor, ImageLayout, MANIFEST_BYTES_MAX, Progress, Reference, SignatureBundle,
};

use super::{PluginFetcher, SignedArtifact, unavailable};
use crate::artifacts::Origin;
use crate::config::ComponentLocation;
use crate::error::Context as _;
use crate::{Error, Result};

/// Maximum bytes of a blob that may be a signature.
const SIGNATURE_BYTES_MAX: u64 = 1024 * 1024;

impl PluginFetcher {
    /// Fetches the component that the lock file pins, with its manifest and signatures, unless they
    /// are in the store. Returns whether something was fetched. Resolves nothing: other bytes are
    /// an error.
    ///
    /// # Errors
    /// Returns an error if the component or its signatures cannot be fetched, or the component is
    /// another one.
    pub async fn fetch_locked(
        &self,
        location: &ComponentLocation,
        origin: &Origin,
    ) -> Result<bool> {
        if let Some(objection) = self.policy.objection(location, origin) {
            return Err(Error::NotAccepted(objection));
        }
        if self.is_stored(origin) && self.has_signature(location, origin) {
            return Ok(false);
        }
        let progress = self.progress(&origin.source);
        match location {
            ComponentLocation::File(_) => return Ok(false),
            ComponentLocation::Registry(reference) => {
                let pulled = self.pull_locked(reference, origin, &progress).await;
                self.operator.progress(None);
                pulled?;
            }
            ComponentLocation::Web(_) if self.copy.is_some() => self.copy_component(origin)?,
            ComponentLocation::Web(url) => {
                let bytes_max = origin.size;
                let fetched =
                    self.client.fetch_web(url.as_str(), &self.store, bytes_max, &progress).await;
                self.operator.progress(None);
                let found = fetched.map_err(unavailable)?.digest;
                if found != origin.layer {
                    let (source, expected) = (&origin.source, origin.layer);
                    return Err(Error::NotAccepted(format!(
                        "{source} has the digest {found}; the lock file has {expected}"
                    )));
                }
            }
        }
        Ok(true)
    }

    /// Returns whether the component of a plugin is in the store, with its manifest.
    fn is_stored(&self, origin: &Origin) -> bool {
        let is_whole =
            |digest, bytes_max| matches!(self.store.read(digest, bytes_max), Ok(Some(_)));
        is_whole(origin.layer, origin.size)
            && origin.manifest.is_none_or(|digest| is_whole(digest, MANIFEST_BYTES_MAX))
    }

    /// Returns whether the store has a signature that the rule about a plugin accepts, or there is
    /// no such rule.
    fn has_signature(&self, location: &ComponentLocation, origin: &Origin) -> bool {
        let ComponentLocation::Registry(reference) = location else { return true };
        let (Some(digest), Some(rule)) = (origin.manifest, self.policy.rule(reference)) else {
            return true;
        };
        let accepts = |blob: &_| {
            let content = self.store.read(*blob, SIGNATURE_BYTES_MAX).ok().flatten();
            content.is_some_and(|content| {
                rule.accepts(digest, &SignatureBundle::from_bytes(content), &self.root)
            })
        };
        self.store.artifact_blobs(digest).is_ok_and(|blobs| blobs.iter().any(accepts))
    }

    /// Copies a component that is no artifact of a registry from the image layout.
    fn copy_component(&self, origin: &Origin) -> Result<()> {
        let blobs = self.copy.as_ref().map(ImageLayout::blobs);
        let component = blobs.map(|blobs| blobs.read(origin.layer, origin.size)).transpose();
        let component = component.with_context(|| format!("{} cannot be used", origin.layer))?;
        let component = component.flatten().ok_or_else(|| {
            Error::NotAccepted(format!(
                "the layout does not contain {}: {}",
                origin.source, origin.layer
            ))
        })?;
        let stored = self.store.insert(&component);
        stored.map(drop).context("the artifact store cannot be written")
    }

    async fn pull_locked(
        &self,
        reference: &Reference,
        origin: &Origin,
        progress: Progress<'_>,
    ) -> Result<()> {
        let Some(digest) = origin.manifest else {
            let layer = Descriptor::component(origin.layer, origin.size);
            let pulled = self.client.pull_blob(reference, &layer, &self.store, progress).await;
            return pulled.map_err(unavailable);
        };
        let pinned = reference.with_digest(digest);
        let manifest = self.manifest(&pinned).await?;
        let layer = manifest.component().map(|component| component.digest);
        if layer != Ok(origin.layer) {
            return Err(Error::NotAccepted(format!(
                "the lock file has another component for {reference} than its manifest {digest}"
            )));
        }
        let mut artifact = SignedArtifact::unsigned(manifest);
        if let Some(rule) = self.policy.rule(reference) {
            // The lock file says who signed the plugin. Signatures are stored for copies.
            artifact.signatures = self.signatures(&pinned, digest).await?;
            artifact.signatures.retain(|it| rule.accepts(digest, it, &self.root));
        }
        self.pull(&pinned, &artifact, progress).await
    }
}
