//! The changes of a bucket store. Each runs alone among the changes of its store.

use super::contents::Contents;
use super::draft::Draft;
use super::keys;
use super::requests::{Bucket, Condition, Object};
use super::version::DIRECTORY;
use crate::ledger::Ledger;
use crate::quota::Change;
use crate::{EntryKind, FileError, MadeDirectory, Scope, Stat, StorePath, WriteMode};

/// What is at a path.
pub(super) enum Node {
    File(Object),
    Directory,
}

impl Node {
    pub(super) fn stat(&self) -> Stat {
        match self {
            Self::File(object) => Stat::file(object.bytes, Some(object.modified), object.version),
            Self::Directory => DIRECTORY,
        }
    }
}

impl Bucket {
    /// What is at `path`, if anything.
    pub(super) async fn look(&self, path: &StorePath) -> Result<Option<Node>, FileError> {
        if path.is_root() {
            return Ok(Some(Node::Directory));
        }
        if let Some(object) = self.head(path.as_str()).await? {
            return Ok(Some(Node::File(object)));
        }
        Ok(self.is_directory(path).await?.then_some(Node::Directory))
    }

    pub(super) async fn write(
        &self,
        ledger: &mut Ledger,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let (parents, replaced) = match (self.look(path).await?, mode) {
            (Some(Node::Directory), _) => return Err(FileError::IsDirectory),
            (Some(Node::File(_)), WriteMode::Create) => return Err(FileError::AlreadyExists),
            // What is above a file is a directory.
            (Some(Node::File(object)), WriteMode::Replace) => (0, Some(object)),
            (None, _) => (self.missing_parents(path).await?, None),
        };
        let bytes_added = u64::try_from(content.len()).unwrap_or(u64::MAX);
        self.quota.check_file(path.depth(), bytes_added)?;
        let change = Change {
            entries_added: parents.saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.map_or(0, |object| object.bytes),
            bytes_added,
        };
        let usage = self.admit(ledger, change).await?;
        let condition = match mode {
            WriteMode::Create => Condition::Missing,
            WriteMode::Replace => Condition::Always,
        };
        self.put(path.as_str(), content, condition).await.inspect_err(|_| ledger.forget())?;
        ledger.enter(usage);
        Ok(())
    }

    pub(super) async fn delete_file(
        &self,
        ledger: &mut Ledger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        if path.is_root() {
            return Err(FileError::NotFound);
        }
        let object = self.head(path.as_str()).await?.ok_or(FileError::NotFound)?;
        let mut draft = Draft::default();
        draft.know(path.as_str(), None);
        draft.delete(path);
        self.make(ledger, draft).await?;
        ledger.enter_deletion(object.bytes);
        Ok(())
    }

    pub(super) async fn create_directory(
        &self,
        ledger: &mut Ledger,
        path: &StorePath,
    ) -> Result<MadeDirectory, FileError> {
        match self.look(path).await? {
            Some(Node::Directory) => return Ok(MadeDirectory::Existed),
            Some(Node::File(_)) => return Err(FileError::IsFile),
            None => {}
        }
        let parents = self.missing_parents(path).await?;
        self.quota.check_depth(path.depth())?;
        let change = Change { entries_added: parents.saturating_add(1), ..Change::default() };
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
        ledger: &mut Ledger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        if path.is_root() {
            return Err(FileError::Root);
        }
        match self.look(path).await? {
            None => return Err(FileError::NotFound),
            Some(Node::File(_)) => return Err(FileError::NotDirectory),
            Some(Node::Directory) => {}
        }
        let mut draft = Draft::default();
        self.check_empty(&mut draft, path).await?;
        draft.remove_directory(path);
        self.make(ledger, draft).await?;
        ledger.enter_removal();
        Ok(())
    }

    pub(super) async fn rename(
        &self,
        ledger: &mut Ledger,
        from: &StorePath,
        to: &StorePath,
    ) -> Result<(), FileError> {
        if from.is_root() {
            return Err(FileError::Root);
        }
        let moved = self.look(from).await?.ok_or(FileError::NotFound)?;
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
        let mut draft = Draft::default();
        let replaced = self.look(to).await?;
        match (kind, &replaced) {
            (EntryKind::File, Some(Node::Directory)) => return Err(FileError::IsDirectory),
            (EntryKind::Directory, Some(Node::File(_))) => return Err(FileError::IsFile),
            (EntryKind::Directory, Some(Node::Directory)) => {
                self.check_empty(&mut draft, to).await?
            }
            (EntryKind::File, Some(Node::File(_))) => draft.know(to.as_str(), None),
            (_, None) => {}
        }
        let below = if kind == EntryKind::Directory {
            self.know_below(&mut draft, from).await?.depth()
        } else {
            0
        };
        self.quota.check_depth(to.depth().saturating_add(below))?;
        if kind == EntryKind::File {
            draft.know(from.as_str(), None);
        }
        draft.rename(from, to);
        self.make(ledger, draft).await?;
        match replaced {
            Some(Node::File(object)) => ledger.enter_deletion(object.bytes),
            Some(Node::Directory) => ledger.enter_removal(),
            None => {}
        }
        Ok(())
    }

    /// Sends what a draft has come to.
    async fn make(&self, ledger: &mut Ledger, draft: Draft) -> Result<(), FileError> {
        let result = self.send(draft.into_difference()).await.inspect_err(|_| ledger.forget());
        result.map_err(|error| match error {
            // Only what was there a moment ago can be in conflict here.
            FileError::Conflict { .. } => FileError::NotFound,
            other => other,
        })
    }

    /// Makes everything below `directory` known, and gives what the store shows of it.
    pub(super) async fn know_below(
        &self,
        draft: &mut Draft,
        directory: &StorePath,
    ) -> Result<Contents, FileError> {
        let (objects, is_truncated) = self.all(directory).await?;
        if is_truncated {
            let reason = "the directory holds more objects than one change may touch";
            return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, reason).into());
        }
        for object in &objects {
            if let Some(key) = self.keys.key(&object.location)
                && keys::rest(key, directory.as_str()).is_some()
            {
                draft.know(key, None);
            }
        }
        Ok(Contents::of_objects(&self.keys, directory, &objects, is_truncated))
    }

    /// Fails unless there is nothing in `directory` but its marker, which is then known.
    async fn check_empty(&self, draft: &mut Draft, directory: &StorePath) -> Result<(), FileError> {
        let level = self.level(directory).await?;
        let others = level.objects.iter().filter_map(|object| self.keys.key(&object.location));
        let is_other = |key: &str| key != keys::marker(directory) && key != directory.as_str();
        if !level.directories.is_empty() || others.into_iter().any(is_other) {
            return Err(FileError::NotEmpty);
        }
        if !level.objects.is_empty() {
            draft.know(&keys::marker(directory), None);
        }
        Ok(())
    }

    /// How many directories above `path` are not there.
    async fn missing_parents(&self, path: &StorePath) -> Result<u64, FileError> {
        let mut missing = 0_u64;
        for above in path.ancestors() {
            match self.look(&above).await? {
                None => missing = missing.saturating_add(1),
                Some(Node::File(_)) => return Err(FileError::ParentIsFile),
                // What is above a directory is a directory.
                Some(Node::Directory) => break,
            }
        }
        Ok(missing)
    }

    /// What is in a directory.
    pub(super) async fn list(
        &self,
        directory: &StorePath,
        scope: Scope,
    ) -> Result<crate::Listing, FileError> {
        Ok(self.contents(directory, scope).await?.into_listing())
    }
}
