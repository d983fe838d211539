//! Taking over the changes of an overlay that lies over this one.

use super::state::{Now, State};
use crate::blocking::blocking;
use crate::changes::{Filled, Vacated};
use crate::{Changes, FileError, Quota, Scope, StorePath, Version, WriteMode};

impl State {
    /// Makes `changes` here, all of them or none.
    pub(super) async fn take_over(&mut self, changes: Changes) -> Result<(), FileError> {
        if changes.is_empty() {
            return Ok(());
        }
        self.require_writable()?;
        self.check(&changes).await?;
        // Files are replaced and not written over, so that names and numbers are all there is to
        // restore.
        let (nodes, hidden, room) = (self.nodes.clone(), self.hidden.clone(), self.room);
        if let Some(room) = &mut self.room {
            // The changes fit as a whole; one by one, they need not.
            room.quota = Quota::UNLIMITED;
        }
        let made = self.make(changes).await;
        if let (Some(now), Some(before)) = (&mut self.room, room) {
            now.quota = before.quota;
        }
        if made.is_err() {
            for node in nodes.values() {
                if let Now::File(file) = &node.now {
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
            let Vacated::Directory(path) = change else { continue };
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
        Ok(self.look(path).await?.version())
    }

    async fn make(&mut self, changes: Changes) -> Result<(), FileError> {
        for change in changes.vacated {
            match change {
                Vacated::File(path) => self.delete(&path).await?,
                Vacated::Directory(path) => self.remove_directory(&path).await?,
                Vacated::Staged { from, stage } => self.rename(&from, &stage).await?,
            }
        }
        for (path, filled) in changes.filled {
            match filled {
                Filled::Directory => {
                    self.create_directory(&path).await?;
                }
                Filled::Moved { from } => self.rename(&from, &path).await?,
                Filled::File { content, .. } => {
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
