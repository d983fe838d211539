//! The changes of one call, as a store takes them over.
//!
//! They are a difference and not a history: what has to go, then what has to come. Everything that
//! moves away from a directory goes before the directory does, and everything that comes into one
//! comes after it. Where several things change places they first move to names that nobody sees.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::Content;
use crate::quota::Quota;
use crate::{FileError, StorePath, Usage, Version, WriteMode};

/// What [`FileStore::commit`](crate::FileStore::commit) makes of a store. Only an
/// [`Overlay`](crate::Overlay) knows how to put one together.
#[derive(Debug, Default)]
pub struct Changes {
    /// What the call saw at each path that it changed; `None` where nothing was.
    pub(crate) expected: Vec<(StorePath, Option<Version>)>,
    /// Deepest first, under the paths that they had before.
    pub(crate) vacated: Vec<Vacated>,
    /// Shallowest first.
    pub(crate) filled: Vec<(StorePath, Filled)>,
    /// What the store held when the call made its first change.
    pub(crate) before: Usage,
    /// What it would hold by now if nobody else had changed anything.
    pub(crate) after: Usage,
}

/// What goes away from its path.
#[derive(Debug)]
pub(crate) enum Vacated {
    File(StorePath),
    Directory(StorePath),
    /// Moved to a path that nobody sees, until its new one is free.
    Staged {
        from: StorePath,
        stage: StorePath,
    },
}

/// What comes to a path.
#[derive(Debug)]
pub(crate) enum Filled {
    Directory,
    Moved {
        from: StorePath,
    },
    File {
        content: Content,
        /// The file of the store that it was, under the path from before: it keeps its permissions.
        origin: Option<StorePath>,
        /// The file of the store whose place it takes, under the path from before.
        replaces: Option<StorePath>,
    },
}

/// The single changes of a store, none of which asks for a quota.
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
        content: Content,
        mode: WriteMode,
    ) -> Result<(), FileError>;
}

impl Changes {
    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.vacated.is_empty() && self.filled.is_empty()
    }

    /// Whether nothing that exists is touched.
    pub(crate) fn only_create(&self) -> bool {
        self.vacated.is_empty()
            && self.filled.iter().all(|(_, filled)| {
                matches!(filled, Filled::Directory | Filled::File { replaces: None, .. })
            })
    }

    /// Whether one step makes them, which needs no journal.
    pub(crate) fn is_one_step(&self) -> bool {
        self.vacated.len().saturating_add(self.filled.len()) == 1
    }

    /// With all contents in memory, for stores that keep them there. Blocks.
    pub(crate) fn load(mut self) -> Result<Self, FileError> {
        for (_, filled) in &mut self.filled {
            if let Filled::File { content, .. } = filled {
                *content = Content::Bytes(std::mem::take(content).into_bytes()?);
            }
        }
        Ok(self)
    }

    /// What a store holds that held `usage` before.
    pub(crate) fn usage_after(&self, usage: Usage) -> Usage {
        let change =
            |now: u64, before: u64, after: u64| now.saturating_add(after).saturating_sub(before);
        Usage {
            bytes: change(usage.bytes, self.before.bytes, self.after.bytes),
            entries: change(usage.entries, self.before.entries, self.after.entries),
        }
    }

    /// Whether each path is still as the call saw it.
    pub(crate) fn check_versions(&self, steps: &mut impl Steps) -> Result<(), FileError> {
        for (path, version) in &self.expected {
            if steps.version(path)? != *version {
                return Err(conflict(path));
            }
        }
        Ok(())
    }

    /// Everything that can be said before anything has changed.
    pub(crate) fn check(
        &self,
        quota: &Quota,
        usage: Usage,
        steps: &mut impl Steps,
    ) -> Result<(), FileError> {
        self.check_versions(steps)?;
        let vacated: BTreeSet<_> = self.vacated.iter().map(Vacated::path).collect();
        for change in &self.vacated {
            let Vacated::Directory(path) = change else { continue };
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
                Vacated::File(path) => steps.delete(path),
                Vacated::Directory(path) => steps.remove_directory(path),
                Vacated::Staged { from, stage } => steps.rename(from, stage),
            };
            made.map_err(|error| blame(error, change.path()))?;
        }
        for (path, filled) in self.filled {
            let made = match filled {
                Filled::Directory => steps.create_directory(&path),
                Filled::Moved { from } => steps.rename(&from, &path),
                Filled::File { content, replaces, .. } => {
                    let mode =
                        if replaces.is_some() { WriteMode::Replace } else { WriteMode::Create };
                    steps.write(&path, content, mode)
                }
            };
            made.map_err(|error| blame(error, &path))?;
        }
        Ok(())
    }
}

impl Vacated {
    pub(crate) fn path(&self) -> &StorePath {
        match self {
            Self::File(path) | Self::Directory(path) | Self::Staged { from: path, .. } => path,
        }
    }
}

/// What cannot be, after all checks, is the work of somebody else.
pub(crate) fn blame(error: FileError, path: &StorePath) -> FileError {
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

/// A path in the root that nobody sees and that no other change uses.
pub(crate) fn stage() -> StorePath {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    StorePath::reserved(&format!(".moved-{}-{number}", std::process::id()))
}
