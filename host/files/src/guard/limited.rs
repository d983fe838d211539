//! A store with less room.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::Mutex;

use crate::ledger::Ledger;
use crate::quota::Change;
use crate::{
    Changes, EntryKind, FileError, FileLocation, FileReader, FileStore, Listing, MadeDirectory, NameRules,
    Quota, QuotaExceeded, Room, Scope, Stat, StorePath, Usage, WriteMode,
};

/// A store that may hold less than it could: what is in it counts against a quota of its own, and against the quotas of the
/// store below as before. Of several limits of a kind the one that is met first is named, in the order of `FILE-19`.
///
/// Over a [`Subtree`](crate::Subtree) that is a quota for one directory. What is there is counted by asking for the length
/// of every file, at the first change and when that has become old; so nothing but a small view is a good place for it.
/// Changes that are made through this view take place one after another. Somebody who changes the store below by another
/// way is noticed with the next count.
#[derive(Clone)]
pub struct WithQuota {
    store: Arc<dyn FileStore>,
    quota: Quota,
    count: Arc<Mutex<Ledger>>,
}

impl WithQuota {
    /// `store` with the limits `quota`, where they are the tighter ones.
    pub fn new(store: Arc<dyn FileStore>, quota: Quota) -> Self {
        Self { store, quota, count: Arc::new(Mutex::new(Ledger::new(quota.counts))) }
    }

    /// The limits that do not depend on what is there are the tighter ones of both.
    fn narrowed(&self, below: &Quota) -> Quota {
        Quota {
            depth_max: self.quota.depth_max.min(below.depth_max),
            file_bytes_max: self.quota.file_bytes_max.min(below.file_bytes_max),
            ..self.quota
        }
    }

    /// What the view holds.
    async fn usage(&self, count: &mut Ledger) -> Result<Usage, FileError> {
        if let Some(usage) = count.known() {
            return Ok(usage);
        }
        let started = Instant::now();
        let mut usage = Usage::default();
        for entry in self.store.list(&StorePath::ROOT, Scope::Recursive).await?.entries {
            usage.entries = usage.entries.saturating_add(1);
            let Some(path) = StorePath::ROOT.descend(&entry.name) else { continue };
            if entry.kind == EntryKind::File {
                // It may be gone by now.
                let bytes = self.store.stat(&path).await.map_or(0, |stat| stat.bytes);
                usage.bytes = usage.bytes.saturating_add(bytes);
            }
        }
        Ok(count.counted(usage, started))
    }

    /// The checks of `FILE-19` for a change at `path`, against both quotas kind by kind. Gives the usage after it.
    async fn admit(
        &self,
        count: &mut Ledger,
        path: &StorePath,
        bytes: Option<u64>,
        change: Change,
    ) -> Result<Usage, FileError> {
        let below = self.store.room().await?;
        let quota = self.narrowed(&below.quota);
        match bytes {
            Some(bytes) => quota.check_file(path.depth(), bytes)?,
            None => quota.check_depth(path.depth())?,
        }
        let usage = self.usage(count).await?;
        let entries = Change { entries_added: change.entries_added, ..Change::default() };
        let content = Change { entries_added: 0, ..change };
        for change in [entries, content] {
            self.quota.admit(usage, change)?;
            below.quota.admit(below.usage, change)?;
        }
        Ok(self.quota.admit(usage, change)?)
    }

    /// How many directories above `path` are not there; `None` when one of them is a file.
    async fn missing_parents(&self, path: &StorePath) -> Result<Option<u64>, FileError> {
        let mut missing = 0_u64;
        for above in path.ancestors() {
            match self.store.probe(&above).await? {
                None => missing = missing.saturating_add(1),
                Some(stat) if stat.kind == EntryKind::File => return Ok(None),
                Some(_) => break,
            }
        }
        Ok(Some(missing))
    }

    /// Fails as the store below would, were there no depth.
    async fn check_rename(&self, moved: &Stat, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        let is_file = moved.kind == EntryKind::File;
        if to.is_root() {
            return Err(FileError::Root);
        }
        if to.below(from).is_some() {
            return Err(if is_file { FileError::ParentIsFile } else { FileError::IntoItself });
        }
        match self.missing_parents(to).await? {
            None => return Err(FileError::ParentIsFile),
            Some(0) => {}
            Some(_) => return Err(FileError::NotFound),
        }
        match self.store.probe(to).await?.map(|stat| stat.kind) {
            Some(EntryKind::Directory) if is_file => Err(FileError::IsDirectory),
            Some(EntryKind::File) if !is_file => Err(FileError::IsFile),
            Some(EntryKind::Directory) => {
                let listing = self.store.list(to, Scope::Children).await?;
                let is_empty = listing.entries.is_empty() && !listing.hides_entries;
                if is_empty { Ok(()) } else { Err(FileError::NotEmpty) }
            }
            _ => Ok(()),
        }
    }

    /// The depth of the deepest path once `from` is `to`.
    async fn depth_after(&self, moved: &Stat, from: &StorePath, to: &StorePath) -> Result<u64, FileError> {
        if moved.kind == EntryKind::File {
            return Ok(to.depth());
        }
        let listing = self.store.list(from, Scope::Recursive).await?;
        let depths = listing.entries.iter().map(|entry| to.join(&entry.name).depth());
        Ok(depths.max().unwrap_or(0).max(to.depth()))
    }
}

/// Enters the usage that `change` leaves if it was made. After one that failed half-way nobody knows.
fn enter<T>(
    count: &mut Ledger,
    result: Result<T, FileError>,
    change: impl FnOnce(Usage) -> Usage,
) -> Result<T, FileError> {
    match &result {
        Ok(_) => count.change(change),
        Err(FileError::Host(_)) => count.forget(),
        Err(_) => {}
    }
    result
}

#[async_trait]
impl FileStore for WithQuota {
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
        self.store.locate(path)
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        self.store.stat(path).await
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        self.store.probe(path).await
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        self.store.read(path, bytes_max).await
    }

    async fn read_range(&self, path: &StorePath, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        self.store.read_range(path, offset, length).await
    }

    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        self.store.reader(path)
    }

    async fn write(&self, path: &StorePath, content: Vec<u8>, mode: WriteMode) -> Result<(), FileError> {
        let mut count = self.count.lock().await;
        if self.is_read_only() {
            return Err(FileError::ReadOnly);
        }
        let (missing, replaced) = match (self.store.probe(path).await?, mode) {
            (Some(stat), _) if stat.kind == EntryKind::Directory => return Err(FileError::IsDirectory),
            (Some(_), WriteMode::Create) => return Err(FileError::AlreadyExists),
            (Some(stat), WriteMode::Replace) => (0, Some(stat.bytes)),
            (None, _) => (self.missing_parents(path).await?.ok_or(FileError::ParentIsFile)?, None),
        };
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let change = Change {
            entries_added: missing.saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.unwrap_or(0),
            bytes_added: bytes,
        };
        let admitted = self.admit(&mut count, path, Some(bytes), change).await?;
        let written = self.store.write(path, content, mode).await;
        enter(&mut count, written, |_| admitted)
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        let mut count = self.count.lock().await;
        let bytes = self.store.stat(path).await.map_or(0, |stat| stat.bytes);
        let deleted = self.store.delete(path).await;
        enter(&mut count, deleted, |usage| usage.without_file(bytes))
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        self.store.list(directory, scope).await
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        let mut count = self.count.lock().await;
        if self.is_read_only() || self.store.probe(path).await?.is_some() {
            return self.store.create_directory(path).await;
        }
        let missing = self.missing_parents(path).await?.ok_or(FileError::ParentIsFile)?;
        let change = Change { entries_added: missing.saturating_add(1), ..Change::default() };
        let admitted = self.admit(&mut count, path, None, change).await?;
        let made = self.store.create_directory(path).await;
        enter(&mut count, made, |_| admitted)
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        let mut count = self.count.lock().await;
        let removed = self.store.remove_directory(path).await;
        enter(&mut count, removed, Usage::without_directory)
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        let mut count = self.count.lock().await;
        if self.is_read_only() {
            return Err(FileError::ReadOnly);
        }
        if from.is_root() {
            return Err(FileError::Root);
        }
        let moved = self.store.stat(from).await?;
        if from == to {
            return Ok(());
        }
        self.check_rename(&moved, from, to).await?;
        let limit = self.quota.depth_max;
        if self.store.room().await?.quota.depth_max > limit
            && self.depth_after(&moved, from, to).await? > limit
        {
            return Err(QuotaExceeded::Depth { limit }.into());
        }
        let replaced = self.store.probe(to).await?;
        let renamed = self.store.rename(from, to).await;
        enter(&mut count, renamed, |usage| match replaced {
            Some(Stat { kind: EntryKind::File, bytes, .. }) => usage.without_file(bytes),
            Some(_) => usage.without_directory(),
            None => usage,
        })
    }

    async fn room(&self) -> Result<Room, FileError> {
        let mut count = self.count.lock().await;
        let below = self.store.room().await?;
        Ok(Room { quota: self.narrowed(&below.quota), usage: self.usage(&mut count).await? })
    }

    async fn commit(&self, changes: Changes) -> Result<(), FileError> {
        if changes.is_empty() {
            return Ok(());
        }
        let mut count = self.count.lock().await;
        if self.is_read_only() {
            return Err(FileError::ReadOnly);
        }
        let usage = self.usage(&mut count).await?;
        let (before, after) = (changes.before, changes.after);
        self.quota.check_difference(usage, before, after)?;
        let committed = self.store.commit(changes).await;
        enter(&mut count, committed, |usage| usage.exchanged(before, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, MemoryStore, Overlay, Subtree, testing};

    fn path(text: &str) -> StorePath {
        StorePath::directory(text).unwrap()
    }

    fn limited(quota: &Quota) -> Arc<dyn FileStore> {
        Arc::new(WithQuota::new(Arc::new(MemoryStore::new(Quota::default())), *quota))
    }

    /// Half of the limits are met here, and half of them below.
    fn limited_twice(quota: &Quota) -> Arc<dyn FileStore> {
        let below = Quota {
            file_bytes_max: quota.file_bytes_max,
            entries_max: quota.entries_max,
            ..Quota::default()
        };
        let own = Quota { bytes_max: quota.bytes_max, depth_max: quota.depth_max, ..*quota };
        Arc::new(WithQuota::new(Arc::new(MemoryStore::new(below)), own))
    }

    #[tokio::test]
    async fn keeps_the_contract_of_file_stores() {
        testing::run(limited).await.unwrap();
        testing::run(limited_twice).await.unwrap();
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_model(plan in testing::plan()) {
            testing::check_plan(limited, &plan)?;
            testing::check_plan(limited_twice, &plan)?;
        }

        #[test]
        fn takes_over_what_calls_have_changed(plan in testing::plan()) {
            testing::check_commits(limited, &plan)?;
        }
    }

    #[tokio::test]
    async fn only_what_is_in_the_view_counts() {
        let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        store.write(&path("beside"), vec![0; 100], WriteMode::Create).await.unwrap();
        let quota = Quota { bytes_max: 10, ..Quota::default() };
        let view = WithQuota::new(Arc::new(Subtree::new(Arc::clone(&store), path("d"))), quota);
        view.write(&path("a"), vec![0; 10], WriteMode::Create).await.unwrap();
        let refused = view.write(&path("b"), vec![0; 1], WriteMode::Create).await.unwrap_err();
        assert_eq!(refused.to_string(), "the store's limit of 10 bytes would be exceeded.");
        assert_eq!(view.room().await.unwrap().usage.bytes, 10);
        let store: Arc<dyn FileStore> = Arc::new(view);
        let call = Overlay::new(Arc::clone(&store), &Budget::new(u64::MAX));
        call.delete(&path("a")).await.unwrap();
        call.write(&path("b"), vec![0; 9], WriteMode::Create).await.unwrap();
        store.delete(&path("a")).await.unwrap();
        store.write(&path("c"), vec![0; 10], WriteMode::Create).await.unwrap();
        assert!(call.commit_changes().await.is_err());
        assert_eq!(store.room().await.unwrap().usage.bytes, 10);
    }
}
