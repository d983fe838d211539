//! Changes of a bucket store. No two of them run at the same time in one store.

use super::contents::DirectoryContents;
use super::draft::ObjectDraft;
use super::keys;
use super::requests::{Bucket, ObjectInfo, PutCondition};
use super::version::DIRECTORY;
use crate::ledger::UsageLedger;
use crate::quota::UsageChange;
use crate::{EntryKind, FileError, MadeDirectory, Scope, Stat, StorePath, WriteMode};

/// File or directory at a path.
pub(super) enum ObjectNode {
    File(ObjectInfo),
    Directory,
}

impl ObjectNode {
    pub(super) fn stat(&self) -> Stat {
        match self {
            Self::File(object) => Stat::file(object.bytes, Some(object.modified), object.version),
            Self::Directory => DIRECTORY,
        }
    }
}

impl Bucket {
    /// Returns the file or directory at `path`, if there is one.
    pub(super) async fn lookup(&self, path: &StorePath) -> Result<Option<ObjectNode>, FileError> {
        if path.is_root() {
            return Ok(Some(ObjectNode::Directory));
        }
        if let Some(object) = self.head(path.as_str()).await? {
            return Ok(Some(ObjectNode::File(object)));
        }
        Ok(self.is_directory(path).await?.then_some(ObjectNode::Directory))
    }

    pub(super) async fn write(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let (parents, replaced) = match (self.lookup(path).await?, mode) {
            (Some(ObjectNode::Directory), _) => return Err(FileError::IsDirectory),
            (Some(ObjectNode::File(_)), WriteMode::Create) => return Err(FileError::AlreadyExists),
            // The parent of a file is a directory.
            (Some(ObjectNode::File(object)), WriteMode::Replace) => (0, Some(object)),
            (None, _) => (self.missing_parents(path).await?, None),
        };
        let bytes_added = u64::try_from(content.len()).unwrap_or(u64::MAX);
        self.quota.check_file(path.depth(), bytes_added)?;
        let change = UsageChange {
            entries_added: parents.saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.map_or(0, |object| object.bytes),
            bytes_added,
        };
        let usage = self.admit(ledger, change).await?;
        let condition = match mode {
            WriteMode::Create => PutCondition::Missing,
            WriteMode::Replace => PutCondition::Always,
        };
        self.put(path.as_str(), content, condition).await.inspect_err(|_| ledger.forget())?;
        ledger.enter(usage);
        Ok(())
    }

    pub(super) async fn delete_file(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        if path.is_root() {
            return Err(FileError::NotFound);
        }
        let object = self.head(path.as_str()).await?.ok_or(FileError::NotFound)?;
        let mut draft = ObjectDraft::default();
        draft.record_version(path.as_str(), None);
        draft.delete(path);
        self.make(ledger, draft).await?;
        ledger.enter_deletion(object.bytes);
        Ok(())
    }

    pub(super) async fn create_directory(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
    ) -> Result<MadeDirectory, FileError> {
        match self.lookup(path).await? {
            Some(ObjectNode::Directory) => return Ok(MadeDirectory::Existed),
            Some(ObjectNode::File(_)) => return Err(FileError::IsFile),
            None => {}
        }
        let parents = self.missing_parents(path).await?;
        self.quota.check_depth(path.depth())?;
        let change =
            UsageChange { entries_added: parents.saturating_add(1), ..UsageChange::default() };
        let usage = self.admit(ledger, change).await?;
        let is_new = self.mark(&keys::marker(path)).await.inspect_err(|_| ledger.forget())?;
        if !is_new {
            // Another host was faster.
            ledger.forget();
            return Ok(MadeDirectory::Existed);
        }
        ledger.enter(usage);
        Ok(MadeDirectory::Created)
    }

    pub(super) async fn remove_directory(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        if path.is_root() {
            return Err(FileError::Root);
        }
        match self.lookup(path).await? {
            None => return Err(FileError::NotFound),
            Some(ObjectNode::File(_)) => return Err(FileError::NotDirectory),
            Some(ObjectNode::Directory) => {}
        }
        let mut draft = ObjectDraft::default();
        self.check_empty(&mut draft, path).await?;
        draft.remove_directory(path);
        self.make(ledger, draft).await?;
        ledger.enter_removal();
        Ok(())
    }

    pub(super) async fn rename(
        &self,
        ledger: &mut UsageLedger,
        from: &StorePath,
        to: &StorePath,
    ) -> Result<(), FileError> {
        if from.is_root() {
            return Err(FileError::Root);
        }
        let moved = self.lookup(from).await?.ok_or(FileError::NotFound)?;
        if from == to {
            return Ok(());
        }
        if to.is_root() {
            return Err(FileError::Root);
        }
        let kind = moved.stat().kind;
        if to.below(from).is_some() {
            return Err(match kind {
                EntryKind::File => FileError::ParentIsFile,
                EntryKind::Directory => FileError::IntoItself,
            });
        }
        if self.missing_parents(to).await? > 0 {
            return Err(FileError::NotFound);
        }
        let mut draft = ObjectDraft::default();
        let replaced = self.lookup(to).await?;
        match (kind, &replaced) {
            (EntryKind::File, Some(ObjectNode::Directory)) => return Err(FileError::IsDirectory),
            (EntryKind::Directory, Some(ObjectNode::File(_))) => return Err(FileError::IsFile),
            (EntryKind::Directory, Some(ObjectNode::Directory)) => {
                self.check_empty(&mut draft, to).await?
            }
            (EntryKind::File, Some(ObjectNode::File(_))) => draft.record_version(to.as_str(), None),
            (_, None) => {}
        }
        let below = if kind == EntryKind::Directory {
            self.record_versions_below(&mut draft, from).await?.depth()
        } else {
            0
        };
        self.quota.check_depth(to.depth().saturating_add(below))?;
        if kind == EntryKind::File {
            draft.record_version(from.as_str(), None);
        }
        draft.rename(from, to);
        self.make(ledger, draft).await?;
        match replaced {
            Some(ObjectNode::File(object)) => ledger.enter_deletion(object.bytes),
            Some(ObjectNode::Directory) => ledger.enter_removal(),
            None => {}
        }
        Ok(())
    }

    /// Sends the requests of a draft.
    async fn make(&self, ledger: &mut UsageLedger, draft: ObjectDraft) -> Result<(), FileError> {
        let result = self.send(draft.into_difference()).await.inspect_err(|_| ledger.forget());
        result.map_err(|error| match error {
            // A conflict here means that something has disappeared since it was looked up.
            FileError::Conflict { .. } => FileError::NotFound,
            other => other,
        })
    }

    /// Adds everything below `directory` to the draft, and returns what the store shows of it.
    pub(super) async fn record_versions_below(
        &self,
        draft: &mut ObjectDraft,
        directory: &StorePath,
    ) -> Result<DirectoryContents, FileError> {
        let (objects, is_truncated) = self.all(directory).await?;
        if is_truncated {
            let reason = "the directory holds more objects than one change may touch";
            return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, reason).into());
        }
        for object in &objects {
            if let Some(key) = self.keys.key(&object.location)
                && keys::rest(key, directory.as_str()).is_some()
            {
                draft.record_version(key, None);
            }
        }
        Ok(DirectoryContents::of_objects(&self.keys, directory, &objects, is_truncated))
    }

    /// Fails unless `directory` contains at most its marker, which is then added to the draft.
    async fn check_empty(
        &self,
        draft: &mut ObjectDraft,
        directory: &StorePath,
    ) -> Result<(), FileError> {
        let level = self.level(directory).await?;
        let others = level.objects.iter().filter_map(|object| self.keys.key(&object.location));
        let is_other = |key: &str| key != keys::marker(directory) && key != directory.as_str();
        if !level.directories.is_empty() || others.into_iter().any(is_other) {
            return Err(FileError::NotEmpty);
        }
        if !level.objects.is_empty() {
            draft.record_version(&keys::marker(directory), None);
        }
        Ok(())
    }

    /// Returns the number of directories above `path` that do not exist.
    async fn missing_parents(&self, path: &StorePath) -> Result<u64, FileError> {
        let mut missing = 0_u64;
        for above in path.ancestors() {
            match self.lookup(&above).await? {
                None => missing = missing.saturating_add(1),
                Some(ObjectNode::File(_)) => return Err(FileError::ParentIsFile),
                // The parent of a directory is a directory.
                Some(ObjectNode::Directory) => break,
            }
        }
        Ok(missing)
    }

    /// Lists a directory.
    pub(super) async fn list(
        &self,
        directory: &StorePath,
        scope: Scope,
    ) -> Result<crate::Listing, FileError> {
        Ok(self.contents(directory, scope).await?.into_listing())
    }
}
