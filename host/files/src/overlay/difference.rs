//! Computes the changes that a commit makes from the state of an overlay.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::file::FileNode;
use super::state::{CurrentState, OverlayState};
use crate::changes::{NewContent, RemovedPath, stage};
use crate::content::FileContent;
use crate::{Changes, EntryKind, StorePath};

/// Kind of change that a commit made to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The path did not exist before.
    Created,
    /// The content has changed.
    Changed,
    /// The path no longer exists.
    Deleted,
}

/// A path that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Path of the file or directory.
    pub path: StorePath,
    /// File or directory. A directory that was moved has one line for its old and one for its new
    /// path, and none for its contents.
    pub kind: EntryKind,
    /// Kind of change.
    pub what: ChangeKind,
    /// Current length of the file; 0 if it was deleted.
    pub bytes: u64,
}

/// The difference while it is being computed.
#[derive(Default)]
struct OverlayDiff {
    changes: Changes,
    report: Vec<ChangedFile>,
    /// Moves, each from the path in the base store to the new one.
    moves: BTreeMap<StorePath, StorePath>,
    /// Hidden paths that need no removal: they are moved, replaced by a write, or back where they
    /// were.
    preserved: BTreeSet<StorePath>,
}

impl OverlayDiff {
    fn report(&mut self, path: &StorePath, kind: EntryKind, what: ChangeKind, bytes: u64) {
        self.report.push(ChangedFile { path: path.clone(), kind, what, bytes });
    }
}

impl OverlayState {
    /// Takes all changes and leaves none.
    pub(super) fn take_changes(&mut self) -> (Changes, Vec<ChangedFile>) {
        let mut difference = self.difference(FileNode::take_content);
        (difference.changes.before, difference.changes.after) = self.reset();
        (difference.changes, difference.report)
    }

    /// Returns the changes that [`take_changes`](Self::take_changes) would report.
    pub(super) fn report(&self) -> Vec<ChangedFile> {
        self.difference(|_| FileContent::default()).report
    }

    /// Returns the changes without the content of files.
    pub(super) fn changes_without_content(&self) -> Changes {
        self.difference(|_| FileContent::default()).changes
    }

    /// Computes the changes. `content` provides the content of each file that was written.
    fn difference(&self, content: fn(&FileNode) -> FileContent) -> OverlayDiff {
        let mut difference = OverlayDiff::default();
        for (path, node) in &self.nodes {
            // A node below something that was removed is not visible.
            let Ok(natural) = self.base_path(path) else { continue };
            let is_in_place =
                node.now.origin().is_some_and(|origin| Some(origin) == natural.as_ref());
            if let (true, Some(natural)) = (is_in_place, &natural) {
                difference.preserved.insert(natural.clone());
            }
            match &node.now {
                CurrentState::Gone => {}
                CurrentState::File(file) if file.is_changed() => {
                    let replaces = self.replaced_by(
                        &mut difference,
                        path,
                        natural.as_ref(),
                        file,
                        is_in_place,
                    );
                    let what =
                        if replaces.is_some() { ChangeKind::Changed } else { ChangeKind::Created };
                    difference.report(path, EntryKind::File, what, file.bytes());
                    let origin = file.origin.as_ref().map(|origin| origin.path.clone());
                    let written = NewContent::File { content: content(file), origin, replaces };
                    difference.changes.filled.push((path.clone(), written));
                }
                CurrentState::File(_) | CurrentState::Directory { origin: Some(_), .. }
                    if is_in_place => {}
                CurrentState::File(file) => {
                    if let Some(origin) = &file.origin {
                        difference.moves.insert(origin.path.clone(), path.clone());
                        difference.report(path, EntryKind::File, ChangeKind::Created, file.bytes());
                        self.expect_free(&mut difference, natural.as_ref());
                    }
                }
                CurrentState::Directory { origin: Some(origin), .. } => {
                    difference.moves.insert(origin.clone(), path.clone());
                    difference.report(path, EntryKind::Directory, ChangeKind::Created, 0);
                    self.expect_free(&mut difference, natural.as_ref());
                }
                CurrentState::Directory { origin: None, .. } => {
                    difference.changes.filled.push((path.clone(), NewContent::Directory));
                    difference.report(path, EntryKind::Directory, ChangeKind::Created, 0);
                    self.expect_free(&mut difference, natural.as_ref());
                }
            }
        }
        self.vacate(&mut difference);
        difference.report.sort();
        difference
    }

    /// Returns the file of the base store that a changed file replaces.
    fn replaced_by(
        &self,
        difference: &mut OverlayDiff,
        path: &StorePath,
        natural: Option<&StorePath>,
        file: &FileNode,
        is_in_place: bool,
    ) -> Option<StorePath> {
        let replaces_hidden = natural.filter(|natural| {
            self.hidden.get(natural).is_some_and(|hidden| hidden.kind == EntryKind::File)
        });
        let mut replaces = None;
        if let (true, Some(natural), Some(origin)) = (is_in_place, natural, &file.origin) {
            replaces = Some(natural.clone());
            difference.changes.expected.push((natural.clone(), Some(origin.version)));
        } else if let Some(natural) = replaces_hidden {
            // Only if the written file ends up at exactly the path of the removed one.
            if natural == path {
                replaces = Some(natural.clone());
                difference.preserved.insert(natural.clone());
            }
        } else {
            self.expect_free(difference, natural);
        }
        replaces
    }

    /// Expects that nothing else has appeared at a path where the call saw nothing.
    fn expect_free(&self, difference: &mut OverlayDiff, natural: Option<&StorePath>) {
        if let Some(natural) = natural
            && !self.hidden.contains_key(natural)
        {
            difference.changes.expected.push((natural.clone(), self.first_seen(natural, None)));
        }
    }

    /// Adds the changes for hidden paths: removals, and moves to their new paths.
    fn vacate(&self, difference: &mut OverlayDiff) {
        let moves = std::mem::take(&mut difference.moves);
        let mut vacated: Vec<RemovedPath> = Vec::new();
        for (natural, hidden) in &self.hidden {
            difference.changes.expected.push((natural.clone(), hidden.version));
            let is_preserved = difference.preserved.contains(natural);
            if !is_preserved {
                difference.report(natural, hidden.kind, ChangeKind::Deleted, 0);
            }
            if is_preserved || moves.contains_key(natural) {
                continue;
            }
            vacated.push(match hidden.kind {
                EntryKind::File => RemovedPath::File(natural.clone()),
                EntryKind::Directory => RemovedPath::Directory(natural.clone()),
            });
        }
        let is_direct = moves.len() == 1 && is_direct(&moves, &vacated, &difference.changes.filled);
        for (from, to) in moves {
            let from = if is_direct {
                from
            } else {
                let stage = stage();
                vacated.push(RemovedPath::Staged { from, stage: stage.clone() });
                stage
            };
            difference.changes.filled.push((to, NewContent::Moved { from }));
        }
        vacated.sort_by_key(|change| std::cmp::Reverse(change.path().depth()));
        difference.changes.vacated = vacated;
        // A path sorts after every path above it.
        difference.changes.filled.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
}

/// Returns whether the single move can be made in one step: no directory above its source is
/// removed before, and nothing else is put at its source.
fn is_direct(
    moves: &BTreeMap<StorePath, StorePath>,
    vacated: &[RemovedPath],
    filled: &[(StorePath, NewContent)],
) -> bool {
    moves.keys().all(|from| {
        let goes_away =
            |change: &RemovedPath| matches!(change, RemovedPath::Directory(path) if from.below(path).is_some());
        !vacated.iter().any(goes_away) && !filled.iter().any(|(path, _)| path == from)
    })
}
