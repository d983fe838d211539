//! Commits the changes of a call.
//!
//! Everything that can be checked beforehand is checked before the first change. A single change is
//! made as if there were no call. Several changes are prepared beside the store (`staging.rs`),
//! recorded, and then made (`apply.rs`); the record is removed when all is done. A host that is
//! killed before the record has its name has changed nothing. If it is killed later, the next host
//! that changes something or opens the directory finishes the commit (`recovery.rs`).

use super::apply::Commit;
use super::tree::{ReachedDepth, Tree};
use crate::changes::Steps;
use crate::content::FileContent;
use crate::ledger::UsageLedger;
use crate::{Changes, FileError, Quota, Scope, StorePath, Version, WriteMode};

impl Tree {
    pub(super) fn commit(
        &self,
        ledger: &mut UsageLedger,
        changes: Changes,
    ) -> Result<(), FileError> {
        let usage = self.usage(ledger)?;
        changes.check(&self.options.quota, usage, &mut WorkingTree { tree: self, ledger })?;
        if changes.is_one_step() {
            return changes.apply(&mut WorkingTree { tree: self, ledger });
        }
        let usage = changes.usage_after(usage);
        let recheck =
            |changes: &Changes| changes.check_versions(&mut WorkingTree { tree: self, ledger });
        let committed = self.stage(changes, recheck).and_then(Commit::carry_out);
        match committed {
            Ok(()) => ledger.enter(usage),
            Err(_) => ledger.forget(),
        }
        committed
    }
}

/// The tree and its ledger, with changes that no quota limits.
struct WorkingTree<'t> {
    tree: &'t Tree,
    ledger: &'t mut UsageLedger,
}

impl Steps for WorkingTree<'_> {
    fn version(&mut self, path: &StorePath) -> Result<Option<Version>, FileError> {
        match self.tree.stat(path) {
            Ok(stat) => Ok(Some(stat.version)),
            Err(FileError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn children(&mut self, directory: &StorePath) -> Result<Vec<StorePath>, FileError> {
        let ReachedDepth::Directory(_) = self.tree.descend(directory)? else {
            return Ok(Vec::new());
        };
        let entries = self.tree.list(directory, Scope::Children)?.entries;
        Ok(entries.into_iter().map(|entry| directory.join(&entry.name)).collect())
    }

    fn delete(&mut self, path: &StorePath) -> Result<(), FileError> {
        self.tree.delete(self.ledger, path)
    }

    fn remove_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        self.tree.remove_directory(self.ledger, path)
    }

    fn rename(&mut self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        self.tree.rename(self.ledger, from, to, &Quota::UNLIMITED)
    }

    fn create_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        self.tree.create_directory(self.ledger, path, &Quota::UNLIMITED).map(drop)
    }

    fn write(
        &mut self,
        path: &StorePath,
        content: FileContent,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.tree.write(self.ledger, path, &content, mode, &Quota::UNLIMITED)
    }
}
