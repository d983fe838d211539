//! Signatures of artifacts in the store, so that a copy of an artifact can take them along.

use std::io::Write as _;

use tempfile::NamedTempFile;

use super::{ArtifactStore, INCOMPLETE, REFERRERS, StoreError};
use crate::layout::{ImageLayout, LayoutError};
use crate::manifest::{
    Document, Index, MANIFEST_BYTES_MAX, MANIFEST_TYPE, Manifest, ReferrerArtifact,
};
use crate::signature::{BUNDLE_BYTES_MAX, BUNDLE_TYPE};
use crate::{Descriptor, Digest, SignatureBundle};

impl ArtifactStore {
    /// Stores signatures of the artifact with the manifest `manifest`, instead of those that were
    /// stored for it before. The caller has verified them.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn set_signatures(
        &self,
        manifest: &Manifest,
        signatures: &[SignatureBundle],
    ) -> Result<(), StoreError> {
        let subject = Descriptor::of(MANIFEST_TYPE, &manifest.bytes);
        let mut index = Index::default();
        for signature in signatures {
            let artifact = ReferrerArtifact::new(&signature.content(), Some(subject.clone()));
            for blob in [ReferrerArtifact::CONFIG, signature.as_bytes(), &artifact.manifest] {
                self.insert(blob)?;
            }
            index.manifests.push(artifact.entry);
        }
        let path = self.directory.join(REFERRERS).join(manifest.digest.hex());
        let failed = |cause| StoreError::Io { path: path.clone(), cause };
        let mut file = NamedTempFile::new_in(self.directory.join(INCOMPLETE)).map_err(failed)?;
        file.write_all(&index.to_json()).map_err(failed)?;
        file.persist(&path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Reads the signatures among `listed` of the artifact with the manifest `manifest`.
    fn bundles(
        &self,
        manifest: Digest,
        listed: &[Descriptor],
    ) -> Result<Vec<SignatureBundle>, StoreError> {
        let mut bundles = Vec::new();
        for entry in listed {
            let Some(found) = self.read(entry.digest, MANIFEST_BYTES_MAX)? else { continue };
            let Document::Manifest(found) = Document::parse(found.into())? else { continue };
            let expected = (BUNDLE_TYPE, BUNDLE_BYTES_MAX);
            let Some(layer) = found.referrer_layer(manifest, expected) else { continue };
            let bundle = self.read(layer.digest, BUNDLE_BYTES_MAX)?;
            bundles.extend(bundle.map(SignatureBundle::from_bytes));
        }
        Ok(bundles)
    }
}

impl ImageLayout {
    /// Returns the signatures of the artifact with the manifest `manifest`, and signed statements
    /// about it. Nothing about them is verified.
    ///
    /// # Errors
    /// Returns an error if a signature cannot be read.
    pub fn signatures(&self, manifest: Digest) -> Result<Vec<SignatureBundle>, LayoutError> {
        Ok(self.blobs().bundles(manifest, &self.referrers(manifest)?)?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{SigningKey, WasmArtifact};

    #[test]
    fn a_copy_of_an_artifact_contains_its_signatures() {
        let folder = tempfile::tempdir().unwrap();
        let store = |name: &str| ArtifactStore::open_ambient(folder.path().join(name)).unwrap();
        let (store, other) = (store("store"), store("other"));
        let artifact = WasmArtifact::new(b"component".to_vec().into(), &[], &[], &BTreeMap::new());
        let artifact = artifact.unwrap();
        for blob in [&artifact.manifest[..], &artifact.config, &artifact.component] {
            store.insert(blob).unwrap();
        }
        let Ok(Document::Manifest(manifest)) = Document::parse(artifact.manifest.clone().into())
        else {
            panic!("{artifact:?}")
        };
        let (key, _) = SigningKey::generate().unwrap();
        let bundle = SignatureBundle::sign(manifest.digest, &key).unwrap();
        store.set_signatures(&manifest, std::slice::from_ref(&bundle)).unwrap();
        assert_eq!(store.artifact_blobs(manifest.digest).unwrap().len(), 6);

        let directory = folder.path().join("layout");
        let mut layout = ImageLayout::create_ambient(&directory).unwrap();
        layout.add(&store, manifest.digest, "oci://localhost/acme/csv:1.0").unwrap();
        layout.write().unwrap();

        let layout = ImageLayout::open_ambient(&directory).unwrap();
        let reference = "oci://localhost/acme/csv:1.0".parse().unwrap();
        let found = layout.manifest(&reference).unwrap();
        assert_eq!(found.digest, manifest.digest);
        assert_eq!(layout.signatures(found.digest).unwrap(), [bundle]);
        assert!(matches!(
            layout.copy(&found, &other, 8),
            Err(LayoutError::ComponentSize { size: 9, bytes_max: 8 })
        ));
        layout.copy(&found, &other, 9).unwrap();
        let component = other.read(Digest::of(b"component"), 9).unwrap();
        assert_eq!(component.unwrap(), b"component");
        let absent = "oci://localhost/acme/csv:2.0".parse().unwrap();
        assert!(matches!(layout.manifest(&absent), Err(LayoutError::Absent(_))));
    }

    #[test]
    fn a_changed_copy_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let layout = ImageLayout::create_ambient(folder.path()).unwrap();
        layout.write().unwrap();
        std::fs::write(folder.path().join("index.json"), "{\"schemaVersion\": 2}").unwrap();
        assert!(matches!(
            ImageLayout::open_ambient(folder.path()),
            Err(LayoutError::Store(StoreError::Manifest(_)))
        ));
        let missing = ImageLayout::open_ambient(&folder.path().join("none"));
        assert!(matches!(missing, Err(LayoutError::Store(StoreError::Io { .. }))));
    }
}
