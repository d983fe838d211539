//! Taking over the changes of a call.
//!
//! Everything that can be known beforehand is checked before the first change. One change by itself
//! is made as if there were no call. Several are prepared beside the store (`staging.rs`),
//! recorded, and then made (`apply.rs`); the record is removed when all is done. A host that is
//! killed before the record has its name has changed nothing; what one that is killed later has
//! begun is finished by the next that changes something or opens the directory (`recovery.rs`).

use super::apply::Commit;
use super::tree::{Reached, Tree};
use crate::changes::Steps;
use crate::content::Content;
use crate::ledger::Ledger;
use crate::{Changes, FileError, Quota, Scope, StorePath, Version, WriteMode};

impl Tree {
    pub(super) fn commit(&self, ledger: &mut Ledger, changes: Changes) -> Result<(), FileError> {
        let usage = self.usage(ledger)?;
        changes.check(&self.options.quota, usage, &mut Working { tree: self, ledger })?;
        if changes.is_one_step() {
            return changes.apply(&mut Working { tree: self, ledger });
        }
        let usage = changes.usage_after(usage);
        let recheck =
            |changes: &Changes| changes.check_versions(&mut Working { tree: self, ledger });
        let committed = self.stage(changes, recheck).and_then(Commit::carry_out);
        match committed {
            Ok(()) => ledger.enter(usage),
            Err(_) => ledger.forget(),
        }
        committed
    }
}

/// The tree and its ledger, without a quota.
struct Working<'t> {
    tree: &'t Tree,
    ledger: &'t mut Ledger,
}

impl Steps for Working<'_> {
    fn version(&mut self, path: &StorePath) -> Result<Option<Version>, FileError> {
        match self.tree.stat(path) {
            Ok(stat) => Ok(Some(stat.version)),
            Err(FileError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn children(&mut self, directory: &StorePath) -> Result<Vec<StorePath>, FileError> {
        let Reached::Directory(_) = self.tree.descend(directory)? else { return Ok(Vec::new()) };
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
        content: Content,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.tree.write(self.ledger, path, &content, mode, &Quota::UNLIMITED)
    }
}
