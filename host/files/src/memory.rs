//! A file store in memory.
//!
//! It is empty at first and gone when it is dropped. Every operation takes the time of a map look-up and at most one
//! copy of the content, under one lock for the whole store: readers share it, a writer has it alone and never waits
//! for anything while it does.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use async_trait::async_trait;

use crate::quota::{Change, Usage};
use crate::{
    Entry, EntryKind, FileError, FileStore, Listing, MadeDirectory, Quota, Scope, Stat, StorePath, WriteMode,
};

/// A file store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    quota: Quota,
    tree: RwLock<Tree>,
}

/// Everything but the root, which is always there. The parents of a node are nodes, and directories.
#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<StorePath, Node>,
    usage: Usage,
}

#[derive(Debug)]
enum Node {
    /// The content is shared, so that it is copied after the lock is released.
    File(Arc<Vec<u8>>),
    Directory,
}

impl MemoryStore {
    /// An empty store with the limits `quota`.
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self { quota, tree: RwLock::default() }
    }

    /// No operation can stop half-way, so a tree is whole even when a thread panicked while it held the lock.
    fn tree(&self) -> RwLockReadGuard<'_, Tree> {
        self.tree.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree_mut(&self) -> RwLockWriteGuard<'_, Tree> {
        self.tree.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl FileStore for MemoryStore {
    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        self.tree().stat(path).ok_or(FileError::NotFound)
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let content = self.tree().content(path)?;
        let bytes = length(&content);
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        Ok(Arc::unwrap_or_clone(content))
    }

    async fn read_range(&self, path: &StorePath, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        let content = self.tree().content(path)?;
        let skipped = usize::try_from(offset).unwrap_or(usize::MAX);
        let taken = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(content.iter().skip(skipped).take(taken).copied().collect())
    }

    async fn write(&self, path: &StorePath, content: Vec<u8>, mode: WriteMode) -> Result<(), FileError> {
        self.tree_mut().write(path, content, mode, &self.quota)
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        self.tree_mut().delete(path)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        Ok(Listing::sorted(self.tree().entries(directory, scope), false))
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        self.tree_mut().create_directory(path, &self.quota)
    }
}

impl Tree {
    fn stat(&self, path: &StorePath) -> Option<Stat> {
        if path.is_root() {
            return Some(Stat::DIRECTORY);
        }
        self.nodes.get(path).map(Node::stat)
    }

    fn content(&self, path: &StorePath) -> Result<Arc<Vec<u8>>, FileError> {
        match self.nodes.get(path) {
            Some(Node::File(content)) => Ok(Arc::clone(content)),
            _ => Err(FileError::NotFound),
        }
    }

    fn write(
        &mut self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
        quota: &Quota,
    ) -> Result<(), FileError> {
        let missing = self.missing_parents(path)?;
        let replaced = match (self.stat(path), mode) {
            (Some(Stat { kind: EntryKind::Directory, .. }), _) => return Err(FileError::IsDirectory),
            (Some(_), WriteMode::Create) => return Err(FileError::AlreadyExists),
            (found, _) => found,
        };
        let bytes_added = length(&content);
        quota.check_file(path.depth(), bytes_added)?;
        let change = Change {
            entries_added: count(&missing).saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.map_or(0, |stat| stat.bytes),
            bytes_added,
        };
        self.usage = quota.admit(self.usage, change)?;
        self.insert_directories(missing);
        self.nodes.insert(path.clone(), Node::File(Arc::new(content)));
        Ok(())
    }

    fn delete(&mut self, path: &StorePath) -> Result<(), FileError> {
        let bytes = length(&self.content(path)?);
        self.nodes.remove(path);
        self.usage = self.usage.without_file(bytes);
        Ok(())
    }

    fn create_directory(&mut self, path: &StorePath, quota: &Quota) -> Result<MadeDirectory, FileError> {
        let mut missing = self.missing_parents(path)?;
        match self.stat(path).map(|stat| stat.kind) {
            Some(EntryKind::Directory) => return Ok(MadeDirectory::Existed),
            Some(EntryKind::File) => return Err(FileError::IsFile),
            None => missing.push(path.clone()),
        }
        quota.check_depth(path.depth())?;
        let change = Change { entries_added: count(&missing), ..Change::default() };
        self.usage = quota.admit(self.usage, change)?;
        self.insert_directories(missing);
        Ok(MadeDirectory::Created)
    }

    /// The directories above `path` that are not there.
    fn missing_parents(&self, path: &StorePath) -> Result<Vec<StorePath>, FileError> {
        let mut missing = Vec::new();
        for above in path.ancestors() {
            match self.nodes.get(&above) {
                None => missing.push(above),
                Some(Node::File(_)) => return Err(FileError::ParentIsFile),
                // What is above a directory is a directory.
                Some(Node::Directory) => break,
            }
        }
        Ok(missing)
    }

    fn insert_directories(&mut self, paths: Vec<StorePath>) {
        self.nodes.extend(paths.into_iter().map(|path| (path, Node::Directory)));
    }

    fn entries(&self, directory: &StorePath, scope: Scope) -> Vec<Entry> {
        // Names that start like the directory but go on with a character below `/` come in between, so the range ends
        // with the common prefix and `below` picks out.
        let from = (Bound::Excluded(directory.clone()), Bound::Unbounded);
        self.nodes
            .range(from)
            .take_while(|(path, _)| path.as_str().starts_with(directory.as_str()))
            .filter_map(|(path, node)| Some(Entry::new(path.below(directory)?, node.stat().kind)))
            .filter(|entry| scope == Scope::Recursive || !entry.name.contains('/'))
            .collect()
    }
}

impl Node {
    fn stat(&self) -> Stat {
        match self {
            Self::File(content) => Stat::file(length(content)),
            Self::Directory => Stat::DIRECTORY,
        }
    }
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

    proptest::proptest! {
        #[test]
        fn agrees_with_the_model(plan in testing::plan()) {
            testing::check_plan(|quota| Arc::new(MemoryStore::new(*quota)), &plan)?;
        }
    }
}
