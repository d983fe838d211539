//! What a commit leaves behind: cleaning up after it, and finishing one that was interrupted.
//!
//! Somebody else may have made the directory in which this looks, and everything in it. It is
//! trusted only when it belongs to the user of this process or to whoever owns the store, and even
//! then it can do no more than its record may say: rename and delete what paths of the store
//! denote. Nothing is deleted here that holds something: what fits no commit is set aside under
//! another reserved name.

use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, Metadata};

use super::apply::Commit;
use super::fault::Step;
use super::publish::temporary_name;
use super::record::Record;
use super::staging::COMMIT;
use super::tree::{Node, Tree, look};
use super::walk::Kind;
use crate::FileError;

impl Tree {
    /// Whether a commit has left something to be done. One look.
    pub(super) fn has_unfinished_commit(&self) -> io::Result<bool> {
        Ok(!matches!(look(&self.root, COMMIT)?, Node::Missing))
    }

    /// Finishes what an interrupted commit has left: makes its changes or takes them back, all of
    /// them. To be called by whoever has the turn. Gives whether there was anything.
    pub(super) fn recover(&self) -> Result<bool, FileError> {
        let directory = match look(&self.root, COMMIT)? {
            Node::Missing => return Ok(false),
            Node::Directory(metadata) => {
                self.require_ours(&metadata)?;
                self.root.open_dir_nofollow(COMMIT)?
            }
            // No commit makes such a thing.
            Node::File(_) | Node::Link | Node::Special => {
                self.root.remove_file(COMMIT)?;
                return Ok(true);
            }
        };
        match Record::find(&directory)? {
            Ok(None) => self.clear_commit(&directory),
            Ok(Some((phase, record))) => {
                let commit = Commit::new(self, directory, record, phase);
                match commit.carry_out() {
                    // Taken back as a whole, or an error of the system that may be gone the next
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
    /// it. What cannot be removed, a directory into which somebody has put something above all, is
    /// set aside.
    pub(super) fn clear_commit(&self, directory: &Dir) {
        if self.try_clear(directory).is_err() {
            // If this fails too, the next change tries again.
            let _kept = self.set_aside();
        }
    }

    fn try_clear(&self, directory: &Dir) -> io::Result<()> {
        for entry in directory.entries()? {
            let entry = entry?;
            self.faults.point(Step::Clean)?;
            match Kind::of(entry.file_type()?) {
                // Fails unless it is empty.
                Kind::Directory => directory.remove_dir(entry.file_name())?,
                Kind::File | Kind::Link | Kind::Special => {
                    directory.remove_file(entry.file_name())?
                }
            }
        }
        self.faults.point(Step::RemoveDirectory)?;
        self.root.remove_dir(COMMIT)
    }

    fn set_aside(&self) -> io::Result<()> {
        self.root.rename(COMMIT, &self.root, format!("{}-set-aside", temporary_name()))
    }

    #[cfg(unix)]
    fn require_ours(&self, metadata: &Metadata) -> Result<(), FileError> {
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
    fn require_ours(&self, _: &Metadata) -> Result<(), FileError> {
        Ok(())
    }
}
