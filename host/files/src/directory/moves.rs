//! Removes directories, and moves files and directories.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::publish::flush_names;
use super::tree::{ReachedDepth, Tree, TreeNode, lookup};
use super::walk::WalkEntry;
use crate::ledger::UsageLedger;
use crate::{EntryKind, FileError, Quota, Scope, StorePath};

impl Tree {
    pub(super) fn remove_directory(
        &self,
        ledger: &mut UsageLedger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Root)?;
        let directory = self.existing_directory(&parent)?;
        match lookup(&directory, name)? {
            TreeNode::Directory(_) => {}
            TreeNode::File(_) => return Err(FileError::NotDirectory),
            TreeNode::Link => return Err(FileError::Link),
            TreeNode::Missing | TreeNode::Special => return Err(FileError::NotFound),
        }
        // If it is swapped for something else at this point, the system refuses: it removes only
        // empty directories.
        directory.remove_dir(name).map_err(refusal)?;
        if self.options.is_durable {
            flush_names(&directory);
        }
        ledger.enter_removal();
        Ok(())
    }

    pub(super) fn rename(
        &self,
        ledger: &mut UsageLedger,
        from: &StorePath,
        to: &StorePath,
        quota: &Quota,
    ) -> Result<(), FileError> {
        let (parent, name) = from.split().ok_or(FileError::Root)?;
        let source = self.existing_directory(&parent)?;
        let moved = match lookup(&source, name)? {
            TreeNode::File(_) => EntryKind::File,
            TreeNode::Directory(_) => EntryKind::Directory,
            TreeNode::Link => return Err(FileError::Link),
            TreeNode::Missing | TreeNode::Special => return Err(FileError::NotFound),
        };
        if from == to {
            return Ok(());
        }
        let (parent, new_name) = to.split().ok_or(FileError::Root)?;
        if to.below(from).is_some() {
            return Err(if moved == EntryKind::File {
                FileError::ParentIsFile
            } else {
                FileError::IntoItself
            });
        }
        let target = match self.descend(&parent)? {
            ReachedDepth::Directory(directory) => directory,
            ReachedDepth::Missing { .. } => return Err(FileError::NotFound),
            ReachedDepth::NotDirectory { .. } => return Err(FileError::ParentIsFile),
        };
        let replaced = replaceable(moved, &target, new_name)?;
        quota.check_depth(self.depth_after(moved, from, to, quota)?)?;
        source.rename(name, &target, new_name).map_err(refusal)?;
        match replaced {
            Some(TreeNode::File(metadata)) => ledger.enter_deletion(metadata.len()),
            Some(_) => ledger.enter_removal(),
            None => {}
        }
        if self.options.is_durable {
            flush_names(&target);
            flush_names(&source);
        }
        Ok(())
    }

    /// Returns the depth of the deepest path once `from` has become `to`.
    fn depth_after(
        &self,
        moved: EntryKind,
        from: &StorePath,
        to: &StorePath,
        quota: &Quota,
    ) -> Result<u64, FileError> {
        let mut deepest = to.depth();
        if moved == EntryKind::Directory && *quota != Quota::UNLIMITED {
            let directory = self.existing_directory(from)?;
            self.walk((from, directory), Scope::Recursive, &mut |found: WalkEntry<'_>| {
                if let (Some(_), Some(name)) = (found.entry_kind(), found.path_below(from)) {
                    deepest = deepest.max(to.join(name).depth());
                }
            })?;
        }
        Ok(deepest)
    }
}

/// Returns the node at `name` that moving something there may replace.
fn replaceable(
    moved: EntryKind,
    directory: &Dir,
    name: &str,
) -> Result<Option<TreeNode>, FileError> {
    match (moved, lookup(directory, name)?) {
        (_, TreeNode::Missing) => Ok(None),
        (_, TreeNode::Link) => Err(FileError::Link),
        (_, TreeNode::Special) => Err(FileError::Special),
        (EntryKind::File, TreeNode::Directory(_)) => Err(FileError::IsDirectory),
        (EntryKind::Directory, TreeNode::File(_)) => Err(FileError::IsFile),
        (EntryKind::Directory, TreeNode::Directory(_))
            if directory.open_dir_nofollow(name)?.entries()?.next().is_some() =>
        {
            Err(FileError::NotEmpty)
        }
        (_, node) => Ok(Some(node)),
    }
}

fn refusal(error: io::Error) -> FileError {
    match error.kind() {
        io::ErrorKind::NotFound => FileError::NotFound,
        io::ErrorKind::DirectoryNotEmpty => FileError::NotEmpty,
        _ => error.into(),
    }
}
