//! Changes of one call, in the form in which a store commits them.
//!
//! They are a difference, not a history: first everything that is removed, then everything that is
//! added. Everything that moves out of a directory does so before the directory is removed, and
//! everything that is put into a directory comes after it. Paths that are swapped are first moved
//! to hidden names.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::FileContent;
use crate::quota::Quota;
use crate::{FileError, StorePath, Usage, Version, WriteMode};

/// Changes that [`FileStore::commit`](crate::FileStore::commit) makes to a store. Only an
/// [`Overlay`](crate::Overlay) can create them.
#[derive(Debug, Default)]
pub struct Changes {
    /// Version that the call saw at each path that it changed; `None` if nothing was there.
    pub(crate) expected: Vec<(StorePath, Option<Version>)>,
    /// Removals, deepest first, under the paths that were valid before the call.
    pub(crate) vacated: Vec<RemovedPath>,
    /// Additions, shallowest first.
    pub(crate) filled: Vec<(StorePath, NewContent)>,
    /// Usage of the store when the call made its first change.
    pub(crate) before: Usage,
    /// Usage after the call's changes if nothing else changed the store.
    pub(crate) after: Usage,
}

/// Something that is removed from its path.
#[derive(Debug)]
pub(crate) enum RemovedPath {
    File(StorePath),
    Directory(StorePath),
    /// Moved to a hidden path until its new path is free.
    Staged {
        from: StorePath,
        stage: StorePath,
    },
}

/// Something that is put at a path.
#[derive(Debug)]
pub(crate) enum NewContent {
    Directory,
    Moved {
        from: StorePath,
    },
    File {
        content: FileContent,
        /// File of the store that this content comes from, under its previous path: its permissions
        /// are preserved.
        origin: Option<StorePath>,
        /// File of the store that this one replaces, under its previous path.
        replaces: Option<StorePath>,
    },
}

/// Primitive operations of a store, which do not check the quota.
pub(crate) trait Steps {
    fn version(&mut self, path: &StorePath) -> Result<Option<Version>, FileError>;
    fn children(&mut self, directory: &StorePath) -> Result<Vec<StorePath>, FileError>;
    fn delete(&mut self, path: &StorePath) -> Result<(), FileError>;
    fn remove_directory(&mut self, path: &StorePath) -> Result<(), FileError>;
    fn rename(&mut self, from: &StorePath, to: &StorePath) -> Result<(), FileError>;
    fn create_directory(&mut self, path: &StorePath) -> Result<(), FileError>;
    fn write(
        &mut self,
        path: &StorePath,
        content: FileContent,
        mode: WriteMode,
    ) -> Result<(), FileError>;
}

impl Changes {
    /// Returns whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.vacated.is_empty() && self.filled.is_empty()
    }

    /// Returns whether the changes only create new files and directories.
    pub(crate) fn only_create(&self) -> bool {
        self.vacated.is_empty()
            && self.filled.iter().all(|(_, filled)| {
                matches!(filled, NewContent::Directory | NewContent::File { replaces: None, .. })
            })
    }

    /// Returns whether there is only one change, which needs no journal.
    pub(crate) fn is_one_step(&self) -> bool {
        self.vacated.len().saturating_add(self.filled.len()) == 1
    }

    /// Loads all contents into memory, for stores that keep them there. Blocks.
    pub(crate) fn load(mut self) -> Result<Self, FileError> {
        for (_, filled) in &mut self.filled {
            if let NewContent::File { content, .. } = filled {
                *content = FileContent::Bytes(std::mem::take(content).into_bytes()?);
            }
        }
        Ok(self)
    }

    /// Returns the usage of a store after these changes if it is `usage` now.
    pub(crate) fn usage_after(&self, usage: Usage) -> Usage {
        let change =
            |now: u64, before: u64, after: u64| now.saturating_add(after).saturating_sub(before);
        Usage {
            bytes: change(usage.bytes, self.before.bytes, self.after.bytes),
            entries: change(usage.entries, self.before.entries, self.after.entries),
        }
    }

    /// Checks that each path still has the version that the call saw.
    pub(crate) fn check_versions(&self, steps: &mut impl Steps) -> Result<(), FileError> {
        for (path, version) in &self.expected {
            if steps.version(path)? != *version {
                return Err(conflict(path));
            }
        }
        Ok(())
    }

    /// Makes all checks that are possible before the first change.
    pub(crate) fn check(
        &self,
        quota: &Quota,
        usage: Usage,
        steps: &mut impl Steps,
    ) -> Result<(), FileError> {
        self.check_versions(steps)?;
        let vacated: BTreeSet<_> = self.vacated.iter().map(RemovedPath::path).collect();
        for change in &self.vacated {
            let RemovedPath::Directory(path) = change else { continue };
            if let Some(other) = steps.children(path)?.iter().find(|child| !vacated.contains(child))
            {
                return Err(conflict(other));
            }
        }
        Ok(quota.check_difference(usage, self.before, self.after)?)
    }

    /// Makes the changes one after another.
    pub(crate) fn apply(self, steps: &mut impl Steps) -> Result<(), FileError> {
        for change in self.vacated {
            let made = match &change {
                RemovedPath::File(path) => steps.delete(path),
                RemovedPath::Directory(path) => steps.remove_directory(path),
                RemovedPath::Staged { from, stage } => steps.rename(from, stage),
            };
            made.map_err(|error| at_path(error, change.path()))?;
        }
        for (path, filled) in self.filled {
            let made = match filled {
                NewContent::Directory => steps.create_directory(&path),
                NewContent::Moved { from } => steps.rename(&from, &path),
                NewContent::File { content, replaces, .. } => {
                    let mode =
                        if replaces.is_some() { WriteMode::Replace } else { WriteMode::Create };
                    steps.write(&path, content, mode)
                }
            };
            made.map_err(|error| at_path(error, &path))?;
        }
        Ok(())
    }
}

impl RemovedPath {
    pub(crate) fn path(&self) -> &StorePath {
        match self {
            Self::File(path) | Self::Directory(path) | Self::Staged { from: path, .. } => path,
        }
    }
}

/// Converts an error that the checks have ruled out into a conflict: another writer caused it.
pub(crate) fn at_path(error: FileError, path: &StorePath) -> FileError {
    match error {
        FileError::NotFound
        | FileError::AlreadyExists
        | FileError::IsDirectory
        | FileError::IsFile
        | FileError::NotDirectory
        | FileError::NotEmpty
        | FileError::ParentIsFile
        | FileError::Special => conflict(path),
        other => other,
    }
}

fn conflict(path: &StorePath) -> FileError {
    FileError::Conflict { path: path.clone() }
}

/// Returns a hidden path in the root that no other change uses.
pub(crate) fn stage() -> StorePath {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    StorePath::reserved(&format!(".moved-{}-{number}", std::process::id()))
}
