//! A store with hidden and read-only paths.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::changes::{NewContent, RemovedPath};
use crate::{
    Changes, EntryKind, FileError, FileLocation, FileReader, FileStore, Glob, GlobError, Listing,
    MadeDirectory, NameRules, PreparedCommit, Room, Scope, Stat, StorePath, WriteMode,
};

/// Glob patterns that match paths and everything below them: a pattern without `/` is compared with
/// each segment, any other one with the path and with each directory above it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct PathPatterns {
    patterns: Vec<String>,
    globs: Vec<Glob>,
}

impl PathPatterns {
    /// Compiles `patterns`.
    ///
    /// # Errors
    /// If a pattern is invalid; the error is that of the first such pattern.
    pub fn new(patterns: Vec<String>) -> Result<Self, GlobError> {
        let globs = patterns.iter().map(|pattern| Glob::new(Some(pattern.trim_end_matches('/'))));
        Ok(Self { globs: globs.collect::<Result<_, _>>()?, patterns })
    }

    /// Returns true if there are no patterns, so that no path matches.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Returns true if a pattern matches `path`, which is relative to the root of the store, or a
    /// directory above it. The root matches nothing.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        !path.is_empty()
            && ends
                .filter_map(|end| path.get(..end))
                .any(|path| self.globs.iter().any(|glob| glob.matches(path)))
    }
}

impl TryFrom<Vec<String>> for PathPatterns {
    type Error = GlobError;

    fn try_from(patterns: Vec<String>) -> Result<Self, GlobError> {
        Self::new(patterns)
    }
}

impl From<PathPatterns> for Vec<String> {
    fn from(patterns: PathPatterns) -> Self {
        patterns.patterns
    }
}

impl PartialEq for PathPatterns {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for PathPatterns {}

/// A store in which some paths are hidden and some cannot be changed.
///
/// A hidden path is "not found", is not listed, and nothing can be created there. A directory that
/// holds a hidden or a read-only path can be neither moved nor removed. Other names for the same
/// file (another case on a file system that ignores case is covered, a short name of Windows is
/// not) are not recognized.
#[derive(Clone)]
pub struct RestrictedStore {
    store: Arc<dyn FileStore>,
    hidden: PathPatterns,
    read_only: PathPatterns,
}

impl RestrictedStore {
    /// Creates a view of `store` in which `hidden` cannot be seen and `read_only` cannot be
    /// changed.
    pub fn new(store: Arc<dyn FileStore>, hidden: PathPatterns, read_only: PathPatterns) -> Self {
        Self { store, hidden, read_only }
    }

    fn seen(&self, path: &StorePath) -> Result<(), FileError> {
        if self.hidden.matches(path.as_str()) { Err(FileError::NotFound) } else { Ok(()) }
    }

    /// Fails if nothing may be created or changed at `path`.
    fn writable(&self, path: &StorePath) -> Result<(), FileError> {
        if self.store.is_read_only() {
            Err(FileError::ReadOnly)
        } else if self.hidden.matches(path.as_str()) {
            Err(FileError::HiddenPath)
        } else if self.read_only.matches(path.as_str()) {
            Err(FileError::ReadOnlyPath)
        } else {
            Ok(())
        }
    }

    /// Fails if the file or directory at `path` may not be deleted.
    fn removable(&self, path: &StorePath) -> Result<(), FileError> {
        match self.writable(path) {
            Err(FileError::HiddenPath) => Err(FileError::NotFound),
            result => result,
        }
    }

    /// Fails if the directory at `path` may not be moved because something in it is hidden or
    /// read-only.
    async fn movable(&self, path: &StorePath) -> Result<(), FileError> {
        self.removable(path)?;
        let is_directory =
            matches!(self.store.stat(path).await, Ok(stat) if stat.kind == EntryKind::Directory);
        if !is_directory {
            return Ok(());
        }
        let listing = self.store.list(path, Scope::Recursive).await?;
        let mut below = listing.entries.iter().map(|entry| path.join(&entry.name));
        if below.any(|path| self.writable(&path).is_err()) {
            Err(FileError::ReadOnlyPath)
        } else {
            Ok(())
        }
    }
}

#[async_trait]
impl FileStore for RestrictedStore {
    fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.store.root_ambient()
    }

    fn names(&self) -> NameRules {
        self.store.names()
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        self.store.locate(path)
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        self.seen(path)?;
        self.store.stat(path).await
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        if self.hidden.matches(path.as_str()) {
            return Err(FileError::HiddenPath);
        }
        self.store.probe(path).await
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        self.seen(path)?;
        self.store.read(path, bytes_max).await
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        self.seen(path)?;
        self.store.read_range(path, offset, length).await
    }

    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        self.seen(path).ok()?;
        self.store.reader(path)
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.writable(path)?;
        self.store.write(path, content, mode).await
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        self.removable(path)?;
        self.store.delete(path).await
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        if self.hidden.matches(directory.as_str()) {
            return Ok(Listing::default());
        }
        let mut listing = self.store.list(directory, scope).await?;
        if self.hidden.is_empty() {
            return Ok(listing);
        }
        let is_seen = |name: &str| !self.hidden.matches(directory.join(name).as_str());
        let before = listing.entries.len();
        listing.entries.retain(|entry| is_seen(&entry.name));
        listing.hides_entries |= listing.entries.len() < before;
        listing.not_shown.retain(|refused| {
            is_seen(&refused.name) && (refused.directory.is_empty() || is_seen(&refused.directory))
        });
        Ok(listing)
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        self.writable(path)?;
        self.store.create_directory(path).await
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        self.removable(path)?;
        self.store.remove_directory(path).await
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        self.movable(from).await?;
        self.writable(to)?;
        self.store.rename(from, to).await
    }

    async fn room(&self) -> Result<Room, FileError> {
        self.store.room().await
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        for vacated in &changes.vacated {
            match vacated {
                RemovedPath::File(path) | RemovedPath::Directory(path) => self.removable(path)?,
                RemovedPath::Staged { from, .. } => self.movable(from).await?,
            }
        }
        for (path, filled) in &changes.filled {
            self.writable(path)?;
            match filled {
                NewContent::Moved { from } if !from.is_reserved() => self.movable(from).await?,
                NewContent::Moved { .. } | NewContent::File { .. } | NewContent::Directory => {}
            }
        }
        self.store.prepare(changes).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, MemoryStore, Overlay, Quota, testing};

    fn path(text: &str) -> StorePath {
        StorePath::directory(text).unwrap()
    }

    fn patterns(patterns: &[&str]) -> PathPatterns {
        PathPatterns::new(patterns.iter().map(|pattern| (*pattern).to_owned()).collect()).unwrap()
    }

    fn restricted(quota: &Quota) -> Arc<dyn FileStore> {
        let store = Arc::new(MemoryStore::new(*quota));
        Arc::new(RestrictedStore::new(
            store,
            patterns(&["no-such-name"]),
            patterns(&["no/such/path"]),
        ))
    }

    #[tokio::test]
    async fn keeps_the_contract_of_file_stores() {
        testing::run(restricted).await.unwrap();
    }

    proptest::proptest! {
        #[test]
        fn takes_over_what_calls_have_changed(plan in testing::plan()) {
            testing::check_commits(restricted, &plan)?;
        }
    }

    #[test]
    fn patterns_match_a_path_and_all_below() {
        let all = patterns(&[".git", "vendor/**", "docs/secret/", "*.lock"]);
        for path in [".git", "a/.GIT/config", "vendor/x", "docs/secret/a/b", "a/b.lock"] {
            assert!(all.matches(path), "{path}");
        }
        for path in ["", "git", "vendor", "docs", "docs/secrets", "a.lock.md"] {
            assert!(!all.matches(path), "{path}");
        }
        assert!(PathPatterns::new(vec!["{a,{b}}".to_owned()]).is_err());
    }

    #[tokio::test]
    async fn hidden_paths_do_not_exist_and_read_only_ones_stay() {
        let below: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        for name in [".git/config", "src/.env", "src/a", "vendor/v", "d/vendor/w"] {
            below.write(&path(name), b"old".to_vec(), WriteMode::Create).await.unwrap();
        }
        let store: Arc<dyn FileStore> = Arc::new(RestrictedStore::new(
            Arc::clone(&below),
            patterns(&[".git", ".env"]),
            patterns(&["vendor"]),
        ));
        let listing = store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
        let names: Vec<_> = listing.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["d", "d/vendor", "src", "vendor", "d/vendor/w", "src/a", "vendor/v"]);
        assert!(store.list(&path(".git"), Scope::Recursive).await.unwrap().entries.is_empty());
        for hidden in [".git/config", "src/.env", "src/.ENV", ".git"] {
            let hidden = path(hidden);
            assert!(matches!(store.read(&hidden, 9).await, Err(FileError::NotFound)));
            assert!(matches!(store.read_range(&hidden, 0, 9).await, Err(FileError::NotFound)));
            assert!(matches!(store.stat(&hidden).await, Err(FileError::NotFound)));
            assert!(matches!(store.delete(&hidden).await, Err(FileError::NotFound)));
            assert!(store.reader(&hidden).is_none());
            let written = store.write(&hidden, Vec::new(), WriteMode::Replace).await;
            assert!(matches!(written, Err(FileError::HiddenPath)));
        }
        assert!(matches!(
            store.create_directory(&path("a/.git/b")).await,
            Err(FileError::HiddenPath)
        ));
        assert!(matches!(
            store.rename(&path("src"), &path("x")).await,
            Err(FileError::ReadOnlyPath)
        ));
        assert!(matches!(
            store.rename(&path("src/a"), &path("vendor/a")).await,
            Err(FileError::ReadOnlyPath)
        ));
        assert!(matches!(store.delete(&path("vendor/v")).await, Err(FileError::ReadOnlyPath)));
        assert_eq!(store.read(&path("vendor/v"), 9).await.unwrap(), b"old");
        let overlay = Overlay::new(Arc::clone(&store), &Budget::new(u64::MAX));
        overlay.write(&path("vendor/v"), b"new".to_vec(), WriteMode::Replace).await.unwrap();
        assert!(overlay.write(&path("src/.env"), Vec::new(), WriteMode::Replace).await.is_err());
        assert!(matches!(overlay.commit_changes().await, Err(FileError::ReadOnlyPath)));
        assert_eq!(below.read(&path("vendor/v"), 9).await.unwrap(), b"old");
    }
}
