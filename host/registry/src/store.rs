//! Artifacts on disk, by their digests, in the directory layout of OCI images.

mod prune;
#[cfg(feature = "client")]
mod signatures;

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

pub use self::prune::StorePruning;
use crate::manifest::{Document, Index, MANIFEST_BYTES_MAX};
use crate::{Descriptor, Digest, ManifestError};

/// File that marks the layout.
const LAYOUT_FILE: &str = "oci-layout";
const LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;
/// Directory of the blobs, named by their hexadecimal digests.
const BLOBS: &str = "blobs/sha256";
/// Directory of blobs that are being written.
const INCOMPLETE: &str = "incomplete";
/// Directory of indexes of the signatures of artifacts, named like the blobs of their manifests.
const REFERRERS: &str = "referrers";

/// Store of blobs: manifests, configurations and layers. A blob is written once, and its name is
/// the digest of its content. Several processes may use one store.
#[derive(Debug, Clone)]
pub struct ArtifactStore {
    directory: PathBuf,
}

/// Blob that is being written. It appears in the store when it is complete and has the expected
/// digest, or never.
#[derive(Debug)]
pub struct BlobWriter {
    file: NamedTempFile,
    directory: PathBuf,
    /// Digest and size that the content must have.
    expected: Option<(Digest, u64)>,
    bytes_max: u64,
    written: u64,
    hasher: Sha256,
}

/// Error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file system reports an error.
    #[error("{}: {cause}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Error of the file system.
        cause: io::Error,
    },
    /// The content has another digest than expected.
    #[error("has the digest {found}; expected {expected}")]
    Digest {
        /// Expected digest.
        expected: Digest,
        /// Digest of the content.
        found: Digest,
    },
    /// The content has another size than expected.
    #[error("has {found} bytes; expected {expected}")]
    Size {
        /// Expected size in bytes.
        expected: u64,
        /// Number of bytes of the content, at least.
        found: u64,
    },
    /// A blob that is used as a manifest is not one.
    #[error("{0}")]
    Manifest(#[from] ManifestError),
}

impl ArtifactStore {
    /// Opens the store in `directory`, which is created if it does not exist. Only the user may
    /// access a new directory.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created.
    pub fn open_ambient(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self { directory: directory.into() };
        for name in [BLOBS, INCOMPLETE, REFERRERS] {
            let path = store.directory.join(name);
            create_private(&path).map_err(|cause| StoreError::Io { path, cause })?;
        }
        let layout = store.directory.join(LAYOUT_FILE);
        if !layout.exists() {
            let failed = |cause| StoreError::Io { path: layout.clone(), cause };
            let mut file =
                NamedTempFile::new_in(store.directory.join(INCOMPLETE)).map_err(failed)?;
            file.write_all(LAYOUT).map_err(failed)?;
            // Another process may have written the same.
            file.persist(&layout).map_err(|error| failed(error.error))?;
        }
        Ok(store)
    }

    /// Opens the image layout in `directory` to read it. Changes nothing there.
    ///
    /// # Errors
    /// Returns an error if the directory is not an image layout.
    pub fn open_existing_ambient(directory: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let store = Self { directory: directory.into() };
        let path = store.directory.join(LAYOUT_FILE);
        match fs::metadata(&path) {
            Ok(_) => Ok(store),
            Err(cause) => Err(StoreError::Io { path, cause }),
        }
    }

    /// Returns the path of a blob, which need not exist.
    #[must_use]
    pub fn path(&self, digest: Digest) -> PathBuf {
        blob_path(&self.directory, digest)
    }

    /// Returns whether the store contains a blob of that size. The content is checked when it is
    /// used.
    #[must_use]
    pub fn contains(&self, digest: Digest, size: u64) -> bool {
        fs::symlink_metadata(self.path(digest)).is_ok_and(|it| it.is_file() && it.len() == size)
    }

    /// Reads a blob of at most `bytes_max` bytes and checks its digest. Returns `None` if the store
    /// does not contain it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or has another content.
    pub fn read(&self, digest: Digest, bytes_max: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(digest);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(StoreError::Io { path, cause }),
        };
        let mut content = Vec::new();
        let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut content);
        read.map_err(|cause| StoreError::Io { path, cause })?;
        let found = u64::try_from(content.len()).unwrap_or(u64::MAX);
        if found > bytes_max {
            return Err(StoreError::Size { expected: bytes_max, found });
        }
        check_digest(digest, Digest::of(&content))?;
        Ok(Some(content))
    }

    /// Returns the entries of the stored signatures of the artifact with the manifest `manifest`.
    pub(crate) fn referrers(&self, manifest: Digest) -> Result<Vec<Descriptor>, StoreError> {
        let path = self.directory.join(REFERRERS).join(manifest.hex());
        let index = self.read_index_ambient(&path)?;
        Ok(index.map(|index| index.manifests).unwrap_or_default())
    }

    /// Reads an index that is not a blob. Returns `None` if the file does not exist.
    pub(crate) fn read_index_ambient(&self, path: &Path) -> Result<Option<Index>, StoreError> {
        let failed = |cause| StoreError::Io { path: path.to_owned(), cause };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mut content = Vec::new();
        file.take(MANIFEST_BYTES_MAX).read_to_end(&mut content).map_err(failed)?;
        match Document::parse(content.into())? {
            Document::Index(index) => Ok(Some(index)),
            Document::Manifest(_) => Err(ManifestError::Platforms(0).into()),
        }
    }

    /// Begins to write the blob of a descriptor.
    ///
    /// # Errors
    /// Returns an error if no file can be created.
    pub fn begin(&self, blob: &Descriptor) -> Result<BlobWriter, StoreError> {
        self.writer(Some((blob.digest, blob.size)), blob.size)
    }

    /// Begins to write a blob of at most `bytes_max` bytes whose digest is not known.
    ///
    /// # Errors
    /// Returns an error if no file can be created.
    pub fn begin_unknown(&self, bytes_max: u64) -> Result<BlobWriter, StoreError> {
        self.writer(None, bytes_max)
    }

    fn writer(
        &self,
        expected: Option<(Digest, u64)>,
        bytes_max: u64,
    ) -> Result<BlobWriter, StoreError> {
        let incomplete = self.directory.join(INCOMPLETE);
        let file = NamedTempFile::new_in(&incomplete)
            .map_err(|cause| StoreError::Io { path: incomplete, cause })?;
        Ok(BlobWriter {
            file,
            directory: self.directory.clone(),
            expected,
            bytes_max,
            written: 0,
            hasher: Sha256::new(),
        })
    }

    /// Writes a blob that is in memory. Returns its digest.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn insert(&self, content: &[u8]) -> Result<Digest, StoreError> {
        let blob = Descriptor::of("", content);
        if self.contains(blob.digest, blob.size) {
            self.refresh(blob.digest);
        } else {
            let mut writer = self.begin(&blob)?;
            writer.write(content)?;
            writer.finish()?;
        }
        Ok(blob.digest)
    }

    /// Marks a blob as used now, so that [`prune`](Self::prune) in another process leaves it.
    pub(crate) fn refresh(&self, digest: Digest) {
        // At worst the blob is removed and fetched again.
        let _ = File::open(self.path(digest)).and_then(|it| it.set_modified(SystemTime::now()));
    }
}

impl BlobWriter {
    /// Appends `bytes`.
    ///
    /// # Errors
    /// Returns an error if the blob becomes longer than expected, or the file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let found = self.written.saturating_add(more);
        if found > self.bytes_max {
            return Err(StoreError::Size { expected: self.bytes_max, found });
        }
        let written = self.file.write_all(bytes);
        written.map_err(|cause| StoreError::Io { path: self.directory.clone(), cause })?;
        self.hasher.update(bytes);
        self.written = found;
        Ok(())
    }

    /// Returns the number of bytes so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Removes everything that was written.
    ///
    /// # Errors
    /// Returns an error if the file cannot be changed.
    pub fn restart(&mut self) -> Result<(), StoreError> {
        let emptied = self.file.as_file().set_len(0);
        let emptied = emptied.and_then(|()| io::Seek::rewind(self.file.as_file_mut()));
        emptied.map_err(|cause| StoreError::Io { path: self.directory.clone(), cause })?;
        self.hasher = Sha256::new();
        self.written = 0;
        Ok(())
    }

    /// Checks size and digest, and adds the blob to the store. Returns its digest and its size.
    ///
    /// # Errors
    /// Returns an error if size or digest are not as expected, or the file cannot be written.
    pub fn finish(self) -> Result<(Digest, u64), StoreError> {
        let Self { file, directory, expected, written, hasher, .. } = self;
        let found: [u8; 32] = hasher.finalize().into();
        let found = Digest::from(found);
        if let Some((expected, size)) = expected {
            if written != size {
                return Err(StoreError::Size { expected: size, found: written });
            }
            check_digest(expected, found)?;
        }
        let path = blob_path(&directory, found);
        let failed = |cause| StoreError::Io { path: path.clone(), cause };
        file.as_file().sync_all().map_err(failed)?;
        // Replaces a damaged file of the same name. A process that reads the old one keeps it.
        file.persist(&path).map_err(|error| failed(error.error))?;
        sync_directory(&path).map_err(failed)?;
        Ok((found, written))
    }
}

fn blob_path(directory: &Path, digest: Digest) -> PathBuf {
    directory.join(BLOBS).join(digest.hex())
}

fn check_digest(expected: Digest, found: Digest) -> Result<(), StoreError> {
    if found == expected { Ok(()) } else { Err(StoreError::Digest { expected, found }) }
}

fn create_private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}

/// Makes the name of a new file durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) if cfg!(unix) => File::open(directory)?.sync_all(),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, ArtifactStore) {
        let directory = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open_ambient(directory.path().join("store")).unwrap();
        (directory, store)
    }

    #[test]
    fn a_blob_appears_only_whole_and_as_expected() {
        let (_directory, store) = store();
        let blob = Descriptor::of("a/b", b"component");
        let begin = || store.begin(&blob).unwrap();
        let mut writer = begin();
        writer.write(b"compo").unwrap();
        assert!(matches!(writer.finish(), Err(StoreError::Size { expected: 9, found: 5 })));
        let mut writer = begin();
        writer.write(b"Component").unwrap();
        assert!(matches!(writer.finish(), Err(StoreError::Digest { .. })));
        assert!(matches!(begin().write(b"component!"), Err(StoreError::Size { .. })));
        assert!(!store.contains(blob.digest, 9));
        let mut writer = begin();
        writer.write(b"wrong").unwrap();
        writer.restart().unwrap();
        writer.write(b"component").unwrap();
        writer.finish().unwrap();
        assert!(store.contains(blob.digest, 9));
        assert_eq!(store.read(blob.digest, 9).unwrap().unwrap(), b"component");
        let left = fs::read_dir(store.directory.join(INCOMPLETE)).unwrap().count();
        assert_eq!(left, 0, "files that were not finished");
    }

    #[test]
    fn a_damaged_blob_is_never_returned_and_can_be_written_again() {
        let (_directory, store) = store();
        let digest = store.insert(b"component").unwrap();
        fs::write(store.path(digest), b"comPonent").unwrap();
        assert!(matches!(store.read(digest, 100), Err(StoreError::Digest { .. })));
        fs::write(store.path(digest), b"").unwrap();
        store.insert(b"component").unwrap();
        assert_eq!(store.read(digest, 100).unwrap().unwrap(), b"component");
        assert!(matches!(store.read(digest, 8), Err(StoreError::Size { .. })));
        assert!(store.read(Digest::of(b"other"), 8).unwrap().is_none());
    }
}
