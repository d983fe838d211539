//! A file store in memory.
//!
//! It starts empty and is lost when it is dropped. Every operation takes one map lookup and at most
//! one copy of the content, under one lock for the whole store: readers share it, and a writer
//! never waits for anything while it holds it. Changes wait for their turn before: a commit that is
//! prepared keeps it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use parking_lot::RwLock;
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};

use crate::blocking::blocking;
use crate::changes::Steps;
use crate::content::FileContent;
use crate::quota::{Usage, UsageChange};
use crate::store::NoChanges;
use crate::{
    Changes, EntryKind, FileError, FileStore, Listing, ListingEntry, MadeDirectory, PreparedCommit,
    Quota, Room, Scope, Stat, StorePath, Version, WriteMode,
};

/// A file store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    quota: Quota,
    tree: Arc<RwLock<Tree>>,
    /// Locked by one change at a time, from its checks to its end.
    turns: Arc<Mutex<()>>,
}

/// All entries except the root, which always exists. The parents of a node are in the map too, and
/// are directories.
#[derive(Debug, Default, Clone)]
struct Tree {
    nodes: BTreeMap<StorePath, MemoryNode>,
    usage: Usage,
    /// Number of the last change, which is the version of everything it created.
    version: u64,
}

#[derive(Debug, Clone)]
enum MemoryNode {
    /// The content is shared, so that it is copied after the lock is released.
    File {
        content: Arc<Vec<u8>>,
        modified: SystemTime,
        version: Version,
    },
    Directory {
        version: Version,
    },
}

impl MemoryStore {
    /// Creates an empty store with the limits `quota`.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self { quota: quota.of_total(), ..Self::default() }
    }

    /// Waits until no other change is made or prepared.
    async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turns.lock().await
    }
}

/// A commit whose changes are made in a copy of the tree.
struct MemoryCommit {
    tree: Arc<RwLock<Tree>>,
    changed: Tree,
    _turn: OwnedMutexGuard<()>,
}

#[async_trait]
impl PreparedCommit for MemoryCommit {
    async fn commit(self: Box<Self>) -> Result<(), FileError> {
        *self.tree.write() = self.changed;
        Ok(())
    }
}

#[async_trait]
impl FileStore for MemoryStore {
    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        self.tree.read().stat(path).ok_or(FileError::NotFound)
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let content = self.tree.read().content(path)?;
        let bytes = length(&content);
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        Ok(Arc::unwrap_or_clone(content))
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        let content = self.tree.read().content(path)?;
        Ok(slice(&content, offset, length).to_vec())
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let _turn = self.turn().await;
        self.tree.write().write(path, content, mode, &self.quota)
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        let _turn = self.turn().await;
        self.tree.write().delete(path)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        Ok(Listing::sorted(self.tree.read().entries(directory, scope), false))
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        let _turn = self.turn().await;
        self.tree.write().create_directory(path, &self.quota)
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        let _turn = self.turn().await;
        self.tree.write().remove_directory(path)
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        let _turn = self.turn().await;
        self.tree.write().rename(from, to, &self.quota)
    }

    async fn room(&self) -> Result<Room, FileError> {
        Ok(Room { quota: self.quota, usage: self.tree.read().usage })
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        if changes.is_empty() {
            return Ok(Box::new(NoChanges));
        }
        let changes = blocking(move || changes.load()).await?;
        let turn = Arc::clone(&self.turns).lock_owned().await;
        // Contents are shared, so this copies only names.
        let mut changed = self.tree.read().clone();
        changes.check(&self.quota, changed.usage, &mut changed)?;
        changes.apply(&mut changed)?;
        Ok(Box::new(MemoryCommit { tree: Arc::clone(&self.tree), changed, _turn: turn }))
    }
}

impl Tree {
    fn stat(&self, path: &StorePath) -> Option<Stat> {
        if path.is_root() {
            return Some(Stat::ROOT);
        }
        self.nodes.get(path).map(MemoryNode::stat)
    }

    fn content(&self, path: &StorePath) -> Result<Arc<Vec<u8>>, FileError> {
        match self.nodes.get(path) {
            Some(MemoryNode::File { content, .. }) => Ok(Arc::clone(content)),
            _ => Err(FileError::NotFound),
        }
    }

    fn next_version(&mut self) -> Version {
        self.version = self.version.saturating_add(1);
        Version(self.version)
    }

    fn write(
        &mut self,
        path: &StorePath,
        mut content: Vec<u8>,
        mode: WriteMode,
        quota: &Quota,
    ) -> Result<(), FileError> {
        let missing = self.missing_parents(path)?;
        let replaced = match (self.stat(path), mode) {
            (Some(Stat { kind: EntryKind::Directory, .. }), _) => {
                return Err(FileError::IsDirectory);
            }
            (Some(_), WriteMode::Create) => return Err(FileError::AlreadyExists),
            (found, _) => found,
        };
        let bytes_added = length(&content);
        quota.check_file(path.depth(), bytes_added)?;
        let change = UsageChange {
            entries_added: count(&missing).saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.map_or(0, |stat| stat.bytes),
            bytes_added,
        };
        self.usage = quota.admit(self.usage, change)?;
        self.insert_directories(missing);
        // The quota counts the length, so memory beyond it must not stay.
        content.shrink_to_fit();
        let version = self.next_version();
        let node =
            MemoryNode::File { content: Arc::new(content), modified: SystemTime::now(), version };
        self.nodes.insert(path.clone(), node);
        Ok(())
    }

    fn delete(&mut self, path: &StorePath) -> Result<(), FileError> {
        let bytes = length(&self.content(path)?);
        self.nodes.remove(path);
        self.usage = self.usage.without_file(bytes);
        Ok(())
    }

    fn create_directory(
        &mut self,
        path: &StorePath,
        quota: &Quota,
    ) -> Result<MadeDirectory, FileError> {
        let mut missing = self.missing_parents(path)?;
        match self.stat(path).map(|stat| stat.kind) {
            Some(EntryKind::Directory) => return Ok(MadeDirectory::Existed),
            Some(EntryKind::File) => return Err(FileError::IsFile),
            None => missing.push(path.clone()),
        }
        quota.check_depth(path.depth())?;
        let change = UsageChange { entries_added: count(&missing), ..UsageChange::default() };
        self.usage = quota.admit(self.usage, change)?;
        self.insert_directories(missing);
        Ok(MadeDirectory::Created)
    }

    fn remove_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        if path.is_root() {
            return Err(FileError::Root);
        }
        match self.stat(path).ok_or(FileError::NotFound)?.kind {
            EntryKind::File => return Err(FileError::NotDirectory),
            EntryKind::Directory => {}
        }
        if self.below(path).next().is_some() {
            return Err(FileError::NotEmpty);
        }
        self.nodes.remove(path);
        self.usage = self.usage.without_directory();
        Ok(())
    }

    fn rename(&mut self, from: &StorePath, to: &StorePath, quota: &Quota) -> Result<(), FileError> {
        if from.is_root() {
            return Err(FileError::Root);
        }
        let moved = self.stat(from).ok_or(FileError::NotFound)?.kind;
        if from == to {
            return Ok(());
        }
        if to.is_root() {
            return Err(FileError::Root);
        }
        if to.below(from).is_some() {
            return Err(if moved == EntryKind::File {
                FileError::ParentIsFile
            } else {
                FileError::IntoItself
            });
        }
        if !self.missing_parents(to)?.is_empty() {
            return Err(FileError::NotFound);
        }
        let replaced = self.stat(to);
        match (moved, replaced.as_ref().map(|stat| stat.kind)) {
            (EntryKind::File, Some(EntryKind::Directory)) => return Err(FileError::IsDirectory),
            (EntryKind::Directory, Some(EntryKind::File)) => return Err(FileError::IsFile),
            (EntryKind::Directory, Some(EntryKind::Directory))
                if self.below(to).next().is_some() =>
            {
                return Err(FileError::NotEmpty);
            }
            _ => {}
        }
        let names: Vec<String> = self.below(from).map(|(_, name)| name.to_owned()).collect();
        let deepest = names.iter().map(|name| to.join(name).depth()).max();
        quota.check_depth(deepest.unwrap_or(0).max(to.depth()))?;
        match replaced {
            Some(Stat { kind: EntryKind::File, bytes, .. }) => {
                self.usage = self.usage.without_file(bytes)
            }
            Some(_) => self.usage = self.usage.without_directory(),
            None => {}
        }
        let version = self.next_version();
        for name in names.iter().map(String::as_str).chain([""]) {
            if let Some(node) = self.nodes.remove(&from.join(name)) {
                self.nodes.insert(to.join(name), node.at(version));
            }
        }
        Ok(())
    }

    /// Returns the directories above `path` that do not exist.
    fn missing_parents(&self, path: &StorePath) -> Result<Vec<StorePath>, FileError> {
        let mut missing = Vec::new();
        for above in path.ancestors() {
            match self.nodes.get(&above) {
                None => missing.push(above),
                Some(MemoryNode::File { .. }) => return Err(FileError::ParentIsFile),
                // The parent of a directory is a directory.
                Some(MemoryNode::Directory { .. }) => break,
            }
        }
        Ok(missing)
    }

    fn insert_directories(&mut self, paths: Vec<StorePath>) {
        let version = self.next_version();
        self.nodes.extend(paths.into_iter().map(|path| (path, MemoryNode::Directory { version })));
    }

    /// Iterates over everything below `directory`, with the path relative to it.
    fn below<'t>(
        &'t self,
        directory: &'t StorePath,
    ) -> impl Iterator<Item = (&'t MemoryNode, &'t str)> {
        // Names that start like the directory but continue with a character less than `/` are
        // sorted in between, so the range ends with the common prefix, and `below` filters it.
        let from = (Bound::Excluded(directory.clone()), Bound::Unbounded);
        self.nodes
            .range(from)
            .take_while(|(path, _)| path.as_str().starts_with(directory.as_str()))
            .filter_map(|(path, node)| Some((node, path.below(directory)?)))
    }

    fn entries(&self, directory: &StorePath, scope: Scope) -> Vec<ListingEntry> {
        self.below(directory)
            .filter(|(_, name)| scope == Scope::Recursive || !name.contains('/'))
            .map(|(node, name)| ListingEntry::new(name, node.stat().kind))
            .collect()
    }
}

impl Steps for Tree {
    fn version(&mut self, path: &StorePath) -> Result<Option<Version>, FileError> {
        Ok(self.stat(path).map(|stat| stat.version))
    }

    fn children(&mut self, directory: &StorePath) -> Result<Vec<StorePath>, FileError> {
        let entries = self.entries(directory, Scope::Children);
        Ok(entries.into_iter().map(|entry| directory.join(&entry.name)).collect())
    }

    fn delete(&mut self, path: &StorePath) -> Result<(), FileError> {
        Self::delete(self, path)
    }

    fn remove_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        Self::remove_directory(self, path)
    }

    fn rename(&mut self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        Self::rename(self, from, to, &Quota::UNLIMITED)
    }

    fn create_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        Self::create_directory(self, path, &Quota::UNLIMITED).map(drop)
    }

    fn write(
        &mut self,
        path: &StorePath,
        content: FileContent,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        Self::write(self, path, content.into_bytes()?, mode, &Quota::UNLIMITED)
    }
}

impl MemoryNode {
    fn stat(&self) -> Stat {
        match self {
            Self::File { content, modified, version } => {
                Stat::file(length(content), Some(*modified), *version)
            }
            Self::Directory { version } => Stat::directory(*version),
        }
    }

    fn at(self, version: Version) -> Self {
        match self {
            Self::File { content, modified, .. } => Self::File { content, modified, version },
            Self::Directory { .. } => Self::Directory { version },
        }
    }
}

/// Returns at most `length` bytes of `content` from `offset` on.
pub(crate) fn slice(content: &[u8], offset: u64, length: u64) -> &[u8] {
    let offset = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    let end = usize::try_from(length)
        .map_or(content.len(), |length| offset.saturating_add(length).min(content.len()));
    content.get(offset..end).unwrap_or_default()
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

fn count(paths: &[StorePath]) -> u64 {
    u64::try_from(paths.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing;

    #[tokio::test]
    async fn keeps_the_contract_of_file_stores() {
        testing::run(|quota| Arc::new(MemoryStore::new(*quota))).await.unwrap();
    }

    #[tokio::test]
    async fn a_file_takes_no_more_memory_than_the_quota_counts() {
        let store = MemoryStore::new(Quota::default());
        let path = StorePath::file("short").unwrap();
        let mut content = Vec::with_capacity(1 << 20);
        content.push(1);
        store.write(&path, content, WriteMode::Create).await.unwrap();
        assert!(store.tree.read().content(&path).unwrap().capacity() < 100);
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_model(plan in testing::plan()) {
            testing::check_plan(|quota| Arc::new(MemoryStore::new(*quota)), &plan)?;
        }

        #[test]
        fn takes_over_what_calls_have_changed(plan in testing::plan()) {
            testing::check_commits(|quota| Arc::new(MemoryStore::new(*quota)), &plan)?;
        }
    }
}
