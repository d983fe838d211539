//! Walks the history of commits, newest first.

use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::commit::Commit;
use crate::error::Error;
use crate::id::Id;
use crate::repository::Repository;
use crate::tree;

/// Maximum number of commits that a call examines.
pub(crate) const COMMITS_MAX: usize = 50_000;

/// Commits that are still to be visited, newest first.
pub(crate) struct Queue<'r> {
    repository: &'r Repository,
    waiting: BinaryHeap<(i64, Id)>,
    commits: HashMap<Id, Commit>,
    known: HashSet<Id>,
}

impl<'r> Queue<'r> {
    pub(crate) fn new(repository: &'r Repository) -> Self {
        Self {
            repository,
            waiting: BinaryHeap::new(),
            commits: HashMap::new(),
            known: HashSet::new(),
        }
    }

    /// Adds a commit, unless it was added before.
    pub(crate) fn push(&mut self, id: Id) -> Result<(), Error> {
        if self.known.insert(id) {
            let commit = self.repository.commit(&id)?;
            self.waiting.push((commit.committed, id));
            self.commits.insert(id, commit);
        }
        Ok(())
    }

    /// Adds a commit, unless it is waiting. It may have been visited before: clocks differ, and a
    /// parent can be newer than its child.
    pub(crate) fn push_again(&mut self, id: Id) -> Result<(), Error> {
        if !self.commits.contains_key(&id) {
            self.known.remove(&id);
            self.push(id)?;
        }
        Ok(())
    }

    /// Treats a commit as visited.
    pub(crate) fn hide(&mut self, id: Id) {
        self.known.insert(id);
    }

    pub(crate) fn pop(&mut self) -> Option<Commit> {
        let (_, id) = self.waiting.pop()?;
        self.commits.remove(&id)
    }
}

/// Returns a commit and its ancestors.
pub(crate) fn ancestors(repository: &Repository, start: Id) -> Result<HashSet<Id>, Error> {
    let mut queue = Queue::new(repository);
    queue.push(start)?;
    while let Some(commit) = queue.pop() {
        for parent in commit.parents {
            queue.push(parent)?;
        }
        if queue.known.len() > COMMITS_MAX {
            break;
        }
    }
    Ok(queue.known)
}

/// Looks up one path in many trees.
pub(crate) struct PathHistory<'r> {
    repository: &'r Repository,
    path: String,
    /// Object at the path, by tree.
    found: HashMap<Id, Option<Id>>,
}

impl<'r> PathHistory<'r> {
    pub(crate) fn new(repository: &'r Repository, path: String) -> Self {
        Self { repository, path, found: HashMap::new() }
    }

    pub(crate) fn at(&mut self, tree: Id) -> Result<Option<Id>, Error> {
        if let Some(found) = self.found.get(&tree) {
            return Ok(*found);
        }
        let found = tree::find(&self.repository.objects, tree, &self.path)?.map(|entry| entry.id);
        self.found.insert(tree, found);
        Ok(found)
    }

    /// Returns true if a commit changes the path, and the parents that explain its state: if it is
    /// the same in one of them, only that one.
    pub(crate) fn step(&mut self, commit: &Commit) -> Result<(bool, Vec<Id>), Error> {
        let here = self.at(commit.tree)?;
        for parent in &commit.parents {
            let tree = self.repository.commit(parent)?.tree;
            if self.at(tree)? == here {
                return Ok((false, vec![*parent]));
            }
        }
        Ok((here.is_some() || !commit.parents.is_empty(), commit.parents.clone()))
    }
}
