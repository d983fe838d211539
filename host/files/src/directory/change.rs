//! Changes of a directory store. No two of them run at the same time in one store.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata};

use super::publish::{FilePermissions, flush_names, publish};
use super::tree::{ReachedDepth, Tree, TreeNode, lookup};
use crate::content::FileContent;
use crate::ledger::UsageLedger;
use crate::quota::UsageChange;
use crate::{FileError, MadeDirectory, Quota, StorePath, WriteMode};

impl Tree {
    pub(super) fn write(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
        content: &FileContent,
        mode: WriteMode,
        quota: &Quota,
    ) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::IsDirectory)?;
        let missing = self.missing_directories(&parent)?;
        let replaced =
            if missing.names.is_empty() { writable(&missing.deepest, name, mode)? } else { None };
        let bytes_added = content.bytes();
        quota.check_file(path.depth(), bytes_added)?;
        let change = UsageChange {
            entries_added: length(missing.names.len())
                .saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.as_ref().map_or(0, Metadata::len),
            bytes_added,
        };
        let usage = self.admit(ledger, quota, change)?;
        let made = missing.make().inspect_err(|_| ledger.forget())?;
        let published = publish(
            &made.directory,
            name,
            content,
            mode,
            FilePermissions::new(replaced.as_ref(), &self.options),
            self.options.is_durable,
        );
        if let Err(error) = published {
            ledger.forget();
            let reason = writable(&made.directory, name, mode).err();
            made.undo();
            return Err(reason.unwrap_or(error.into()));
        }
        self.flush(&made);
        ledger.enter(usage);
        Ok(())
    }

    pub(super) fn delete(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::NotFound)?;
        let directory = self.existing_directory(&parent)?;
        let metadata = match lookup(&directory, name)? {
            TreeNode::File(metadata) => metadata,
            TreeNode::Link => return Err(FileError::Link),
            TreeNode::Missing | TreeNode::Directory(_) | TreeNode::Special => {
                return Err(FileError::NotFound);
            }
        };
        // If it is swapped for a link at this point, the link is removed and not its target.
        directory.remove_file(name).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FileError::NotFound,
            _ => error.into(),
        })?;
        if self.options.is_durable {
            flush_names(&directory);
        }
        ledger.enter_deletion(metadata.len());
        Ok(())
    }

    pub(super) fn create_directory(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
        quota: &Quota,
    ) -> Result<MadeDirectory, FileError> {
        let missing = match self.descend(path)? {
            ReachedDepth::Directory(_) => return Ok(MadeDirectory::Existed),
            ReachedDepth::NotDirectory { is_last: true } => return Err(FileError::IsFile),
            ReachedDepth::NotDirectory { is_last: false } => return Err(FileError::ParentIsFile),
            ReachedDepth::Missing { deepest, names } => MissingDirectories { deepest, names },
        };
        quota.check_depth(path.depth())?;
        let change =
            UsageChange { entries_added: length(missing.names.len()), ..UsageChange::default() };
        let usage = self.admit(ledger, quota, change)?;
        let made = missing.make().inspect_err(|_| ledger.forget())?;
        self.flush(&made);
        ledger.enter(usage);
        Ok(MadeDirectory::Created)
    }

    /// Finds the directory in which something can be created at `path`.
    fn missing_directories(&self, path: &StorePath) -> Result<MissingDirectories, FileError> {
        match self.descend(path)? {
            ReachedDepth::Directory(deepest) => {
                Ok(MissingDirectories { deepest, names: Vec::new() })
            }
            ReachedDepth::Missing { deepest, names } => Ok(MissingDirectories { deepest, names }),
            ReachedDepth::NotDirectory { .. } => Err(FileError::ParentIsFile),
        }
    }

    fn flush(&self, made: &CreatedDirectories) {
        if self.options.is_durable {
            flush_names(&made.directory);
            made.parents.iter().for_each(|(parent, _)| flush_names(parent));
        }
    }
}

/// Returns the file that writing `name` replaces, if any.
fn writable(directory: &Dir, name: &str, mode: WriteMode) -> Result<Option<Metadata>, FileError> {
    match (lookup(directory, name)?, mode) {
        (TreeNode::Missing, _) => Ok(None),
        (TreeNode::File(metadata), WriteMode::Replace) => Ok(Some(metadata)),
        (TreeNode::File(_), WriteMode::Create) => Err(FileError::AlreadyExists),
        (TreeNode::Directory(_), _) => Err(FileError::IsDirectory),
        (TreeNode::Link, _) => Err(FileError::Link),
        (TreeNode::Special, _) => Err(FileError::Special),
    }
}

/// Directory and the names of the directories to create below it, each inside the previous one.
struct MissingDirectories {
    deepest: Dir,
    names: Vec<String>,
}

/// The created directories, each with its parent and name, and the deepest of them.
struct CreatedDirectories {
    directory: Dir,
    parents: Vec<(Dir, String)>,
}

impl MissingDirectories {
    /// Creates all of the directories or none.
    fn make(self) -> Result<CreatedDirectories, FileError> {
        let mut made = CreatedDirectories { directory: self.deepest, parents: Vec::new() };
        for name in self.names {
            if let Err(error) = made.descend(name) {
                made.undo();
                return Err(error.into());
            }
        }
        Ok(made)
    }
}

impl CreatedDirectories {
    fn descend(&mut self, name: String) -> io::Result<()> {
        let is_ours = match self.directory.create_dir(&name) {
            Ok(()) => true,
            // Another process was faster. If it created something other than a directory, opening
            // it fails.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        let below = self.directory.open_dir_nofollow(&name)?;
        let parent = std::mem::replace(&mut self.directory, below);
        if is_ours {
            self.parents.push((parent, name));
        }
        Ok(())
    }

    /// Removes the created directories again, except those that are no longer empty.
    fn undo(self) {
        for (parent, name) in self.parents.iter().rev() {
            let _removed = parent.remove_dir(name);
        }
    }
}

fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn directories_are_created_together_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let open = || Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        let missing = |names: &[&str]| MissingDirectories {
            deepest: open(),
            names: names.iter().map(|n| (*n).into()).collect(),
        };
        std::fs::create_dir(root.path().join("old")).unwrap();
        assert!(missing(&["old", "new", &"x".repeat(300)]).make().is_err());
        assert_eq!(std::fs::read_dir(root.path().join("old")).unwrap().count(), 0);
        missing(&["old", "a", "b"]).make().unwrap().undo();
        assert_eq!(std::fs::read_dir(root.path().join("old")).unwrap().count(), 0);
        missing(&["old", "a", "b"]).make().unwrap();
        assert!(root.path().join("old/a/b").is_dir());
    }
}
