//! The second part of a commit: making the changes, or rolling them back.
//!
//! Every step is a rename between the store and the directory of the commit, and that directory
//! shows whether the step was made. So steps can be resumed after a crash, forward as well as
//! backward, and no step depends on what was in memory. Each path is followed down from the root
//! again, without following links, like the paths of all operations.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::fault::CommitStep;
use super::publish::{flush_all, flush_names, rename_exclusive};
use super::record::{Arrival, ArrivalSource, CommitRecord, Departure, Phase, Removal, state};
use super::staging::FLUSHED_SINGLY_MAX;
use super::tree::{ReachedDepth, Tree, TreeNode, lookup};
use crate::changes::at_path;
use crate::{FileError, StorePath};

/// Maximum number of attempts to roll back a commit, and the pause between them.
const UNDONE_MAX: usize = 20;
const UNDO_PAUSE: Duration = Duration::from_millis(1);

/// A commit whose record is written.
pub(super) struct Commit<'t> {
    tree: &'t Tree,
    /// Directory in which it was prepared.
    directory: Dir,
    record: CommitRecord,
    phase: Phase,
}

impl<'t> Commit<'t> {
    pub(super) fn new(tree: &'t Tree, directory: Dir, record: CommitRecord, phase: Phase) -> Self {
        Self { tree, directory, record, phase }
    }

    /// Makes the changes, or rolls all of them back. Resumes from the recorded phase. Readers
    /// through this store see nothing of it before it is over.
    pub(super) fn carry_out(mut self) -> Result<(), FileError> {
        let alone = self.tree.without_readers();
        let made = match self.phase {
            Phase::Vacate | Phase::Fill => self.redo(),
            Phase::Unfill | Phase::Unvacate => Ok(()),
        };
        if made.is_err() || matches!(self.phase, Phase::Unfill | Phase::Unvacate) {
            self.undo_with_retries()?;
        }
        drop(alone);
        self.flush();
        self.finish();
        made
    }

    fn redo(&mut self) -> Result<(), FileError> {
        if self.phase == Phase::Vacate {
            for (number, leaving) in self.record.leaving.iter().enumerate() {
                self.vacate(number, leaving).map_err(|error| explain(error, &leaving.path))?;
            }
            // Removals must be durable before anything takes their place. Once something has moved
            // on, the directory of the commit no longer shows that it was removed, so the phase
            // must have reached the disk, too.
            if self.leaves(|end| end != Removal::Replaced) {
                self.flush();
            }
            self.enter(Phase::Fill)?;
            if self.leaves(|end| end == Removal::Moved) {
                self.flush_phase();
            }
        }
        for (number, coming) in self.record.coming.iter().enumerate() {
            self.fill(number, coming).map_err(|error| explain(error, &coming.path))?;
        }
        Ok(())
    }

    /// Rolls back, with several attempts, because another program that renames things in the store
    /// may be in the way for a moment.
    fn undo_with_retries(&mut self) -> Result<(), FileError> {
        let mut undone = self.undo();
        for _ in 1..UNDONE_MAX {
            match &undone {
                Ok(()) | Err(FileError::Host(_)) => break,
                Err(_) => std::thread::sleep(UNDO_PAUSE),
            }
            undone = self.undo();
        }
        undone
    }

    fn undo(&mut self) -> Result<(), FileError> {
        match self.phase {
            Phase::Vacate => self.enter(Phase::Unvacate)?,
            Phase::Fill => self.enter(Phase::Unfill)?,
            Phase::Unfill | Phase::Unvacate => {}
        }
        self.flush_phase();
        if self.phase == Phase::Unfill {
            let all = self.record.coming.iter().enumerate().rev();
            first_error(all.map(|(number, coming)| self.unfill(number, coming)))?;
            self.flush();
            self.enter(Phase::Unvacate)?;
            self.flush_phase();
        }
        let all = self.record.leaving.iter().enumerate().rev();
        first_error(all.map(|(number, leaving)| self.unvacate(number, leaving)))
    }

    /// Removes the record, and then the rest. The removal need not reach the disk at once: a commit
    /// that is carried out again finds nothing to do.
    fn finish(self) {
        let removed = self.tree.faults.point(CommitStep::RemoveRecord);
        if removed.and_then(|()| self.directory.remove_file(self.phase.file_name())).is_ok() {
            self.tree.clear_commit(&self.directory);
        }
    }

    fn enter(&mut self, phase: Phase) -> io::Result<()> {
        self.tree.faults.point(CommitStep::EnterPhase)?;
        self.directory.rename(self.phase.file_name(), &self.directory, phase.file_name())?;
        self.phase = phase;
        Ok(())
    }

    fn flush_phase(&self) {
        if self.tree.options.is_durable {
            flush_names(&self.directory);
        }
    }

    fn leaves(&self, ends: impl Fn(Removal) -> bool) -> bool {
        self.record.leaving.iter().any(|leaving| ends(leaving.end))
    }

    fn vacate(&self, number: usize, leaving: &Departure) -> Result<(), FileError> {
        let name = CommitRecord::vacated_name(number);
        if !self.holds(&name)? {
            let (parent, leaf) = leaving.path.split().ok_or(FileError::Root)?;
            let parent = self.tree.existing_directory(&parent)?;
            require_same(&parent, leaf, leaving)?;
            self.tree.faults.point(CommitStep::Vacate)?;
            let is_linked = leaving.end == Removal::Replaced
                && parent.hard_link(leaf, &self.directory, &name).is_ok();
            // On file systems without hard links, readers of other stores briefly miss the file.
            if !is_linked {
                parent.rename(leaf, &self.directory, &name)?;
            }
        }
        self.tree.faults.point(CommitStep::LookAtVacated)?;
        // The file or directory may have been swapped, changed or filled at the last moment.
        require_same(&self.directory, &name, leaving)?;
        if leaving.is_directory
            && leaving.end == Removal::Deleted
            && self.directory.open_dir_nofollow(&name)?.entries()?.next().is_some()
        {
            return Err(FileError::NotEmpty);
        }
        Ok(())
    }

    fn fill(&self, number: usize, coming: &Arrival) -> Result<(), FileError> {
        let source = source_name(number, coming);
        if !self.holds(&source)? {
            return Ok(());
        }
        let (parent, leaf) = coming.path.split().ok_or(FileError::Root)?;
        let parent = match self.tree.descend(&parent)? {
            ReachedDepth::Directory(parent) => parent,
            ReachedDepth::Missing { .. } => return Err(FileError::NotFound),
            ReachedDepth::NotDirectory { .. } => return Err(FileError::ParentIsFile),
        };
        self.tree.faults.point(CommitStep::Fill)?;
        // If it could not get a second name, it is already gone.
        if let Some(replaced) = coming.replaces.and_then(|number| self.record.leaving.get(number))
            && !matches!(lookup(&parent, leaf)?, TreeNode::Missing)
        {
            require_same(&parent, leaf, replaced)?;
        }
        match coming.replaces {
            Some(_) => self.directory.rename(&source, &parent, leaf)?,
            None => rename_exclusive(&self.directory, &source, &parent, leaf)?,
        }
        Ok(())
    }

    fn unfill(&self, number: usize, coming: &Arrival) -> Result<(), FileError> {
        let source = source_name(number, coming);
        if self.holds(&source)? {
            return Ok(());
        }
        let (parent, leaf) = coming.path.split().ok_or(FileError::Root)?;
        let parent = match self.tree.existing_directory(&parent) {
            Ok(parent) => parent,
            // Another program has removed it, with everything in it.
            Err(FileError::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.tree.faults.point(CommitStep::Unfill)?;
        if let Some(replaced) = coming.replaces {
            let vacated = CommitRecord::vacated_name(replaced);
            if self.holds(&vacated)? {
                self.directory.rename(&vacated, &parent, leaf)?;
            }
            return Ok(());
        }
        match lookup(&parent, leaf)? {
            TreeNode::Missing => Ok(()),
            // A directory stays if another program has put something into it.
            TreeNode::Directory(_) if coming.from == ArrivalSource::Staged => match parent
                .remove_dir(leaf)
            {
                Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error.into()),
                _ => Ok(()),
            },
            _ => Ok(parent.rename(leaf, &self.directory, &source)?),
        }
    }

    fn unvacate(&self, number: usize, leaving: &Departure) -> Result<(), FileError> {
        let name = CommitRecord::vacated_name(number);
        if !self.holds(&name)? {
            return Ok(());
        }
        let (parent, leaf) = leaving.path.split().ok_or(FileError::Root)?;
        let parent = self.tree.existing_directory(&parent)?;
        if leaving.end == Removal::Replaced && !matches!(lookup(&parent, leaf)?, TreeNode::Missing)
        {
            return Ok(());
        }
        self.tree.faults.point(CommitStep::Unvacate)?;
        Ok(rename_exclusive(&self.directory, &name, &parent, leaf)?)
    }

    fn holds(&self, name: &str) -> io::Result<bool> {
        Ok(!matches!(lookup(&self.directory, name)?, TreeNode::Missing))
    }

    /// Makes the changed names durable, in all directories that have some.
    fn flush(&self) {
        if !self.tree.options.is_durable {
            return;
        }
        let leaving = self.record.leaving.iter().map(|leaving| &leaving.path);
        let coming = self.record.coming.iter().map(|coming| &coming.path);
        let parents: BTreeSet<StorePath> = leaving
            .chain(coming)
            .filter_map(|path| path.split())
            .map(|(parent, _)| parent)
            .collect();
        let mut directories = Vec::new();
        if parents.len() <= FLUSHED_SINGLY_MAX {
            directories
                .extend(parents.iter().filter_map(|path| self.tree.existing_directory(path).ok()));
        }
        // A directory that has moved in the meantime is not found under its path.
        if directories.len() < parents.len() && flush_all(&self.directory).is_ok() {
            return;
        }
        flush_names(&self.directory);
        directories.iter().for_each(flush_names);
    }
}

fn source_name(number: usize, coming: &Arrival) -> String {
    match coming.from {
        ArrivalSource::Staged => CommitRecord::staged_name(number),
        ArrivalSource::Vacated(number) => CommitRecord::vacated_name(number),
    }
}

/// Fails unless `name` is the file or directory that is expected to leave.
fn require_same(directory: &Dir, name: &str, leaving: &Departure) -> Result<(), FileError> {
    match lookup(directory, name)? {
        TreeNode::File(metadata) if !leaving.is_directory && state(&metadata) == leaving.state => {
            Ok(())
        }
        TreeNode::Directory(metadata)
            if leaving.is_directory && state(&metadata) == leaving.state =>
        {
            Ok(())
        }
        TreeNode::Link => Err(FileError::Link),
        _ => Err(FileError::NotFound),
    }
}

/// Runs all of them and returns the first error.
fn first_error(all: impl Iterator<Item = Result<(), FileError>>) -> Result<(), FileError> {
    let mut first = Ok(());
    for next in all {
        first = first.and(next);
    }
    first
}

/// Converts an obstacle into a conflict: the checks have passed, so another writer caused it.
fn explain(error: FileError, path: &StorePath) -> FileError {
    match &error {
        FileError::Host(failure) if failure.kind() == io::ErrorKind::CrossesDevices => {
            FileError::MountPoint
        }
        FileError::Host(failure) => match failure.kind() {
            io::ErrorKind::AlreadyExists => at_path(FileError::AlreadyExists, path),
            io::ErrorKind::NotFound => at_path(FileError::NotFound, path),
            io::ErrorKind::DirectoryNotEmpty => at_path(FileError::NotEmpty, path),
            _ => error,
        },
        _ => at_path(error, path),
    }
}
