//! The changes of a directory store. Each runs alone among the changes of its store.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata};

use super::publish::{flush_names, publish};
use super::tree::{Node, Reached, Tree, look};
use crate::content::Content;
use crate::ledger::Ledger;
use crate::quota::Change;
use crate::{FileError, MadeDirectory, Quota, StorePath, WriteMode};

impl Tree {
    pub(super) fn write(
        &self,
        ledger: &mut Ledger,
        path: &StorePath,
        content: &Content,
        mode: WriteMode,
        quota: &Quota,
    ) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::IsDirectory)?;
        let place = self.place(&parent)?;
        let replaced =
            if place.names.is_empty() { writable(&place.deepest, name, mode)? } else { None };
        let bytes_added = content.bytes();
        quota.check_file(path.depth(), bytes_added)?;
        let change = Change {
            entries_added: length(place.names.len()).saturating_add(u64::from(replaced.is_none())),
            bytes_removed: replaced.as_ref().map_or(0, Metadata::len),
            bytes_added,
        };
        let usage = self.admit(ledger, quota, change)?;
        let made = place.make().inspect_err(|_| ledger.forget())?;
        let published = publish(
            &made.directory,
            name,
            content,
            mode,
            replaced.as_ref(),
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

    pub(super) fn delete(&self, ledger: &mut Ledger, path: &StorePath) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::NotFound)?;
        let directory = self.existing_directory(&parent)?;
        let metadata = match look(&directory, name)? {
            Node::File(metadata) => metadata,
            Node::Link => return Err(FileError::Link),
            Node::Missing | Node::Directory(_) | Node::Special => return Err(FileError::NotFound),
        };
        // Should it be swapped for a link here, the link is removed and not what it leads to.
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
        ledger: &mut Ledger,
        path: &StorePath,
        quota: &Quota,
    ) -> Result<MadeDirectory, FileError> {
        let place = match self.descend(path)? {
            Reached::Directory(_) => return Ok(MadeDirectory::Existed),
            Reached::NotDirectory { is_last: true } => return Err(FileError::IsFile),
            Reached::NotDirectory { is_last: false } => return Err(FileError::ParentIsFile),
            Reached::Missing { deepest, names } => Place { deepest, names },
        };
        quota.check_depth(path.depth())?;
        let change = Change { entries_added: length(place.names.len()), ..Change::default() };
        let usage = self.admit(ledger, quota, change)?;
        let made = place.make().inspect_err(|_| ledger.forget())?;
        self.flush(&made);
        ledger.enter(usage);
        Ok(MadeDirectory::Created)
    }

    /// Where something can be created at `path`.
    fn place(&self, path: &StorePath) -> Result<Place, FileError> {
        match self.descend(path)? {
            Reached::Directory(deepest) => Ok(Place { deepest, names: Vec::new() }),
            Reached::Missing { deepest, names } => Ok(Place { deepest, names }),
            Reached::NotDirectory { .. } => Err(FileError::ParentIsFile),
        }
    }

    fn flush(&self, made: &Made) {
        if self.options.is_durable {
            flush_names(&made.directory);
            made.parents.iter().for_each(|(parent, _)| flush_names(parent));
        }
    }
}

/// The file that writing `name` replaces, if any.
fn writable(directory: &Dir, name: &str, mode: WriteMode) -> Result<Option<Metadata>, FileError> {
    match (look(directory, name)?, mode) {
        (Node::Missing, _) => Ok(None),
        (Node::File(metadata), WriteMode::Replace) => Ok(Some(metadata)),
        (Node::File(_), WriteMode::Create) => Err(FileError::AlreadyExists),
        (Node::Directory(_), _) => Err(FileError::IsDirectory),
        (Node::Link, _) => Err(FileError::Link),
        (Node::Special, _) => Err(FileError::Special),
    }
}

/// A directory and the names of those to be created below it, each in the one before.
struct Place {
    deepest: Dir,
    names: Vec<String>,
}

/// The directories that were created, each with its parent and name, and the last of them.
struct Made {
    directory: Dir,
    parents: Vec<(Dir, String)>,
}

impl Place {
    /// Creates the directories, or none of them.
    fn make(self) -> Result<Made, FileError> {
        let mut made = Made { directory: self.deepest, parents: Vec::new() };
        for name in self.names {
            if let Err(error) = made.descend(name) {
                made.undo();
                return Err(error.into());
            }
        }
        Ok(made)
    }
}

impl Made {
    fn descend(&mut self, name: String) -> io::Result<()> {
        let is_ours = match self.directory.create_dir(&name) {
            Ok(()) => true,
            // Another process was faster. If it made something else than a directory, opening it
            // fails.
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

    /// Removes the directories again, as far as nobody has put something into them.
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
        let place = |names: &[&str]| Place {
            deepest: open(),
            names: names.iter().map(|n| (*n).into()).collect(),
        };
        std::fs::create_dir(root.path().join("old")).unwrap();
        assert!(place(&["old", "new", &"x".repeat(300)]).make().is_err());
        assert_eq!(std::fs::read_dir(root.path().join("old")).unwrap().count(), 0);
        place(&["old", "a", "b"]).make().unwrap().undo();
        assert_eq!(std::fs::read_dir(root.path().join("old")).unwrap().count(), 0);
        place(&["old", "a", "b"]).make().unwrap();
        assert!(root.path().join("old/a/b").is_dir());
    }
}
