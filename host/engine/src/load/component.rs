//! The bytes of a component and of the manifest beside it: in memory, or in files of the host.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::ComponentFiles;
use super::parallel;
use crate::LoadError;
use crate::manifest::MANIFEST_BYTES_MAX;

/// The ending of a manifest beside a component, in place of the component's.
pub(super) const MANIFEST_EXTENSION: &str = "toml";

/// The bytes of a component, or where they are.
#[derive(Clone)]
pub struct Component {
    source: Source,
    manifest: Option<Arc<str>>,
    /// Versions of the files when this value was created.
    files: Option<ComponentFiles>,
}

#[derive(Clone)]
enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Component {
    /// Creates the component in a file of the host. The path is opened with all rights of this
    /// process. Nothing is read yet, but the version of the file and of a manifest beside it is
    /// noted; see [`has_changed`](Self::has_changed).
    pub fn from_file_ambient(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            files: ComponentFiles::look_ambient(&path),
            source: Source::File(path),
            manifest: None,
        }
    }

    /// Creates the components in files of the host, in their order, as
    /// [`from_file_ambient`](Self::from_file_ambient) does. The files of many components are looked
    /// at on all cores.
    #[must_use]
    pub fn from_files_ambient(paths: &[PathBuf]) -> Vec<Self> {
        parallel::map(paths, |_, path| Self::from_file_ambient(path))
    }

    /// Creates a component that is already in memory.
    pub fn from_bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { source: Source::Bytes(bytes.into()), manifest: None, files: None }
    }

    /// Adds a manifest, in place of the `<name>.toml` beside the component's own file.
    #[must_use]
    pub fn with_manifest(self, text: impl Into<Arc<str>>) -> Self {
        Self { manifest: Some(text.into()), ..self }
    }

    /// Returns whether the component's file or the manifest beside it has changed since this value
    /// was created. Nothing is read: versions differ by device, inode, size or times of change.
    /// `None` if [`has_version`](Self::has_version) is false.
    #[must_use]
    pub fn has_changed(&self) -> Option<bool> {
        let before = self.files?;
        match &self.source {
            Source::File(path) => Some(ComponentFiles::look_ambient(path) != Some(before)),
            Source::Bytes(_) => None,
        }
    }

    /// Returns true if the version of the component's files was noted: it was a file, and the
    /// system tells versions apart.
    #[must_use]
    pub fn has_version(&self) -> bool {
        self.files.is_some()
    }

    /// Returns the versions of the files when this value was created.
    pub(crate) fn files(&self) -> Option<ComponentFiles> {
        self.files
    }

    /// The file of the host that it is in, if its manifest is the one beside that.
    pub(crate) fn file_ambient(&self) -> Option<&Path> {
        match (&self.source, &self.manifest) {
            (Source::File(path), None) => Some(path),
            _ => None,
        }
    }

    /// The text of the manifest beside the component, if there is one.
    pub(super) async fn read_manifest(&self) -> Result<Option<Arc<str>>, LoadError> {
        match (&self.manifest, &self.source) {
            (Some(text), _) => Ok(Some(Arc::clone(text))),
            (None, Source::Bytes(_)) => Ok(None),
            (None, Source::File(path)) => {
                let path = path.with_extension(MANIFEST_EXTENSION);
                let read = tokio::task::spawn_blocking(move || read_manifest_file(&path));
                read.await.map_err(|_| LoadError::Interrupted)?
            }
        }
    }

    pub(super) async fn read(&self, bytes_max: u64) -> Result<Arc<[u8]>, LoadError> {
        match &self.source {
            Source::Bytes(bytes) => {
                check_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes_max)?;
                Ok(Arc::clone(bytes))
            }
            Source::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path, bytes_max));
                read.await.map_err(|_| LoadError::Interrupted)?
            }
        }
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Component");
        match &self.source {
            Source::File(path) => shown.field("file", path),
            Source::Bytes(bytes) => shown.field("bytes", &bytes.len()),
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
