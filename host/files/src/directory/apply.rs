//! The second part of a commit: making the changes, or taking them back.
//!
//! Every step is a rename between the store and the directory of the commit, and whether it was
//! made shows in that directory. So steps can be begun again after a crash, forwards as well as
//! backwards, and no step depends on what was in memory. Each path is followed down from the root
//! anew, without links, like the paths of all operations.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use cap_fs_ext::DirExt as _;
use cap_std::fs::Dir;

use super::fault::Step;
use super::publish::{flush_all, flush_names, rename_exclusive};
use super::record::{Coming, End, Leaving, Phase, Record, Source, state};
use super::staging::FLUSHED_SINGLY_MAX;
use super::tree::{Node, Reached, Tree, look};
use crate::changes::blame;
use crate::{FileError, StorePath};

/// How often a commit is tried to be taken back, and the pause in between.
const UNDONE_MAX: usize = 20;
const UNDO_PAUSE: Duration = Duration::from_millis(1);

/// A commit whose record is written.
pub(super) struct Commit<'t> {
    tree: &'t Tree,
    /// Where it was prepared.
    directory: Dir,
    record: Record,
    phase: Phase,
}

impl<'t> Commit<'t> {
    pub(super) fn new(tree: &'t Tree, directory: Dir, record: Record, phase: Phase) -> Self {
        Self { tree, directory, record, phase }
    }

    /// Makes the changes, or takes all of them back. Goes on where the commit was left. Whoever
    /// reads through this store sees nothing of it before it is over.
    pub(super) fn carry_out(mut self) -> Result<(), FileError> {
        let alone = self.tree.without_readers();
        let made = match self.phase {
            Phase::Vacate | Phase::Fill => self.redo(),
            Phase::Unfill | Phase::Unvacate => Ok(()),
        };
        if made.is_err() || matches!(self.phase, Phase::Unfill | Phase::Unvacate) {
            self.undo_again_and_again()?;
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
            // What leaves must have left for good before anything takes its place. What moves on
            // shows no longer that it has left, so the phase must have reached the disk, too.
            if self.leaves(|end| end != End::Replaced) {
                self.flush();
            }
            self.enter(Phase::Fill)?;
            if self.leaves(|end| end == End::Moved) {
                self.flush_phase();
            }
        }
        for (number, coming) in self.record.coming.iter().enumerate() {
            self.fill(number, coming).map_err(|error| explain(error, &coming.path))?;
        }
        Ok(())
    }

    /// Tries more than once, because somebody who plays with the names in the store may be in the
    /// way for a moment.
    fn undo_again_and_again(&mut self) -> Result<(), FileError> {
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

    /// Removes the record, and then what is left. The removal need not reach the disk at once:
    /// carried out again, the record would find nothing to do.
    fn finish(self) {
        let removed = self.tree.faults.point(Step::RemoveRecord);
        if removed.and_then(|()| self.directory.remove_file(self.phase.file_name())).is_ok() {
            self.tree.clear_commit(&self.directory);
        }
    }

    fn enter(&mut self, phase: Phase) -> io::Result<()> {
        self.tree.faults.point(Step::EnterPhase)?;
        self.directory.rename(self.phase.file_name(), &self.directory, phase.file_name())?;
        self.phase = phase;
        Ok(())
    }

    fn flush_phase(&self) {
        if self.tree.options.is_durable {
            flush_names(&self.directory);
        }
    }

    fn leaves(&self, ends: impl Fn(End) -> bool) -> bool {
        self.record.leaving.iter().any(|leaving| ends(leaving.end))
    }

    fn vacate(&self, number: usize, leaving: &Leaving) -> Result<(), FileError> {
        let name = Record::vacated_name(number);
        if !self.holds(&name)? {
            let (parent, leaf) = leaving.path.split().ok_or(FileError::Root)?;
            let parent = self.tree.existing_directory(&parent)?;
            require_same(&parent, leaf, leaving)?;
            self.tree.faults.point(Step::Vacate)?;
            let is_linked = leaving.end == End::Replaced
                && parent.hard_link(leaf, &self.directory, &name).is_ok();
            // Where files cannot have two names, readers of other stores miss it for a moment.
            if !is_linked {
                parent.rename(leaf, &self.directory, &name)?;
            }
        }
        self.tree.faults.point(Step::LookAtVacated)?;
        // It may have been swapped or changed in the last moment, or filled.
        require_same(&self.directory, &name, leaving)?;
        if leaving.is_directory
            && leaving.end == End::Deleted
            && self.directory.open_dir_nofollow(&name)?.entries()?.next().is_some()
        {
            return Err(FileError::NotEmpty);
        }
        Ok(())
    }

    fn fill(&self, number: usize, coming: &Coming) -> Result<(), FileError> {
        let source = source_name(number, coming);
        if !self.holds(&source)? {
            return Ok(());
        }
        let (parent, leaf) = coming.path.split().ok_or(FileError::Root)?;
        let parent = match self.tree.descend(&parent)? {
            Reached::Directory(parent) => parent,
            Reached::Missing { .. } => return Err(FileError::NotFound),
            Reached::NotDirectory { .. } => return Err(FileError::ParentIsFile),
        };
        self.tree.faults.point(Step::Fill)?;
        // Where it could not be given a second name it is not there.
        if let Some(replaced) = coming.replaces.and_then(|number| self.record.leaving.get(number))
            && !matches!(look(&parent, leaf)?, Node::Missing)
        {
            require_same(&parent, leaf, replaced)?;
        }
        match coming.replaces {
            Some(_) => self.directory.rename(&source, &parent, leaf)?,
            None => rename_exclusive(&self.directory, &source, &parent, leaf)?,
        }
        Ok(())
    }

    fn unfill(&self, number: usize, coming: &Coming) -> Result<(), FileError> {
        let source = source_name(number, coming);
        if self.holds(&source)? {
            return Ok(());
        }
        let (parent, leaf) = coming.path.split().ok_or(FileError::Root)?;
        let parent = match self.tree.existing_directory(&parent) {
            Ok(parent) => parent,
            // Somebody has removed it, with everything in it.
            Err(FileError::NotFound) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.tree.faults.point(Step::Unfill)?;
        if let Some(replaced) = coming.replaces {
            let kept = Record::vacated_name(replaced);
            if self.holds(&kept)? {
                self.directory.rename(&kept, &parent, leaf)?;
            }
            return Ok(());
        }
        match look(&parent, leaf)? {
            Node::Missing => Ok(()),
            // It stays if somebody has put something into it.
            Node::Directory(_) if coming.from == Source::Staged => match parent.remove_dir(leaf) {
                Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(error.into()),
                _ => Ok(()),
            },
            _ => Ok(parent.rename(leaf, &self.directory, &source)?),
        }
    }

    fn unvacate(&self, number: usize, leaving: &Leaving) -> Result<(), FileError> {
        let name = Record::vacated_name(number);
        if !self.holds(&name)? {
            return Ok(());
        }
        let (parent, leaf) = leaving.path.split().ok_or(FileError::Root)?;
        let parent = self.tree.existing_directory(&parent)?;
        if leaving.end == End::Replaced && !matches!(look(&parent, leaf)?, Node::Missing) {
            return Ok(());
        }
        self.tree.faults.point(Step::Unvacate)?;
        Ok(rename_exclusive(&self.directory, &name, &parent, leaf)?)
    }

    fn holds(&self, name: &str) -> io::Result<bool> {
        Ok(!matches!(look(&self.directory, name)?, Node::Missing))
    }

    /// Makes what happened to names durable, in all directories in which something did.
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
        // One that has moved meanwhile is not found under its path.
        if directories.len() < parents.len() && flush_all(&self.directory).is_ok() {
            return;
        }
        flush_names(&self.directory);
        directories.iter().for_each(flush_names);
    }
}

fn source_name(number: usize, coming: &Coming) -> String {
    match coming.from {
        Source::Staged => Record::staged_name(number),
        Source::Vacated(number) => Record::vacated_name(number),
    }
}

/// Fails unless `name` is what is expected to leave.
fn require_same(directory: &Dir, name: &str, leaving: &Leaving) -> Result<(), FileError> {
    match look(directory, name)? {
        Node::File(metadata) if !leaving.is_directory && state(&metadata) == leaving.state => {
            Ok(())
        }
        Node::Directory(metadata) if leaving.is_directory && state(&metadata) == leaving.state => {
            Ok(())
        }
        Node::Link => Err(FileError::Link),
        _ => Err(FileError::NotFound),
    }
}

/// Goes through all of them and tells the first that failed.
fn first_error(all: impl Iterator<Item = Result<(), FileError>>) -> Result<(), FileError> {
    let mut first = Ok(());
    for next in all {
        first = first.and(next);
    }
    first
}

/// What stands in the way is the work of somebody else: everything was checked.
fn explain(error: FileError, path: &StorePath) -> FileError {
    match &error {
        FileError::Host(failure) if failure.kind() == io::ErrorKind::CrossesDevices => {
            FileError::MountPoint
        }
        FileError::Host(failure) => match failure.kind() {
            io::ErrorKind::AlreadyExists => blame(FileError::AlreadyExists, path),
            io::ErrorKind::NotFound => blame(FileError::NotFound, path),
            io::ErrorKind::DirectoryNotEmpty => blame(FileError::NotEmpty, path),
            _ => error,
        },
        _ => blame(error, path),
    }
}
