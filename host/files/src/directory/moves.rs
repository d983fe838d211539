//! Removing directories, and giving files and directories another path.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::publish::flush_names;
use super::tree::{Node, Reached, Tree, look};
use super::walk::Found;
use crate::ledger::Ledger;
use crate::{EntryKind, FileError, Quota, Scope, StorePath};

impl Tree {
    pub(super) fn remove_directory(
        &self,
        ledger: &mut Ledger,
        path: &StorePath,
    ) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Root)?;
        let directory = self.existing_directory(&parent)?;
        match look(&directory, name)? {
            Node::Directory(_) => {}
            Node::File(_) => return Err(FileError::NotDirectory),
            Node::Link => return Err(FileError::Link),
            Node::Missing | Node::Special => return Err(FileError::NotFound),
        }
        // Should it be swapped for something else here, the system refuses: it removes nothing but
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
        ledger: &mut Ledger,
        from: &StorePath,
        to: &StorePath,
        quota: &Quota,
    ) -> Result<(), FileError> {
        let (parent, name) = from.split().ok_or(FileError::Root)?;
        let source = self.existing_directory(&parent)?;
        let moved = match look(&source, name)? {
            Node::File(_) => EntryKind::File,
            Node::Directory(_) => EntryKind::Directory,
            Node::Link => return Err(FileError::Link),
            Node::Missing | Node::Special => return Err(FileError::NotFound),
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
            Reached::Directory(directory) => directory,
            Reached::Missing { .. } => return Err(FileError::NotFound),
            Reached::NotDirectory { .. } => return Err(FileError::ParentIsFile),
        };
        let replaced = replaceable(moved, &target, new_name)?;
        quota.check_depth(self.depth_after(moved, from, to, quota)?)?;
        source.rename(name, &target, new_name).map_err(refusal)?;
        match replaced {
            Some(Node::File(metadata)) => ledger.enter_deletion(metadata.len()),
            Some(_) => ledger.enter_removal(),
            None => {}
        }
        if self.options.is_durable {
            flush_names(&target);
            flush_names(&source);
        }
        Ok(())
    }

    /// The depth of the deepest path once `from` is `to`.
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
            self.walk((from, directory), Scope::Recursive, &mut |found: Found<'_>| {
                if let (Some(_), Some(name)) = (found.entry_kind(), found.path_below(from)) {
                    deepest = deepest.max(to.join(name).depth());
                }
            })?;
        }
        Ok(deepest)
    }
}

/// What is at `name` and may be replaced by something that is moved there.
fn replaceable(moved: EntryKind, directory: &Dir, name: &str) -> Result<Option<Node>, FileError> {
    match (moved, look(directory, name)?) {
        (_, Node::Missing) => Ok(None),
        (_, Node::Link) => Err(FileError::Link),
        (_, Node::Special) => Err(FileError::Special),
        (EntryKind::File, Node::Directory(_)) => Err(FileError::IsDirectory),
        (EntryKind::Directory, Node::File(_)) => Err(FileError::IsFile),
        (EntryKind::Directory, Node::Directory(_))
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
