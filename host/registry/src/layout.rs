//! Image layouts of OCI: a directory of artifacts with an index of their names.
//!
//! Signatures are listed in an index with the name `sha256-DIGEST`, as in a registry without the
//! referrers API, so that programs that copy tags take them along.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::NamedTempFile;

use crate::manifest::{
    Document, INDEX_TYPE, Index, MANIFEST_BYTES_MAX, MANIFEST_TYPE, Manifest, fallback_tag,
};
use crate::{ArtifactStore, Descriptor, Digest, ManifestError, Reference, StoreError};

/// File with the index of a layout.
const INDEX_FILE: &str = "index.json";
/// Annotation with the name of an artifact in an index.
const NAME: &str = "org.opencontainers.image.ref.name";
/// Maximum size of a content other than a component in bytes.
const CONTENT_BYTES_MAX: u64 = 1024 * 1024;
/// Beginning of references, which names of other programs leave out.
const SCHEME: &str = "oci://";

/// Image layout in a directory. A third party may have written it: everything that is read from it
/// is checked against its digest, and names are only as good as their signatures.
#[derive(Debug)]
pub struct ImageLayout {
    directory: PathBuf,
    blobs: ArtifactStore,
    manifests: Vec<Descriptor>,
}

/// Error of an image layout.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A blob cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A manifest or an index cannot be used.
    #[error("a document of the layout {0}")]
    Manifest(#[from] ManifestError),
    /// The layout does not contain an artifact.
    #[error("the layout does not contain {0}")]
    Absent(String),
    /// The component is larger than the limit.
    #[error("the component has {size} bytes; at most {bytes_max} are accepted")]
    ComponentSize {
        /// Size by the manifest.
        size: u64,
        /// Limit.
        bytes_max: u64,
    },
}

impl ImageLayout {
    /// Creates an empty layout in `directory`. [`write`](Self::write) replaces the index of one
    /// that exists.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created.
    pub fn create_ambient(directory: &Path) -> Result<Self, LayoutError> {
        let blobs = ArtifactStore::open_ambient(directory)?;
        Ok(Self { directory: directory.to_owned(), blobs, manifests: Vec::new() })
    }

    /// Opens the layout in `directory` to read it. Changes nothing there.
    ///
    /// # Errors
    /// Returns an error if the directory is not an image layout.
    pub fn open_ambient(directory: &Path) -> Result<Self, LayoutError> {
        let blobs = ArtifactStore::open_existing_ambient(directory)?;
        let index = blobs.read_index_ambient(&directory.join(INDEX_FILE))?;
        let manifests = index.map(|index| index.manifests).unwrap_or_default();
        Ok(Self { directory: directory.to_owned(), blobs, manifests })
    }

    /// Returns the blobs of the layout.
    #[must_use]
    pub fn blobs(&self) -> &ArtifactStore {
        &self.blobs
    }

    /// Adds the artifact with the manifest `manifest` and its signatures under the name that a
    /// reference has without `oci://`.
    ///
    /// # Errors
    /// Returns an error if `from` does not contain the artifact, or the layout cannot be written.
    pub fn add(
        &mut self,
        from: &ArtifactStore,
        manifest: Digest,
        reference: &str,
    ) -> Result<(), LayoutError> {
        let manifest = stored_manifest(from, manifest)?;
        copy(from, &self.blobs, &manifest)?;
        let mut entry = Descriptor::of(MANIFEST_TYPE, &manifest.bytes);
        entry.annotations.insert(NAME.to_owned(), short(reference).to_owned());
        self.manifests.push(entry);
        let signatures = from.referrers(manifest.digest)?;
        for signature in &signatures {
            copy(from, &self.blobs, &stored_manifest(from, signature.digest)?)?;
            self.manifests.push(signature.clone());
        }
        if !signatures.is_empty() {
            let index = Index { manifests: signatures }.to_json();
            self.blobs.insert(&index)?;
            let mut entry = Descriptor::of(INDEX_TYPE, &index);
            entry.annotations.insert(NAME.to_owned(), fallback_tag(manifest.digest));
            self.manifests.push(entry);
        }
        Ok(())
    }

    /// Writes the index into the directory of the layout.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn write(&self) -> io::Result<()> {
        let index = Index { manifests: self.manifests.clone() }.to_json();
        let mut file = NamedTempFile::new_in(&self.directory)?;
        file.write_all(&index)?;
        file.persist(self.directory.join(INDEX_FILE)).map_err(|error| error.error)?;
        Ok(())
    }

    /// Reads the manifest of `reference`.
    ///
    /// # Errors
    /// Returns an error if the layout does not contain the artifact, or it cannot be read.
    pub fn manifest(&self, reference: &Reference) -> Result<Manifest, LayoutError> {
        let name = reference.to_string();
        let digest = reference.digest().or_else(|| Some(self.named(short(&name))?.digest));
        let digest = digest.ok_or(LayoutError::Absent(name))?;
        stored_manifest(&self.blobs, digest)
    }

    /// Reads the only layer of an artifact, which may have at most `bytes_max` bytes.
    ///
    /// # Errors
    /// Returns an error if the artifact has other layers, or the layout does not contain this one
    /// unchanged.
    pub fn document(&self, manifest: &Manifest, bytes_max: u64) -> Result<Vec<u8>, LayoutError> {
        let [layer] = manifest.layers.as_slice() else {
            let problem = "it has several layers instead of one document";
            return Err(ManifestError::Malformed(problem.to_owned()).into());
        };
        let document = self.blobs.read(layer.digest, layer.size.min(bytes_max))?;
        document.ok_or_else(|| LayoutError::Absent(layer.digest.to_string()))
    }

    /// Copies the artifact with the manifest `manifest`, without its signatures, into `store`. The
    /// component may have at most `bytes_max` bytes.
    ///
    /// # Errors
    /// Returns an error if the layout does not contain the artifact unchanged, or the component is
    /// too large.
    pub fn copy(
        &self,
        manifest: &Manifest,
        store: &ArtifactStore,
        bytes_max: u64,
    ) -> Result<(), LayoutError> {
        let size = manifest.component()?.size;
        if size > bytes_max {
            return Err(LayoutError::ComponentSize { size, bytes_max });
        }
        copy(&self.blobs, store, manifest)
    }

    /// Returns the entries of the signatures of an artifact.
    #[cfg(feature = "client")]
    pub(crate) fn referrers(&self, manifest: Digest) -> Result<Vec<Descriptor>, LayoutError> {
        let Some(entry) = self.named(&fallback_tag(manifest)) else { return Ok(Vec::new()) };
        let Some(index) = self.blobs.read(entry.digest, MANIFEST_BYTES_MAX)? else {
            return Ok(Vec::new());
        };
        match Document::parse(index.into())? {
            Document::Index(index) => Ok(index.manifests),
            Document::Manifest(_) => Ok(Vec::new()),
        }
    }

    fn named(&self, name: &str) -> Option<&Descriptor> {
        self.manifests.iter().find(|it| it.annotations.get(NAME).is_some_and(|it| it == name))
    }
}

/// Returns a reference as other programs write names in a layout.
fn short(reference: &str) -> &str {
    reference.strip_prefix(SCHEME).unwrap_or(reference)
}

/// Reads a manifest, which must be in the store.
fn stored_manifest(store: &ArtifactStore, digest: Digest) -> Result<Manifest, LayoutError> {
    let content = store.read(digest, MANIFEST_BYTES_MAX)?;
    let content = content.ok_or_else(|| LayoutError::Absent(digest.to_string()))?;
    match Document::parse(Bytes::from(content))? {
        Document::Manifest(manifest) => Ok(*manifest),
        Document::Index(_) => Err(ManifestError::Nested.into()),
    }
}

/// Copies a manifest and its contents: of a plugin, the component and the configuration; of a
/// signature, everything.
fn copy(from: &ArtifactStore, to: &ArtifactStore, manifest: &Manifest) -> Result<(), LayoutError> {
    match manifest.component() {
        Ok(component) => {
            copy_blob(from, to, component)?;
            // Other programs need it, and this one does not.
            if manifest.config.size <= CONTENT_BYTES_MAX {
                match copy_blob(from, to, &manifest.config) {
                    Ok(()) | Err(LayoutError::Absent(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Err(_) => {
            for content in manifest.contents() {
                copy_small(from, to, content)?;
            }
        }
    }
    to.insert(&manifest.bytes)?;
    Ok(())
}

fn copy_small(
    from: &ArtifactStore,
    to: &ArtifactStore,
    blob: &Descriptor,
) -> Result<(), LayoutError> {
    if blob.size > CONTENT_BYTES_MAX {
        let (expected, found) = (CONTENT_BYTES_MAX, blob.size);
        return Err(StoreError::Size { expected, found }.into());
    }
    copy_blob(from, to, blob)
}

fn copy_blob(
    from: &ArtifactStore,
    to: &ArtifactStore,
    blob: &Descriptor,
) -> Result<(), LayoutError> {
    let content = from.read(blob.digest, blob.size)?;
    to.insert(&content.ok_or_else(|| LayoutError::Absent(blob.digest.to_string()))?)?;
    Ok(())
}
