//! READMEs of plugins: artifacts of their own, which refer to the plugin. Its manifest has exactly
//! one layer, which other programs require.
//!
//! A README is not signed: who may push to a repository may add one.

use std::collections::BTreeMap;

use super::referrers::CANDIDATES_MAX;
use super::{RegistryClient, at};
use crate::error::RegistryErrorKind;
use crate::manifest::{EMPTY_TYPE, Manifest, ReferrerContent};
use crate::{Descriptor, Digest, Reference, RegistryError};

/// Media type of a README, and type of its artifact.
const MARKDOWN_TYPE: &str = "text/markdown";
/// Name of the file, as other programs write it.
const TITLE: &str = "README.md";
/// Maximum size of a README in bytes.
pub const README_BYTES_MAX: u64 = 1024 * 1024;

impl RegistryClient {
    /// Returns the README of the artifact with the manifest `manifest`, in Markdown. Of several, it
    /// returns the one that the registry lists last. A third party wrote it.
    ///
    /// # Errors
    /// Returns an error if it is not known whether there is one, such as for a registry that
    /// reports an error.
    pub async fn readme(
        &self,
        reference: &Reference,
        manifest: Digest,
    ) -> Result<Option<String>, RegistryError> {
        let step = format!("reading the README of {}@{manifest}", reference.repository());
        at(self.read_readme(reference, manifest).await, reference, &step)
    }

    async fn read_readme(
        &self,
        reference: &Reference,
        manifest: Digest,
    ) -> Result<Option<String>, RegistryErrorKind> {
        let mut listed = self.referrers(reference, manifest).await?;
        listed.retain(may_be_readme);
        for entry in listed.iter().rev().take(CANDIDATES_MAX) {
            let expected = (MARKDOWN_TYPE, README_BYTES_MAX);
            let found = match self.referrer(reference, manifest, entry, expected).await {
                // An index may list an artifact that was deleted.
                Err(RegistryErrorKind::NotFound) => None,
                found => found?,
            };
            if let Some(readme) = found.and_then(|content| String::from_utf8(content).ok()) {
                return Ok(Some(readme));
            }
        }
        Ok(None)
    }

    /// Pushes the README of the artifact with the manifest `manifest`. An index of the artifacts
    /// that refer to it lists this one instead of an older one; a registry with the referrers API
    /// may list both.
    ///
    /// # Errors
    /// Returns an error if the README is too large, or the registry cannot be reached or rejects
    /// it.
    pub async fn push_readme(
        &self,
        reference: &Reference,
        manifest: &Manifest,
        readme: &str,
    ) -> Result<(), RegistryError> {
        let step = format!("writing the README of {}@{}", reference.repository(), manifest.digest);
        if u64::try_from(readme.len()).is_ok_and(|length| length > README_BYTES_MAX) {
            let message = format!("the README has more than {README_BYTES_MAX} bytes");
            return at(Err(RegistryErrorKind::Malformed(message)), reference, &step);
        }
        let content = ReferrerContent {
            media_type: MARKDOWN_TYPE,
            bytes: readme.as_bytes(),
            annotations: BTreeMap::new(),
            title: Some(TITLE),
            is_only: true,
        };
        at(self.write_referrer(reference, manifest, &content).await, reference, &step)
    }
}

/// Returns whether an entry of a list may be a README. Some registries write a wrong type.
fn may_be_readme(entry: &Descriptor) -> bool {
    matches!(entry.artifact_type.as_deref(), None | Some(MARKDOWN_TYPE | EMPTY_TYPE))
}
