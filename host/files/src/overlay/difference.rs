//! From the state of an overlay to the changes that its commit makes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::file::FileNode;
use super::state::{Now, State};
use crate::changes::{Filled, Vacated, stage};
use crate::content::Content;
use crate::{Changes, EntryKind, StorePath};

/// What a commit did to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ChangeKind {
    /// It was not there before.
    Created,
    /// It has another content.
    Changed,
    /// It is no longer there.
    Deleted,
}

/// A path that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct ChangedFile {
    /// Where.
    pub path: StorePath,
    /// File or directory. For a directory that was moved there is one line for its old and one for
    /// its new path, and none for what is in it.
    pub kind: EntryKind,
    /// What happened.
    pub what: ChangeKind,
    /// The length that a file has by now; 0 for what was deleted.
    pub bytes: u64,
}

/// The difference as it is put together.
#[derive(Default)]
struct Difference {
    changes: Changes,
    report: Vec<ChangedFile>,
    /// From the path below to the new one.
    moves: BTreeMap<StorePath, StorePath>,
    /// What is hidden but needs no removal: it moves, it is replaced by a write, or it is where it
    /// was.
    kept: BTreeSet<StorePath>,
}

impl Difference {
    fn report(&mut self, path: &StorePath, kind: EntryKind, what: ChangeKind, bytes: u64) {
        self.report.push(ChangedFile { path: path.clone(), kind, what, bytes });
    }
}

impl State {
    /// All changes. Afterwards there are none.
    pub(super) fn take_changes(&mut self) -> (Changes, Vec<ChangedFile>) {
        let mut difference = self.difference(FileNode::take_content);
        (difference.changes.before, difference.changes.after) = self.reset();
        (difference.changes, difference.report)
    }

    /// What [`take_changes`](Self::take_changes) would report.
    pub(super) fn report(&self) -> Vec<ChangedFile> {
        self.difference(|_| Content::default()).report
    }

    /// The changes, with the content that `content` gives of each file that was written.
    fn difference(&self, content: fn(&FileNode) -> Content) -> Difference {
        let mut difference = Difference::default();
        for (path, node) in &self.nodes {
            // A node below something that is gone shows nothing.
            let Ok(natural) = self.natural(path) else { continue };
            let is_in_place =
                node.now.origin().is_some_and(|origin| Some(origin) == natural.as_ref());
            if let (true, Some(natural)) = (is_in_place, &natural) {
                difference.kept.insert(natural.clone());
            }
            match &node.now {
                Now::Gone => {}
                Now::File(file) if file.is_changed() => {
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
                    let written = Filled::File { content: content(file), origin, replaces };
                    difference.changes.filled.push((path.clone(), written));
                }
                Now::File(_) | Now::Directory { origin: Some(_), .. } if is_in_place => {}
                Now::File(file) => {
                    if let Some(origin) = &file.origin {
                        difference.moves.insert(origin.path.clone(), path.clone());
                        difference.report(path, EntryKind::File, ChangeKind::Created, file.bytes());
                        self.expect_free(&mut difference, natural.as_ref());
                    }
                }
                Now::Directory { origin: Some(origin), .. } => {
                    difference.moves.insert(origin.clone(), path.clone());
                    difference.report(path, EntryKind::Directory, ChangeKind::Created, 0);
                    self.expect_free(&mut difference, natural.as_ref());
                }
                Now::Directory { origin: None, .. } => {
                    difference.changes.filled.push((path.clone(), Filled::Directory));
                    difference.report(path, EntryKind::Directory, ChangeKind::Created, 0);
                    self.expect_free(&mut difference, natural.as_ref());
                }
            }
        }
        self.vacate(&mut difference);
        difference.report.sort();
        difference
    }

    /// The file of the store whose place a changed file takes.
    fn replaced_by(
        &self,
        difference: &mut Difference,
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
            // Only where the file that is written will be at the very path of the one that is gone.
            if natural == path {
                replaces = Some(natural.clone());
                difference.kept.insert(natural.clone());
            }
        } else {
            self.expect_free(difference, natural);
        }
        replaces
    }

    /// Nobody else may have put something where the call saw nothing.
    fn expect_free(&self, difference: &mut Difference, natural: Option<&StorePath>) {
        if let Some(natural) = natural
            && !self.hidden.contains_key(natural)
        {
            difference.changes.expected.push((natural.clone(), self.first_seen(natural, None)));
        }
    }

    /// What is hidden goes: removed, or moved to where it is wanted.
    fn vacate(&self, difference: &mut Difference) {
        let moves = std::mem::take(&mut difference.moves);
        let mut vacated: Vec<Vacated> = Vec::new();
        for (natural, hidden) in &self.hidden {
            difference.changes.expected.push((natural.clone(), hidden.version));
            let is_kept = difference.kept.contains(natural);
            if !is_kept {
                difference.report(natural, hidden.kind, ChangeKind::Deleted, 0);
            }
            if is_kept || moves.contains_key(natural) {
                continue;
            }
            vacated.push(match hidden.kind {
                EntryKind::File => Vacated::File(natural.clone()),
                EntryKind::Directory => Vacated::Directory(natural.clone()),
            });
        }
        let is_direct = moves.len() == 1 && is_direct(&moves, &vacated, &difference.changes.filled);
        for (from, to) in moves {
            let from = if is_direct {
                from
            } else {
                let stage = stage();
                vacated.push(Vacated::Staged { from, stage: stage.clone() });
                stage
            };
            difference.changes.filled.push((to, Filled::Moved { from }));
        }
        vacated.sort_by_key(|change| std::cmp::Reverse(change.path().depth()));
        difference.changes.vacated = vacated;
        // A path sorts after every path above it.
        difference.changes.filled.sort_by(|(a, _), (b, _)| a.cmp(b));
    }
}

/// Whether the one thing that moves can do so at once: no directory above it goes away before, and
/// nothing else comes to the path that it leaves.
fn is_direct(
    moves: &BTreeMap<StorePath, StorePath>,
    vacated: &[Vacated],
    filled: &[(StorePath, Filled)],
) -> bool {
    moves.keys().all(|from| {
        let goes_away =
            |change: &Vacated| matches!(change, Vacated::Directory(path) if from.below(path).is_some());
        !vacated.iter().any(goes_away) && !filled.iter().any(|(path, _)| path == from)
    })
}
