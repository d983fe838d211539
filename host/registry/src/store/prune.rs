//! Removal of blobs without a user.
//!
//! A lock file refers to blobs after they were written. So a blob that was written or used a short
//! time ago stays, even if nothing refers to it yet.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::{ArtifactStore, BLOBS, INCOMPLETE, REFERRERS, StoreError};
use crate::Digest;
use crate::manifest::{Document, MANIFEST_BYTES_MAX};

/// Age below which a blob stays. A question to the operator may wait between download and use.
const AGE_MIN: Duration = Duration::from_secs(60 * 60);

/// Result of [`ArtifactStore::prune`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StorePruning {
    /// Number of removed files.
    pub files: u64,
    /// Size of the removed files in bytes.
    pub bytes: u64,
    /// Size of the files that are left, in bytes.
    pub bytes_left: u64,
}

impl ArtifactStore {
    /// Returns the blobs of the artifact with the manifest `manifest`: the manifest, what it
    /// contains, and its signatures. Blobs that are not in the store are part of it.
    ///
    /// # Errors
    /// Returns an error if a manifest cannot be read.
    pub fn artifact_blobs(&self, manifest: Digest) -> Result<Vec<Digest>, StoreError> {
        let mut blobs = vec![manifest];
        blobs.extend(self.contents(manifest)?);
        for signature in self.referrers(manifest)? {
            blobs.push(signature.digest);
            blobs.extend(self.contents(signature.digest)?);
        }
        Ok(blobs)
    }

    fn contents(&self, manifest: Digest) -> Result<Vec<Digest>, StoreError> {
        let Some(content) = self.read(manifest, MANIFEST_BYTES_MAX)? else { return Ok(Vec::new()) };
        Ok(match Document::parse(content.into())? {
            Document::Manifest(manifest) => manifest.contents().map(|it| it.digest).collect(),
            Document::Index(_) => Vec::new(),
        })
    }

    /// Removes the blobs that are not `used`, except those that were written or used in the last
    /// hour.
    ///
    /// # Errors
    /// Returns an error if a directory cannot be read. A file that cannot be removed stays.
    pub fn prune(&self, used: &BTreeSet<Digest>) -> Result<StorePruning, StoreError> {
        let names: BTreeSet<_> = used.iter().map(Digest::hex).collect();
        let mut pruning = StorePruning::default();
        for directory in [BLOBS, REFERRERS, INCOMPLETE] {
            let directory = self.directory.join(directory);
            for file in files(&directory)? {
                let name = file.file_name();
                pruning.decide(&file, name.to_str().is_some_and(|name| names.contains(name)));
            }
        }
        Ok(pruning)
    }
}

impl StorePruning {
    /// Removes a file unless it is used, and counts it.
    fn decide(&mut self, file: &DirEntry, is_used: bool) {
        let Ok(metadata) = file.metadata() else { return };
        let age = metadata.modified().map(|time| SystemTime::now().duration_since(time));
        let is_old = matches!(age, Ok(Ok(age)) if age > AGE_MIN);
        if !is_used && is_old && fs::remove_file(file.path()).is_ok() {
            self.files = self.files.saturating_add(1);
            self.bytes = self.bytes.saturating_add(metadata.len());
        } else {
            self.bytes_left = self.bytes_left.saturating_add(metadata.len());
        }
    }
}

fn files(directory: &Path) -> Result<Vec<DirEntry>, StoreError> {
    let entries = fs::read_dir(directory).and_then(Iterator::collect::<Result<_, _>>);
    entries.map_err(|cause| StoreError::Io { path: directory.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::WasmArtifact;

    /// Makes every file of the store old.
    fn age(store: &ArtifactStore) {
        let long_ago = SystemTime::now() - 2 * AGE_MIN;
        for directory in [BLOBS, REFERRERS, INCOMPLETE] {
            for file in files(&store.directory.join(directory)).unwrap() {
                fs::File::open(file.path()).unwrap().set_modified(long_ago).unwrap();
            }
        }
    }

    #[test]
    fn only_old_unused_blobs_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open_ambient(directory.path().join("store")).unwrap();
        let artifact = WasmArtifact::new(b"used".to_vec().into(), &[], &[], &BTreeMap::new());
        let artifact = artifact.unwrap();
        for blob in [&artifact.manifest[..], &artifact.config, &artifact.component, b"old"] {
            store.insert(blob).unwrap();
        }
        fs::write(store.directory.join(INCOMPLETE).join("x"), "interrupted").unwrap();
        age(&store);
        let recent = store.insert(b"recent").unwrap();
        // An old blob that is used again is recent, too.
        let again = store.insert(b"again").unwrap();
        age_one(&store, again);
        store.insert(b"again").unwrap();

        let used: BTreeSet<_> =
            store.artifact_blobs(artifact.digest()).unwrap().into_iter().collect();
        assert_eq!(used.len(), 3);
        let pruned = store.prune(&used).unwrap();
        assert_eq!((pruned.files, pruned.bytes), (2, 14));
        assert!(!store.path(Digest::of(b"old")).exists());
        for digest in used.iter().chain([&recent, &again]) {
            assert!(store.path(*digest).exists());
        }
        assert_eq!(store.prune(&used).unwrap().files, 0);
    }

    fn age_one(store: &ArtifactStore, digest: Digest) {
        let file = fs::File::open(store.path(digest)).unwrap();
        file.set_modified(SystemTime::now() - 2 * AGE_MIN).unwrap();
    }

    #[test]
    fn the_blobs_of_a_damaged_artifact_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let store = ArtifactStore::open_ambient(directory.path().join("store")).unwrap();
        let digest = store.insert(b"{}").unwrap();
        assert!(matches!(store.artifact_blobs(digest), Err(StoreError::Manifest(_))));
        assert_eq!(store.artifact_blobs(Digest::of(b"x")).unwrap(), [Digest::of(b"x")]);
    }
}
