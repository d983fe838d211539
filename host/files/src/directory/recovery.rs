//! Cleans up after a commit, and finishes one that was interrupted.
//!
//! Another user may have created the directory of the commit, and everything in it. It is trusted
//! only if it belongs to the user of this process or to the owner of the store, and even then it
//! can only do what its record may say: rename and delete files and directories that paths of the
//! store denote. Directories with contents are never deleted here: anything that fits no commit is
//! set aside under another reserved name.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata};

use super::apply::Commit;
use super::fault::CommitStep;
use super::publish::temporary_name;
use super::record::CommitRecord;
use super::staging::COMMIT;
use super::tree::{Tree, TreeNode, lookup};
use super::walk::Kind;
use crate::FileError;

impl Tree {
    /// Returns whether a commit has left something to be done. Costs one lookup.
    pub(super) fn has_unfinished_commit(&self) -> io::Result<bool> {
        Ok(!matches!(lookup(&self.root, COMMIT)?, TreeNode::Missing))
    }

    /// Finishes an interrupted commit: makes all of its changes or rolls all of them back. The
    /// caller must hold the lock of the directory. Returns whether there was such a commit.
    pub(super) fn recover(&self) -> Result<bool, FileError> {
        let directory = match lookup(&self.root, COMMIT)? {
            TreeNode::Missing => return Ok(false),
            TreeNode::Directory(metadata) => {
                self.require_owner(&metadata)?;
                self.root.open_dir_nofollow(COMMIT)?
            }
            // No commit creates this.
            TreeNode::File(_) | TreeNode::Link | TreeNode::Special => {
                self.root.remove_file(COMMIT)?;
                return Ok(true);
            }
        };
        match CommitRecord::find(&directory)? {
            Ok(None) => self.clear_commit(&directory),
            Ok(Some((phase, record))) => {
                let commit = Commit::new(self, directory, record, phase);
                match commit.carry_out() {
                    // Rolled back as a whole, or an error of the system that may be gone the next
                    // time.
                    Ok(()) => {}
                    Err(error) if !self.has_unfinished_commit()? => drop(error),
                    Err(error @ FileError::Host(_)) => return Err(error),
                    Err(_) => self.set_aside()?,
                }
            }
            Err(_) => self.set_aside()?,
        }
        if self.has_unfinished_commit()? {
            Err(io::Error::from(io::ErrorKind::ResourceBusy).into())
        } else {
            Ok(true)
        }
    }

    /// Removes the directory of a commit that has no record, with everything that commits leave in
    /// it. If that fails, above all because another program has put something into a directory, the
    /// directory is set aside.
    pub(super) fn clear_commit(&self, directory: &Dir) {
        if self.try_clear(directory).is_err() {
            // If this fails too, the next change tries again.
            let _result = self.set_aside();
        }
    }

    fn try_clear(&self, directory: &Dir) -> io::Result<()> {
        for entry in directory.entries()? {
            let entry = entry?;
            self.faults.point(CommitStep::Clean)?;
            match Kind::of(entry.file_type()?) {
                // Fails unless it is empty.
                Kind::Directory => directory.remove_dir(entry.file_name())?,
                Kind::File | Kind::Link | Kind::Special => {
                    directory.remove_file(entry.file_name())?
                }
            }
        }
        self.faults.point(CommitStep::RemoveDirectory)?;
        self.root.remove_dir(COMMIT)
    }

    fn set_aside(&self) -> io::Result<()> {
        self.root.rename(COMMIT, &self.root, format!("{}-set-aside", temporary_name()))
    }

    #[cfg(unix)]
    fn require_owner(&self, metadata: &Metadata) -> Result<(), FileError> {
        use cap_std::fs::MetadataExt as _;
        let is_trusted = metadata.uid() == rustix::process::geteuid().as_raw()
            || metadata.uid() == self.root.dir_metadata()?.uid();
        if is_trusted {
            Ok(())
        } else {
            Err(io::Error::from(io::ErrorKind::PermissionDenied).into())
        }
    }

    #[cfg(not(unix))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "owners are looked at on Unix only"
    )]
    fn require_owner(&self, _: &Metadata) -> Result<(), FileError> {
        Ok(())
    }
}
