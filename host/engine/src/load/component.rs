//! Bytes of a component and of the manifest next to it: in memory, or in files of the host.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::index::ComponentFiles;
use super::{blocking, parallel};
use crate::LoadError;
use crate::manifest::MANIFEST_BYTES_MAX;

/// Extension of a manifest next to a component, which replaces the component's.
pub(super) const MANIFEST_EXTENSION: &str = "toml";

/// Bytes of a component, or their location.
#[derive(Clone)]
pub struct Component {
    source: ComponentSource,
    manifest: Option<Arc<str>>,
    /// Versions of the files when this value was created.
    files: Option<ComponentFiles>,
    /// SHA-256 digest that the bytes must have.
    digest: Option<[u8; 32]>,
}

#[derive(Clone)]
enum ComponentSource {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Component {
    /// Creates a component from a file of the host. The path is opened with all rights of this
    /// process. Nothing is read yet, but the version of the file and of a manifest next to it is
    /// recorded; see [`has_changed`](Self::has_changed).
    pub fn from_file_ambient(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            files: ComponentFiles::stat_ambient(&path),
            source: ComponentSource::File(path),
            manifest: None,
            digest: None,
        }
    }

    /// Creates components from files of the host, in order, as
    /// [`from_file_ambient`](Self::from_file_ambient) does. With many components, all cores check
    /// the files.
    #[must_use]
    pub fn from_files_ambient(paths: &[PathBuf]) -> Vec<Self> {
        parallel::map(paths, |_, path| Self::from_file_ambient(path))
    }

    /// Creates a component that is already in memory.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        let source = ComponentSource::Bytes(bytes.into());
        Self { source, manifest: None, files: None, digest: None }
    }

    /// Requires the component to have this SHA-256 digest. Other bytes are neither screened nor
    /// compiled. A manifest next to the file is ignored, because no digest covers it.
    #[must_use]
    pub fn with_digest(self, digest: [u8; 32]) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// Adds a manifest, which replaces the `<name>.toml` next to the component's own file.
    #[must_use]
    pub fn with_manifest(self, text: impl Into<Arc<str>>) -> Self {
        Self { manifest: Some(text.into()), ..self }
    }

    /// Returns whether the component's file or the manifest next to it has changed since this value
    /// was created. Nothing is read: versions are compared by device, inode, size and modification
    /// times. Returns `None` if [`has_version`](Self::has_version) is false.
    #[must_use]
    pub fn has_changed(&self) -> Option<bool> {
        let before = self.files?;
        match &self.source {
            ComponentSource::File(path) => Some(ComponentFiles::stat_ambient(path) != Some(before)),
            ComponentSource::Bytes(_) => None,
        }
    }

    /// Returns true if the version of the component's files was recorded: the component was a file,
    /// and the system distinguishes versions.
    #[must_use]
    pub fn has_version(&self) -> bool {
        self.files.is_some()
    }

    /// Returns whether the component may have this digest.
    pub(crate) fn accepts_digest(&self, digest: &[u8; 32]) -> bool {
        self.digest.is_none_or(|expected| expected == *digest)
    }

    /// Returns the versions of the files when this value was created.
    pub(crate) fn files(&self) -> Option<ComponentFiles> {
        self.files
    }

    /// Returns the component's file on the host, if its manifest is the one next to that file.
    pub(crate) fn file_ambient(&self) -> Option<&Path> {
        match (&self.source, &self.manifest) {
            (ComponentSource::File(path), None) => Some(path),
            _ => None,
        }
    }

    /// Reads the manifest next to the component as a string, if there is one.
    pub(super) async fn read_manifest(&self) -> Result<Option<Arc<str>>, LoadError> {
        match (&self.manifest, &self.source) {
            (Some(text), _) => Ok(Some(Arc::clone(text))),
            (None, _) if self.digest.is_some() => Ok(None),
            (None, ComponentSource::Bytes(_)) => Ok(None),
            (None, ComponentSource::File(path)) => {
                let path = path.with_extension(MANIFEST_EXTENSION);
                blocking(move || read_manifest_file(&path)).await
            }
        }
    }

    /// Reads the component, and computes the digest of its bytes.
    pub(super) async fn read(&self, bytes_max: u64) -> Result<(Arc<[u8]>, [u8; 32]), LoadError> {
        let source = self.source.clone();
        blocking(move || {
            let bytes = match source {
                ComponentSource::Bytes(bytes) => {
                    check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes_max)?;
                    bytes
                }
                ComponentSource::File(path) => read_file(&path, bytes_max)?,
            };
            let digest = Sha256::digest(&bytes).into();
            Ok((bytes, digest))
        })
        .await
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Component");
        match &self.source {
            ComponentSource::File(path) => shown.field("file", path),
            ComponentSource::Bytes(bytes) => shown.field("bytes", &bytes.len()),
        };
        shown.finish_non_exhaustive()
    }
}

fn read_manifest_file(path: &Path) -> Result<Option<Arc<str>>, LoadError> {
    let bytes = match read_file(path, MANIFEST_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(LoadError::Read(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(error) => return Err(LoadError::ManifestUnreadable(Box::new(error))),
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Some(text.into())),
        Err(_) => Err(LoadError::ManifestUnreadable(Box::new(LoadError::NotText))),
    }
}

fn read_file(path: &Path, bytes_max: u64) -> Result<Arc<[u8]>, LoadError> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::InvalidInput => LoadError::NotAFile,
        _ => LoadError::Read(error),
    };
    let file = cofferdam_files::open_named_ambient(path).map_err(failed)?;
    let metadata = file.metadata().map_err(LoadError::Read)?;
    check_size(metadata.len(), bytes_max)?;
    // The file may grow while it is read.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(LoadError::Read)?;
    check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes_max)?;
    Ok(bytes.into())
}

fn check_size(bytes: u64, bytes_max: u64) -> Result<(), LoadError> {
    if bytes > bytes_max { Err(LoadError::TooLarge { bytes, bytes_max }) } else { Ok(()) }
}
