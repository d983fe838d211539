//! Changes of an overlay in a form for a file, from which another overlay of the same store can
//! continue.

use cofferdam_tool::recording::RecordedBytes;
use serde::{Deserialize, Serialize};

use super::Overlay;
use super::state::CurrentState;
use crate::changes::{NewContent, RemovedPath};
use crate::{FileError, FileStore as _, NameRules, StorePath, WriteMode};

/// Uncommitted changes of one overlay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct OverlayRecord {
    /// Version that the call saw at each path that it changed; `None` if nothing was there.
    expected: Vec<(String, Option<u64>)>,
    /// Removed files (`true`) and directories, deepest first.
    removed: Vec<(String, bool)>,
    /// Written files, and directories (`None`), shallowest first.
    added: Vec<(String, Option<RecordedBytes>)>,
}

/// Reason why uncommitted changes cannot be recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnrecordedChanges {
    /// The written files are too large.
    #[error("the written files have more than {bytes_max} bytes")]
    TooLarge {
        /// Maximum bytes of all written files together.
        bytes_max: u64,
    },
    /// Files or directories were moved.
    #[error("files or directories were moved in `{name}`")]
    Moved {
        /// Name of the store.
        name: String,
    },
    /// The store is not a directory of this machine, or more than one store is in this directory,
    /// so it cannot be recognized later.
    #[error("`{name}` is not one directory of this machine")]
    NoDirectory {
        /// Name of the store.
        name: String,
    },
    /// The changes belong to an outer call, or conflict with those of another call.
    #[error("they depend on another call")]
    Dependent,
    /// A written file cannot be read.
    #[error("a written file in `{name}` cannot be read")]
    Unreadable {
        /// Name of the store.
        name: String,
    },
}

/// Reason why recorded changes cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnrestoredChanges {
    /// No tool can write to the store.
    #[error("the files of `{name}`, which it has changed, are not there for writing")]
    NoStore {
        /// Name of the store.
        name: String,
    },
    /// A file was changed by others.
    #[error("`{path}` in `{name}`, which it has changed, was changed by others meanwhile")]
    Conflict {
        /// Name of the store.
        name: String,
        /// Path of the file or directory.
        path: String,
    },
    /// The store refuses the changes.
    #[error("its changes in `{name}` cannot be made: {message}")]
    Refused {
        /// Name of the store.
        name: String,
        /// Message of the store.
        message: String,
    },
}

impl Overlay {
    /// Returns the changes, which stay where they are. Written files may use `bytes_left`, which is
    /// checked before they are copied. `name` is that of the store in errors.
    pub(crate) async fn record(
        &self,
        name: &str,
        bytes_left: &mut u64,
        bytes_max: u64,
    ) -> Result<OverlayRecord, UnrecordedChanges> {
        let state = self.state.lock().await;
        if state.conflict.is_some() {
            return Err(UnrecordedChanges::Dependent);
        }
        let changes = state.changes_without_content();
        let moved = || UnrecordedChanges::Moved { name: name.to_owned() };
        let mut record = OverlayRecord::default();
        for (path, version) in &changes.expected {
            record.expected.push((path.to_string(), version.map(|version| version.0)));
        }
        for removed in &changes.vacated {
            let is_file = match removed {
                RemovedPath::File(_) => true,
                RemovedPath::Directory(_) => false,
                RemovedPath::Staged { .. } => return Err(moved()),
            };
            record.removed.push((removed.path().to_string(), is_file));
        }
        for (path, added) in &changes.filled {
            let content = match added {
                NewContent::Directory => None,
                NewContent::Moved { .. } => return Err(moved()),
                NewContent::File { .. } => {
                    let unreadable = || UnrecordedChanges::Unreadable { name: name.to_owned() };
                    let Some(CurrentState::File(file)) = state.nodes.get(path).map(|n| &n.now)
                    else {
                        return Err(unreadable());
                    };
                    *bytes_left = bytes_left
                        .checked_sub(file.bytes())
                        .ok_or(UnrecordedChanges::TooLarge { bytes_max })?;
                    let bytes = file.whole(file.bytes()).map_err(|_| unreadable())?;
                    Some(RecordedBytes::new(bytes))
                }
            };
            record.added.push((path.to_string(), content));
        }
        Ok(record)
    }

    /// Makes recorded changes in this overlay, which must be without changes.
    pub(crate) async fn restore(
        &self,
        name: &str,
        record: OverlayRecord,
    ) -> Result<(), UnrestoredChanges> {
        let refused = |error: &dyn std::fmt::Display| UnrestoredChanges::Refused {
            name: name.to_owned(),
            message: error.to_string(),
        };
        let parsed = |text: &str| {
            StorePath::file_under(text, NameRules::Native).map_err(|error| refused(&error))
        };
        let failed = |path: &StorePath, error: FileError| match error {
            FileError::Conflict { .. } | FileError::NotFound | FileError::NotEmpty => {
                UnrestoredChanges::Conflict { name: name.to_owned(), path: path.to_string() }
            }
            error => refused(&error),
        };
        for (path, version) in &record.expected {
            let path = parsed(path)?;
            // The overlay remembers this version and compares it again when it commits.
            let found = self.state.lock().await.lookup(&path).await;
            let found = found.map_err(|error| failed(&path, error))?;
            if found.version().map(|version| version.0) != *version {
                return Err(UnrestoredChanges::Conflict {
                    name: name.to_owned(),
                    path: path.to_string(),
                });
            }
        }
        for (path, is_file) in &record.removed {
            let path = parsed(path)?;
            let removed = match is_file {
                true => self.delete(&path).await,
                false => self.remove_directory(&path).await,
            };
            removed.map_err(|error| failed(&path, error))?;
        }
        for (path, content) in record.added {
            let path = parsed(&path)?;
            let added = match content {
                None => self.create_directory(&path).await.map(drop),
                Some(content) => {
                    let bytes = content.bytes().ok_or_else(|| refused(&"invalid content"))?;
                    self.write(&path, bytes.into_owned(), WriteMode::Replace).await
                }
            };
            added.map_err(|error| failed(&path, error))?;
        }
        Ok(())
    }
}
