//! Image layouts of OCI: a directory of blobs with an index of the artifacts in it.

use std::io::{self, Write as _};
use std::path::Path;

use bytes::Bytes;
use tempfile::NamedTempFile;

use crate::manifest::{Document, INDEX_TYPE, MANIFEST_TYPE};
use crate::{Descriptor, Manifest, ManifestError};

/// File with the index of a layout.
const INDEX_FILE: &str = "index.json";
/// Annotation with the name of an artifact in an index.
const NAME: &str = "org.opencontainers.image.ref.name";

/// Index of an image layout. Its blobs are those of an [`ArtifactStore`](crate::ArtifactStore) in
/// the same directory.
#[derive(Debug, Default)]
pub struct ImageLayout {
    manifests: Vec<Descriptor>,
}

impl ImageLayout {
    /// Adds an artifact by its manifest, under a name. Returns the manifest.
    ///
    /// # Errors
    /// Returns an error if `manifest` is not a manifest.
    pub fn add(&mut self, manifest: &[u8], name: &str) -> Result<Manifest, ManifestError> {
        let document = match Document::parse(Bytes::copy_from_slice(manifest))? {
            Document::Manifest(document) => *document,
            Document::Index(_) => return Err(ManifestError::Nested),
        };
        let mut entry = Descriptor::of(MANIFEST_TYPE, manifest);
        entry.annotations.insert(NAME.to_owned(), name.to_owned());
        self.manifests.push(entry);
        Ok(document)
    }

    /// Writes the index into the directory of the layout.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn write_ambient(&self, directory: &Path) -> io::Result<()> {
        let index = serde_json::json!({
            "schemaVersion": 2,
            "mediaType": INDEX_TYPE,
            "manifests": self.manifests,
        });
        let mut file = NamedTempFile::new_in(directory)?;
        file.write_all(index.to_string().as_bytes())?;
        file.persist(directory.join(INDEX_FILE)).map_err(|error| error.error)?;
        Ok(())
    }
}
