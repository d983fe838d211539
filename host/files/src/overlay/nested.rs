//! Commits the changes of an overlay whose base is this overlay.

use super::state::{CurrentState, OverlayState};
use crate::blocking::blocking;
use crate::changes::{NewContent, RemovedPath};
use crate::{Changes, FileError, Quota, Scope, StorePath, Version, WriteMode};

impl OverlayState {
    /// Makes all of `changes` in this overlay, or none.
    pub(super) async fn take_over(&mut self, changes: Changes) -> Result<(), FileError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.require_writable()?;
        self.check(&changes).await?;
        // Files are replaced and never overwritten, so only the names and the usage have to be
        // restored.
        let (nodes, hidden, room) = (self.nodes.clone(), self.hidden.clone(), self.room);
        if let Some(room) = &mut self.room {
            // The changes fit as a whole, but possibly not one by one.
            room.quota = Quota::UNLIMITED;
        }
        let made = self.make(changes).await;
        if let (Some(now), Some(before)) = (&mut self.room, room) {
            now.quota = before.quota;
        }
        if made.is_err() {
            for node in nodes.values() {
                if let CurrentState::File(file) = &node.now {
                    file.relink();
                }
            }
            (self.nodes, self.hidden, self.room) = (nodes, hidden, room);
        }
        made
    }

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
