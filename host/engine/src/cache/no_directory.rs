//! Replaces the cache directory on systems without Unix permissions, where there is no cache.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{CacheError, Rejection};

pub(super) const TEMPORARY_PREFIX: &str = ".tmp-";

/// Uninhabited type: the directory never exists.
pub(super) struct PrivateDirectory(Infallible);

pub(super) struct OpenFile {
    pub(super) reader: File,
    pub(super) length: u64,
}

pub(super) struct ListedFile {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) modified: (i64, i64),
}

impl PrivateDirectory {
    pub(super) fn open_ambient(_path: &Path) -> Result<(Self, PathBuf), CacheError> {
        Err(CacheError::Unsupported)
    }

    pub(super) fn open_file(&self, _name: &str) -> Result<Option<OpenFile>, Rejection> {
        match self.0 {}
    }

    pub(super) fn write_temporary(&self, _parts: &[&[u8]]) -> io::Result<String> {
        match self.0 {}
    }

    pub(super) fn sync(&self, _name: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn link_new(&self, _from: &str, _to: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn remove(&self, _name: &str) -> io::Result<()> {
        match self.0 {}
    }

    pub(super) fn list(&self) -> io::Result<Vec<ListedFile>> {
        match self.0 {}
    }
}
