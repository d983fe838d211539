//! Commits the changes of an overlay whose base is this overlay.
//!
//! The changes are made when they are prepared, under the lock of the overlay, and taken back if
//! the commit is dropped: when a step fails, when another store of the call refuses its changes,
//! or when the caller is stopped.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tokio::sync::OwnedMutexGuard;

use super::state::{CurrentState, HiddenNode, OverlayNode, OverlayState};
use crate::blocking::blocking;
use crate::changes::{NewContent, RemovedPath};
use crate::{
    Changes, FileError, PreparedCommit, Quota, Room, Scope, StorePath, Version, WriteMode,
};

/// A commit whose changes are made already. No other caller sees them before it is over.
pub(super) struct OverlayCommit {
    state: OwnedMutexGuard<OverlayState>,
    /// State to return to; `None` once the changes are committed.
    before: Option<StateBefore>,
}

/// Files are replaced and never overwritten, so only the names and the usage have to be restored.
struct StateBefore {
    nodes: BTreeMap<StorePath, OverlayNode>,
    hidden: BTreeMap<StorePath, HiddenNode>,
    room: Option<Room>,
}

impl OverlayCommit {
    pub(super) async fn prepare(
        mut state: OwnedMutexGuard<OverlayState>,
        changes: Changes,
    ) -> Result<Self, FileError> {
        state.require_writable()?;
        state.check(&changes).await?;
        let (nodes, hidden, room) = (state.nodes.clone(), state.hidden.clone(), state.room);
        let before = Some(StateBefore { nodes, hidden, room });
        let mut commit = Self { state, before };
        // The changes fit as a whole, but possibly not one by one.
        commit.set_quota(Quota::UNLIMITED);
        commit.state.make(changes).await?;
        if let Some(room) = room {
            commit.set_quota(room.quota);
        }
        Ok(commit)
    }

    fn set_quota(&mut self, quota: Quota) {
        if let Some(room) = &mut self.state.room {
            room.quota = quota;
        }
    }
}

#[async_trait]
impl PreparedCommit for OverlayCommit {
    /// Does not wait, so that a caller commits to all of its stores or, if it is stopped before, to
    /// none.
    async fn commit(mut self: Box<Self>) -> Result<(), FileError> {
        self.before = None;
        Ok(())
    }
}

impl Drop for OverlayCommit {
    fn drop(&mut self) {
        let Some(StateBefore { nodes, hidden, room }) = self.before.take() else { return };
        for node in nodes.values() {
            if let CurrentState::File(file) = &node.now {
                file.relink();
            }
        }
        let state = &mut *self.state;
        (state.nodes, state.hidden, state.room) = (nodes, hidden, room);
    }
}

impl OverlayState {
    async fn check(&mut self, changes: &Changes) -> Result<(), FileError> {
        for (path, version) in &changes.expected {
            if self.version(path).await? != *version {
                return Err(FileError::Conflict { path: path.clone() });
            }
        }
        for change in &changes.vacated {
            let RemovedPath::Directory(path) = change else { continue };
            for entry in self.list(path, Scope::Children).await?.entries {
                let child = path.join(&entry.name);
                if !changes.vacated.iter().any(|change| *change.path() == child) {
                    return Err(FileError::Conflict { path: child });
                }
            }
        }
        let room = self.room().await?;
        Ok(room.quota.check_difference(room.usage, changes.before, changes.after)?)
    }

    async fn version(&mut self, path: &StorePath) -> Result<Option<Version>, FileError> {
        Ok(self.lookup(path).await?.version())
    }

    async fn make(&mut self, changes: Changes) -> Result<(), FileError> {
        for change in changes.vacated {
            match change {
                RemovedPath::File(path) => self.delete(&path).await?,
                RemovedPath::Directory(path) => self.remove_directory(&path).await?,
                RemovedPath::Staged { from, stage } => self.rename(&from, &stage).await?,
            }
        }
        for (path, filled) in changes.filled {
            match filled {
                NewContent::Directory => {
                    self.create_directory(&path).await?;
                }
                NewContent::Moved { from } => self.rename(&from, &path).await?,
                NewContent::File { content, .. } => {
                    if self.version(&path).await?.is_some() {
                        self.delete(&path).await?;
                    }
                    let content = blocking(move || Ok(content.into_bytes()?)).await?;
                    self.write(&path, content, WriteMode::Create).await?;
                }
            }
        }
        Ok(())
    }
}
