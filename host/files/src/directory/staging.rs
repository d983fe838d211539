//! The first part of a commit: everything that can fail for lack of room happens here, beside the
//! store and not in it.

use std::collections::HashMap;
use std::io;

use cap_fs_ext::DirExt as _;
use cap_std::fs::{Dir, File, Metadata};

use super::apply::Commit;
use super::fault::CommitStep;
use super::publish::{FilePermissions, PublishedFile, flush_all, flush_names};
use super::record::{Arrival, ArrivalSource, CommitRecord, Departure, Phase, Removal, state};
use super::tree::{Tree, TreeNode, lookup};
use crate::changes::{NewContent, RemovedPath, at_path};
use crate::content::FileContent;
use crate::{Changes, FileError, StorePath};

/// Name of the directory in which a commit is prepared and from which it can be finished after a
/// crash. No path of a store denotes this name.
pub(super) const COMMIT: &str = ".~cofferdam-commit";

/// Maximum number of files or directories that are flushed one by one. Flushing the whole file
/// system costs about as much as ten of them, and more if other programs have much to be flushed.
pub(super) const FLUSHED_SINGLY_MAX: usize = 8;

/// Name of a record that is not complete yet.
const UNFINISHED: &str = "record";

impl Tree {
    /// Prepares `changes`. After an error nothing has changed.
    pub(super) fn stage(&self, mut changes: Changes) -> Result<StagedCommit, FileError> {
        let directory = self.make_commit_directory()?;
        let staged = StagingArea { tree: self, directory: &directory }.prepare(&mut changes);
        match staged {
            Ok(record) => Ok(StagedCommit { directory, record, changes }),
            Err(error) => {
                self.clear_commit(&directory);
                Err(error)
            }
        }
    }

    fn make_commit_directory(&self) -> io::Result<Dir> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "there are no permission bits"))]
        let mut builder = cap_std::fs::DirBuilder::new();
        #[cfg(unix)]
        {
            use cap_std::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        self.root.create_dir_with(COMMIT, &builder)?;
        self.root.open_dir_nofollow(COMMIT)
    }
}

/// A commit whose record has no name yet: a host that is killed has changed nothing.
pub(super) struct StagedCommit {
    directory: Dir,
    record: CommitRecord,
    /// The changes, without the contents.
    changes: Changes,
}

impl StagedCommit {
    /// Gives the record its name. From then on the changes will be made even if the host is killed.
    /// After an error nothing has changed. `recheck` is called before, because preparing takes
    /// time.
    pub(super) fn begin(
        self,
        tree: &Tree,
        recheck: impl FnOnce(&Changes) -> Result<(), FileError>,
    ) -> Result<Commit<'_>, FileError> {
        match recheck(&self.changes).and_then(|()| self.name_record(tree)) {
            Ok(()) => Ok(Commit::new(tree, self.directory, self.record, Phase::Vacate)),
            Err(error) => {
                self.discard(tree);
                Err(error)
            }
        }
    }

    fn name_record(&self, tree: &Tree) -> Result<(), FileError> {
        tree.faults.point(CommitStep::NameRecord)?;
        self.directory.rename(UNFINISHED, &self.directory, Phase::Vacate.file_name())?;
        if tree.options.is_durable {
            flush_names(&self.directory);
            flush_names(&tree.root);
        }
        Ok(())
    }

    /// Removes everything that was prepared.
    pub(super) fn discard(self, tree: &Tree) {
        tree.clear_commit(&self.directory);
    }
}

struct StagingArea<'t> {
    tree: &'t Tree,
    directory: &'t Dir,
}

impl StagingArea<'_> {
    fn prepare(&self, changes: &mut Changes) -> Result<CommitRecord, FileError> {
        let record = self.plan(changes)?;
        self.write_contents(changes)?;
        self.tree.faults.point(CommitStep::WriteRecord)?;
        let file = record.write(self.directory, UNFINISHED)?;
        if self.tree.options.is_durable {
            file.sync_all()?;
        }
        Ok(record)
    }

    /// Plans the steps. Names for what will be replaced come first, while every path is still the
    /// one from before the commit.
    fn plan(&self, changes: &Changes) -> Result<CommitRecord, FileError> {
        let mut leaving = Vec::new();
        let mut replaced = HashMap::new();
        for (_, filled) in &changes.filled {
            if let NewContent::File { replaces: Some(path), .. } = filled {
                replaced.insert(path, leaving.len());
                leaving.push(self.leaving(path, Removal::Replaced)?);
            }
        }
        let mut moved = HashMap::new();
        for vacated in &changes.vacated {
            leaving.push(match vacated {
                RemovedPath::File(path) | RemovedPath::Directory(path) => {
                    self.leaving(path, Removal::Deleted)?
                }
                RemovedPath::Staged { from, stage } => {
                    moved.insert(stage, leaving.len());
                    self.leaving(from, Removal::Moved)?
                }
            });
        }
        let mut coming = Vec::new();
        for (path, filled) in &changes.filled {
            let (from, is_directory, replaces) = match filled {
                NewContent::Directory => (ArrivalSource::Staged, true, None),
                NewContent::File { replaces, .. } => {
                    let replaces = replaces.as_ref().and_then(|path| replaced.get(path)).copied();
                    (ArrivalSource::Staged, false, replaces)
                }
                NewContent::Moved { from } => {
                    let number = match moved.get(from) {
                        Some(number) => *number,
                        None => {
                            leaving.push(self.leaving(from, Removal::Moved)?);
                            leaving.len().saturating_sub(1)
                        }
                    };
                    let is_directory =
                        leaving.get(number).is_some_and(|leaving| leaving.is_directory);
                    (ArrivalSource::Vacated(number), is_directory, None)
                }
            };
            coming.push(Arrival { path: path.clone(), is_directory, from, replaces });
        }
        Ok(CommitRecord::new(leaving, coming))
    }

    fn leaving(&self, path: &StorePath, end: Removal) -> Result<Departure, FileError> {
        let (parent, name) = path.split().ok_or(FileError::Root)?;
        let parent = self.tree.existing_directory(&parent).map_err(|error| at_path(error, path))?;
        let (metadata, is_directory) = match lookup(&parent, name)? {
            TreeNode::File(metadata) => (metadata, false),
            TreeNode::Directory(metadata) => (metadata, true),
            TreeNode::Link => return Err(FileError::Link),
            TreeNode::Missing | TreeNode::Special => {
                return Err(at_path(FileError::NotFound, path));
            }
        };
        Ok(Departure { path: path.clone(), is_directory, end, state: state(&metadata) })
    }

    /// Writes everything that is new. Contents are dropped one after another, so that they are not
    /// in memory and in the cache of the system at the same time.
    fn write_contents(&self, changes: &mut Changes) -> Result<(), FileError> {
        let files = changes
            .filled
            .iter()
            .filter(|(_, filled)| matches!(filled, NewContent::File { .. }))
            .count();
        let is_flushed_singly = cfg!(not(target_os = "linux")) || files <= FLUSHED_SINGLY_MAX;
        // Flush after all files have been written, because the first flush then does most of the
        // work for the others.
        let mut open = Vec::new();
        for (number, (_, filled)) in changes.filled.iter_mut().enumerate() {
            let name = CommitRecord::staged_name(number);
            self.tree.faults.point(CommitStep::Stage)?;
            match filled {
                NewContent::Moved { .. } => {}
                NewContent::Directory => self.directory.create_dir(&name)?,
                NewContent::File { content, origin, replaces } => {
                    let model =
                        self.permissions(origin.as_ref())?.or(self.permissions(replaces.as_ref())?);
                    let file = self.write(&name, &std::mem::take(content), model.as_ref())?;
                    if is_flushed_singly {
                        open.push(file);
                    }
                }
            }
        }
        self.tree.faults.point(CommitStep::Flush)?;
        if !self.tree.options.is_durable {
            return Ok(());
        }
        open.iter().try_for_each(File::sync_all)?;
        if is_flushed_singly { Ok(()) } else { Ok(flush_all(self.directory)?) }
    }

    fn write(
        &self,
        name: &str,
        content: &FileContent,
        model: Option<&Metadata>,
    ) -> io::Result<File> {
        let permissions = FilePermissions::new(model, &self.tree.options);
        PublishedFile::create(self.directory, name, content, permissions)?
            .complete(content, permissions)
    }

    /// Returns the file whose permissions a new one gets.
    fn permissions(&self, path: Option<&StorePath>) -> Result<Option<Metadata>, FileError> {
        let Some((parent, name)) = path.and_then(StorePath::split) else { return Ok(None) };
        match lookup(&self.tree.existing_directory(&parent)?, name)? {
            TreeNode::File(metadata) => Ok(Some(metadata)),
            _ => Ok(None),
        }
    }
}
