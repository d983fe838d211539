//! A store that consists of one directory of another store.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::changes::{NewContent, RemovedPath};
use crate::path::RESERVED_PREFIX;
use crate::store::NoChanges;
use crate::{
    Changes, FileError, FileLocation, FileStore, Listing, MadeDirectory, NameRules, PathError,
    PreparedCommit, QuotaExceeded, Room, Scope, Stat, StorePath, WriteMode,
};

/// One directory of a store, presented as a whole store: paths are relative to that directory, also
/// in errors and listings. Nothing outside of it can be reached.
///
/// The directory need not exist. It is created with the first entry in it and then stays. The
/// quotas are those of the underlying store, less what the path of the directory itself takes, and
/// other contents of that store count as well.
#[derive(Clone)]
pub struct Subtree {
    store: Arc<dyn FileStore>,
    root: StorePath,
}

impl Subtree {
    /// Creates a view of the directory `root` of `store`.
    pub fn new(store: Arc<dyn FileStore>, root: StorePath) -> Self {
        Self { store, root }
    }

    /// Translates `path` to the underlying store. A path that is too long there is too long here.
    fn below(&self, path: &StorePath) -> Result<StorePath, FileError> {
        if path.is_root() {
            return Ok(self.root.clone());
        }
        self.root.descend(path.as_str()).ok_or_else(|| PathError::too_long(path).into())
    }

    /// Translates errors of the underlying store to paths and limits of this one.
    fn above<T>(&self, result: Result<T, FileError>) -> Result<T, FileError> {
        let depth = self.root.depth();
        result.map_err(|error| match error {
            FileError::Conflict { path } => {
                let seen = path.below(&self.root).and_then(|rest| StorePath::ROOT.descend(rest));
                FileError::Conflict { path: seen.unwrap_or(StorePath::ROOT) }
            }
            FileError::Quota(QuotaExceeded::Depth { limit }) => {
                FileError::Quota(QuotaExceeded::Depth { limit: limit.saturating_sub(depth) })
            }
            FileError::Quota(QuotaExceeded::Entries { limit }) => {
                FileError::Quota(QuotaExceeded::Entries { limit: limit.saturating_sub(depth) })
            }
            other => other,
        })
    }

    /// Refuses an operation that is not possible on a root.
    fn refuse_root<T>(&self, error: FileError) -> Result<T, FileError> {
        Err(if self.store.is_read_only() { FileError::ReadOnly } else { error })
    }

    /// Returns the directories on the path to the root of this view, itself included, that do not
    /// exist, deepest first.
    async fn missing_roots(&self) -> Result<Vec<StorePath>, FileError> {
        let mut missing = Vec::new();
        for above in std::iter::once(self.root.clone()).chain(self.root.ancestors()) {
            match self.store.stat(&above).await {
                Ok(_) => break,
                Err(FileError::NotFound) => missing.push(above),
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }
}

#[async_trait]
impl FileStore for Subtree {
    fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    fn names(&self) -> NameRules {
        self.store.names()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.store.root_ambient()
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        // A path that is too long in the underlying store denotes no file.
        self.store.locate(self.below(path).as_ref().unwrap_or(path))
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        if path.is_root() {
            return Ok(Stat::ROOT);
        }
        self.above(self.store.stat(&self.below(path)?).await)
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        if path.is_root() {
            return Ok(Some(Stat::ROOT));
        }
        self.above(self.store.probe(&self.below(path)?).await)
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        if path.is_root() {
            return Err(FileError::NotFound);
        }
        self.above(self.store.read(&self.below(path)?, bytes_max).await)
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        if path.is_root() {
            return Err(FileError::NotFound);
        }
        self.above(self.store.read_range(&self.below(path)?, offset, length).await)
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        if path.is_root() {
            return self.refuse_root(FileError::IsDirectory);
        }
        self.above(self.store.write(&self.below(path)?, content, mode).await)
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        if path.is_root() {
            return self.refuse_root(FileError::NotFound);
        }
        self.above(self.store.delete(&self.below(path)?).await)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        let mut listing = self.above(self.store.list(&self.below(directory)?, scope).await)?;
        let seen = listing.entries.len();
        // A name with leading white space is valid below a directory, but not at the start of a
        // path.
        listing.entries.retain(|entry| directory.descend(&entry.name).is_some());
        listing.hides_entries |= listing.entries.len() < seen;
        Ok(listing)
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        if path.is_root() {
            return if self.is_read_only() {
                Err(FileError::ReadOnly)
            } else {
                Ok(MadeDirectory::Existed)
            };
        }
        self.above(self.store.create_directory(&self.below(path)?).await)
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        if path.is_root() {
            return self.refuse_root(FileError::Root);
        }
        self.above(self.store.remove_directory(&self.below(path)?).await)
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        if from.is_root() {
            return self.refuse_root(FileError::Root);
        }
        if to.is_root() {
            return match self.stat(from).await {
                Err(error) if !self.is_read_only() => Err(error),
                _ => self.refuse_root(FileError::Root),
            };
        }
        self.above(self.store.rename(&self.below(from)?, &self.below(to)?).await)
    }

    async fn room(&self) -> Result<Room, FileError> {
        let Room { mut quota, mut usage } = self.store.room().await?;
        let depth = self.root.depth();
        quota.depth_max = quota.depth_max.saturating_sub(depth);
        quota.entries_max = quota.entries_max.saturating_sub(depth);
        let missing = u64::try_from(self.missing_roots().await?.len()).unwrap_or(depth);
        usage.entries = usage.entries.saturating_sub(depth.saturating_sub(missing));
        Ok(Room { quota, usage })
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        if changes.is_empty() {
            return Ok(Box::new(NoChanges));
        }
        let missing = self.missing_roots().await?;
        let mut changes = changes.moved_below(|path| self.below(path))?;
        if !changes.filled.is_empty() {
            let count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
            changes.after.entries = changes.after.entries.saturating_add(count);
            // A store creates the parents of a single file, and expects those of several.
            if !changes.is_one_step() {
                changes.expected.extend(missing.iter().map(|root| (root.clone(), None)));
                let roots = missing.into_iter().rev().map(|root| (root, NewContent::Directory));
                changes.filled.splice(0..0, roots);
            }
        }
        let prepared = self.above(self.store.prepare(changes).await)?;
        Ok(Box::new(SubtreeCommit { view: self.clone(), prepared }))
    }
}

/// A commit of the underlying store.
struct SubtreeCommit {
    view: Subtree,
    prepared: Box<dyn PreparedCommit>,
}

#[async_trait]
impl PreparedCommit for SubtreeCommit {
    fn is_remote(&self) -> bool {
        self.prepared.is_remote()
    }

    async fn commit(self: Box<Self>) -> Result<(), FileError> {
        let Self { view, prepared } = *self;
        view.above(prepared.commit().await)
    }
}

impl Changes {
    /// Translates the changes to other paths. Hidden paths stay: they are in the root of the store
    /// that makes the changes.
    fn moved_below(
        self,
        below: impl Fn(&StorePath) -> Result<StorePath, FileError>,
    ) -> Result<Self, FileError> {
        let below = |path: StorePath| {
            if path.as_str().starts_with(RESERVED_PREFIX) { Ok(path) } else { below(&path) }
        };
        let expected = self.expected.into_iter().map(|(path, version)| Ok((below(path)?, version)));
        let vacated = self.vacated.into_iter().map(|change| {
            Ok(match change {
                RemovedPath::File(path) => RemovedPath::File(below(path)?),
                RemovedPath::Directory(path) => RemovedPath::Directory(below(path)?),
                RemovedPath::Staged { from, stage } => {
                    RemovedPath::Staged { from: below(from)?, stage }
                }
            })
        });
        let filled = self.filled.into_iter().map(|(path, filled)| {
            let filled = match filled {
                NewContent::Moved { from } => NewContent::Moved { from: below(from)? },
                NewContent::File { content, origin, replaces } => NewContent::File {
                    content,
                    origin: origin.map(below).transpose()?,
                    replaces: replaces.map(below).transpose()?,
                },
                NewContent::Directory => NewContent::Directory,
            };
            Ok((below(path)?, filled))
        });
        Ok(Self {
            expected: expected.collect::<Result<_, FileError>>()?,
            vacated: vacated.collect::<Result<_, FileError>>()?,
            filled: filled.collect::<Result<_, FileError>>()?,
            before: self.before,
            after: self.after,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, DirectoryOptions, DirectoryStore, MemoryStore, Overlay, Quota, testing};

    fn path(text: &str) -> StorePath {
        StorePath::directory(text).unwrap()
    }

    /// Returns a subtree with as much room as `quota` permits, next to something that is invisible
    /// from inside the subtree.
    fn subtree(quota: &Quota) -> Arc<dyn FileStore> {
        let wider =
            Quota { entries_max: quota.entries_max + 2, depth_max: quota.depth_max + 2, ..*quota };
        Arc::new(Subtree::new(Arc::new(MemoryStore::new(wider)), path("some/where")))
    }

    #[tokio::test]
    async fn keeps_the_contract_of_file_stores() {
        testing::run(subtree).await.unwrap();
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_model(plan in testing::plan()) {
            testing::check_plan(subtree, &plan)?;
        }

        #[test]
        fn takes_over_what_calls_have_changed(plan in testing::plan()) {
            testing::check_commits(subtree, &plan)?;
        }
    }

    #[tokio::test]
    async fn what_is_beside_is_out_of_reach_and_errors_name_its_own_paths() {
        let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        for name in ["d/a", "d2/a", "a", "d/ b"] {
            let path = path("x").split().unwrap().0.descend(name).unwrap();
            store.write(&path, name.as_bytes().to_vec(), WriteMode::Create).await.unwrap();
        }
        let view: Arc<dyn FileStore> = Arc::new(Subtree::new(Arc::clone(&store), path("d")));
        let listing = view.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
        assert_eq!(
            listing.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(),
            ["a"]
        );
        assert!(listing.hides_entries);
        assert_eq!(view.read(&path("a"), 9).await.unwrap(), b"d/a");
        let calls = [(); 2].map(|()| Overlay::new(Arc::clone(&view), &Budget::new(u64::MAX)));
        for call in &calls {
            call.write(&path("a"), b"new".to_vec(), WriteMode::Replace).await.unwrap();
        }
        calls[0].commit_changes().await.unwrap();
        let refused = calls[1].commit_changes().await.unwrap_err();
        assert!(
            matches!(&refused, FileError::Conflict { path } if path.as_str() == "a"),
            "{refused:?}"
        );
        assert_eq!(store.read(&path("d2/a"), 9).await.unwrap(), b"d2/a");
    }

    #[tokio::test]
    async fn a_directory_that_is_missing_is_created_with_several_files() {
        let folder = tempfile::tempdir().unwrap();
        let store = DirectoryStore::open_ambient(folder.path(), DirectoryOptions::default());
        let view: Arc<dyn FileStore> =
            Arc::new(Subtree::new(Arc::new(store.unwrap()), path("some/where")));
        let call = Overlay::new(Arc::clone(&view), &Budget::new(u64::MAX));
        for name in ["a", "b"] {
            call.write(&path(name), name.into(), WriteMode::Replace).await.unwrap();
        }
        call.commit_changes().await.unwrap();
        for name in ["a", "b"] {
            let file = folder.path().join("some/where").join(name);
            assert_eq!(std::fs::read_to_string(file).unwrap(), name);
        }
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_below_is_refused() {
        let long = |segments: usize| path(&vec!["s".repeat(200); segments].join("/"));
        let quota = Quota { depth_max: 99, ..Quota::default() };
        let view = Subtree::new(Arc::new(MemoryStore::new(quota)), long(10));
        let refused = view.write(&long(20), Vec::new(), WriteMode::Create).await.unwrap_err();
        assert!(
            refused.to_string().ends_with("A path must not be longer than 4096 bytes."),
            "{refused}"
        );
    }
}
