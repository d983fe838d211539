//! Commits the changes of a call.
//!
//! Everything that can be checked beforehand is checked before the first change. A single change is
//! made as if there were no call. Several changes are prepared beside the store (`staging.rs`),
//! recorded, and then made (`apply.rs`); the record is removed when all is done. A host that is
//! killed before the record has its name has changed nothing. If it is killed later, the next host
//! that changes something or opens the directory finishes the commit (`recovery.rs`).
//!
//! A prepared commit keeps all other changes of the directory waiting until it is made or dropped.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;

use super::apply::Commit;
use super::begin;
use super::lock::DirectoryLock;
use super::staging::StagedCommit;
use super::tree::{ReachedDepth, Tree};
use crate::blocking::blocking;
use crate::changes::Steps;
use crate::content::FileContent;
use crate::ledger::UsageLedger;
use crate::{
    Changes, FileError, PreparedCommit, Quota, Scope, StorePath, Usage, Version, WriteMode,
};

/// A prepared commit.
pub(super) struct DirectoryCommit {
    /// `None` once it is made.
    changes: Option<PreparedChanges>,
}

/// Changes that can be made, and the locks that keep all others waiting.
struct PreparedChanges {
    form: ChangesForm,
    turn: DirectoryLock,
    ledger: OwnedMutexGuard<UsageLedger>,
    tree: Arc<Tree>,
}

enum ChangesForm {
    OneStep(Changes),
    Staged {
        commit: StagedCommit,
        /// Usage of the store after the changes.
        usage: Usage,
    },
}

impl DirectoryCommit {
    /// Prepares the changes. Blocks.
    pub(super) fn prepare(
        tree: Arc<Tree>,
        mut ledger: OwnedMutexGuard<UsageLedger>,
        changes: Changes,
    ) -> Result<Self, FileError> {
        let turn = begin(&tree, &mut ledger)?;
        let usage = tree.usage(&mut ledger)?;
        let mut steps = WorkingTree { tree: &tree, ledger: &mut ledger };
        changes.check(&tree.options.quota, usage, &mut steps)?;
        let form = if changes.is_one_step() {
            ChangesForm::OneStep(changes)
        } else {
            let usage = changes.usage_after(usage);
            ChangesForm::Staged { commit: tree.stage(changes)?, usage }
        };
        Ok(Self { changes: Some(PreparedChanges { form, turn, ledger, tree }) })
    }
}

#[async_trait]
impl PreparedCommit for DirectoryCommit {
    async fn commit(mut self: Box<Self>) -> Result<(), FileError> {
        match self.changes.take() {
            Some(changes) => blocking(move || changes.make()).await,
            None => Ok(()),
        }
    }
}

/// Discards what was prepared on a thread that may block.
impl Drop for DirectoryCommit {
    fn drop(&mut self) {
        let Some(changes) = self.changes.take() else { return };
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || changes.discard())),
            Err(_) => changes.discard(),
        }
    }
}

impl PreparedChanges {
    fn make(self) -> Result<(), FileError> {
        // The lock of the directory is released before the ledger, because a change that waits for
        // the ledger takes that lock next.
        let Self { form, tree, mut ledger, turn: _turn } = self;
        let mut steps = WorkingTree { tree: &tree, ledger: &mut ledger };
        match form {
            ChangesForm::OneStep(changes) => {
                changes.check_versions(&mut steps)?;
                changes.apply(&mut steps)
            }
            ChangesForm::Staged { commit, usage } => {
                let recheck = |changes: &Changes| changes.check_versions(&mut steps);
                let committed = commit.begin(&tree, recheck).and_then(Commit::carry_out);
                match committed {
                    Ok(()) => ledger.enter(usage),
                    Err(_) => ledger.forget(),
                }
                committed
            }
        }
    }

    fn discard(self) {
        if let ChangesForm::Staged { commit, .. } = self.form {
            commit.discard(&self.tree);
        }
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
