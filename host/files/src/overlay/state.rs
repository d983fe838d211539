//! Changes of a call, and the resulting view of its store.
//!
//! Changes are stored as a tree of names over the tree of the base store. A name without a node
//! shows the base store. A directory that was moved keeps its path in the base store (its origin),
//! so that everything in it appears at the new path and nothing is copied. The path of something in
//! the base store is called `natural` in this module; it stays the same for as long as the overlay
//! lives.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::budget::{Budget, Charge};
use super::file::{FileNode, identity_of};
use crate::quota::UsageChange;
use crate::{EntryKind, FileError, FileStore, Quota, Room, Stat, StorePath, Usage, Version};

/// Memory for a name in addition to its length, in bytes: the node, its map entry, the file.
const NODE_BYTES: u64 = 512;
/// Maximum memory that a move or a deletion takes: six names of the maximum length.
const SPARE_BYTES: u64 = 6 * (4096 + NODE_BYTES);
/// Maximum number of unchanged paths whose first-seen version is tracked for conflict detection.
const SEEN_MAX: usize = 65_536;
/// Memory for tracking one of them in addition to its length, in bytes.
const SEEN_BYTES: u64 = 128;

pub(super) struct OverlayState {
    pub(super) base: Arc<dyn FileStore>,
    pub(super) budget: Budget,
    pub(super) nodes: BTreeMap<StorePath, OverlayNode>,
    /// Entries of the base store that are no longer at their natural path.
    pub(super) hidden: BTreeMap<StorePath, HiddenNode>,
    /// Version of each path of the base store when the call first looked it up, `None` if nothing
    /// was there.
    seen: HashMap<StorePath, SeenVersions>,
    /// Room including the changes of the call; `None` before the first one.
    pub(super) room: Option<Room>,
    /// Usage of the base store at the first change.
    usage_before: Usage,
    numbers: u64,
    pub(super) opens: u32,
    /// Path of the first change that was refused because another call had committed first.
    pub(super) conflict: Option<StorePath>,
}

struct SeenVersions {
    version: Option<Version>,
    _charge: Charge,
}

/// An entry of the overlay that replaces the one of the base store at its path.
#[derive(Clone)]
pub(super) struct OverlayNode {
    pub(super) now: CurrentState,
    /// True if it only exists because the file is or was open: it can be dropped once the file is
    /// closed and unchanged.
    pub(super) is_tracked: bool,
    _charge: Arc<Charge>,
}

#[derive(Clone)]
pub(super) enum CurrentState {
    Gone,
    File(Arc<FileNode>),
    Directory {
        /// Its path in the base store, if it has one.
        origin: Option<StorePath>,
        number: u64,
    },
}

/// An entry of the base store that was deleted or moved.
#[derive(Clone)]
pub(super) struct HiddenNode {
    pub(super) kind: EntryKind,
    pub(super) version: Option<Version>,
    _charge: Arc<Charge>,
}

/// Result of looking up a path.
pub(super) enum PathState {
    Missing {
        /// Path at which it would be in the base store, if its directory exists there.
        natural: Option<StorePath>,
    },
    BelowFile,
    /// Occupied by something that the base store does not show.
    Special,
    File {
        node: Arc<FileNode>,
        natural: Option<StorePath>,
    },
    BaseFile {
        natural: StorePath,
        stat: Stat,
    },
    Directory {
        /// Its path in the base store, if it has one.
        base: Option<StorePath>,
        natural: Option<StorePath>,
        stat: Stat,
        identity: u64,
    },
}

impl PathState {
    /// Returns the version of the entry; `None` if nothing is there.
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::File { node, .. } => Some(node.stat().version),
            Self::BaseFile { stat, .. } | Self::Directory { stat, .. } => Some(stat.version),
            Self::Missing { .. } | Self::BelowFile | Self::Special => None,
        }
    }

    fn base_path(&self) -> Option<&StorePath> {
        match self {
            Self::BelowFile | Self::Special => None,
            Self::BaseFile { natural, .. } => Some(natural),
            Self::Missing { natural }
            | Self::File { natural, .. }
            | Self::Directory { natural, .. } => natural.as_ref(),
        }
    }
}

impl OverlayState {
    pub(super) fn new(base: Arc<dyn FileStore>, budget: Budget) -> Self {
        Self {
            base,
            budget,
            nodes: BTreeMap::new(),
            hidden: BTreeMap::new(),
            seen: HashMap::new(),
            room: None,
            usage_before: Usage::default(),
            numbers: 0,
            opens: 0,
            conflict: None,
        }
    }

    /// Records a change that was refused because another call had committed first.
    pub(super) fn note_conflict<T>(
        &mut self,
        changed: Result<T, FileError>,
    ) -> Result<T, FileError> {
        if let (Err(FileError::Conflict { path }), None) = (&changed, &self.conflict) {
            self.conflict = Some(path.clone());
        }
        changed
    }

    /// Drops all changes and returns the usage of the store before and after them.
    pub(super) fn reset(&mut self) -> (Usage, Usage) {
        let after = self.room.map_or(self.usage_before, |room| room.usage);
        let before = self.usage_before;
        *self = Self::new(Arc::clone(&self.base), self.budget.clone());
        (before, after)
    }

    pub(super) async fn room(&mut self) -> Result<Room, FileError> {
        if let Some(room) = self.room {
            return Ok(room);
        }
        let room = self.base.room().await?;
        self.usage_before = room.usage;
        Ok(*self.room.insert(room))
    }

    pub(super) async fn quota(&mut self) -> Result<Quota, FileError> {
        Ok(self.room().await?.quota)
    }

    /// Returns the usage after `change`, if the quota admits it.
    pub(super) async fn admit(&mut self, change: UsageChange) -> Result<Usage, FileError> {
        let room = self.room().await?;
        Ok(room.quota.admit(room.usage, change)?)
    }

    pub(super) fn enter(&mut self, change: impl FnOnce(Usage) -> Usage) {
        if let Some(room) = &mut self.room {
            room.usage = change(room.usage);
        }
    }

    pub(super) fn require_writable(&self) -> Result<(), FileError> {
        if self.base.is_read_only() { Err(FileError::ReadOnly) } else { Ok(()) }
    }

    pub(super) fn number(&mut self) -> u64 {
        self.numbers = self.numbers.saturating_add(1);
        self.numbers
    }

    /// Looks up `path`. The base store refuses links.
    pub(super) async fn lookup(&mut self, path: &StorePath) -> Result<PathState, FileError> {
        match self.lookup_parents(path) {
            Ok(found) => Ok(found),
            Err(natural) => {
                let probed = self.base.probe(&natural).await;
                self.found_below(natural, probed)
            }
        }
    }

    /// Looks up `path` in the overlay. If the answer depends on the base store, returns the path to
    /// look up there as the error.
    pub(super) fn lookup_parents(&self, path: &StorePath) -> Result<PathState, StorePath> {
        if path.is_root() {
            let root = StorePath::ROOT;
            let identity = identity_of(&root);
            return Ok(PathState::Directory {
                base: Some(root),
                natural: None,
                stat: Stat::ROOT,
                identity,
            });
        }
        let natural = match self.base_path(path) {
            Ok(natural) => natural,
            Err(NoParent::File) => return Ok(PathState::BelowFile),
            Err(NoParent::Missing) => return Ok(PathState::Missing { natural: None }),
        };
        match self.nodes.get(path).map(|node| node.now.clone()) {
            Some(CurrentState::Gone) => Ok(PathState::Missing { natural }),
            Some(CurrentState::File(node)) => Ok(PathState::File { node, natural }),
            Some(CurrentState::Directory { origin, number }) => {
                let identity = origin.as_ref().map_or(number, identity_of);
                let stat = Stat::directory(Version(identity));
                Ok(PathState::Directory { base: origin, natural, stat, identity })
            }
            None => match natural {
                Some(natural) => Err(natural),
                None => Ok(PathState::Missing { natural }),
            },
        }
    }

    /// Converts the base store's answer for `natural`, which the call has now seen.
    pub(super) fn found_below(
        &mut self,
        natural: StorePath,
        probed: Result<Option<Stat>, FileError>,
    ) -> Result<PathState, FileError> {
        let found = match probed {
            Err(FileError::Special) => return Ok(PathState::Special),
            found => found?,
        };
        let version = found.as_ref().map(|stat| stat.version);
        self.remember(&natural, version);
        Ok(match found {
            None => PathState::Missing { natural: Some(natural) },
            Some(stat) if stat.kind == EntryKind::File => PathState::BaseFile { natural, stat },
            Some(stat) => PathState::Directory {
                base: Some(natural.clone()),
                identity: identity_of(&natural),
                natural: Some(natural),
                stat,
            },
        })
    }

    /// Records the first-seen version of a path. If there is no room for that, the version at the
    /// time of the change is used.
    fn remember(&mut self, natural: &StorePath, version: Option<Version>) {
        if self.seen.len() >= SEEN_MAX || self.seen.contains_key(natural) {
            return;
        }
        if let Ok(charge) =
            self.budget.take(SEEN_BYTES.saturating_add(length(natural.as_str().len())))
        {
            self.seen.insert(natural.clone(), SeenVersions { version, _charge: charge });
        }
    }

    /// Returns the path in the base store that corresponds to `path`; `None` if its directory is
    /// new.
    pub(super) fn base_path(&self, path: &StorePath) -> Result<Option<StorePath>, NoParent> {
        // Most calls read a lot before their first change.
        if self.nodes.is_empty() {
            return Ok((!path.is_root()).then(|| path.clone()));
        }
        let mut above: Vec<StorePath> = path.ancestors().collect();
        above.reverse();
        let mut nearest = (StorePath::ROOT, Some(StorePath::ROOT));
        for directory in above {
            match self.nodes.get(&directory).map(|node| &node.now) {
                None => {}
                Some(CurrentState::Gone) => return Err(NoParent::Missing),
                Some(CurrentState::File(_)) => return Err(NoParent::File),
                Some(CurrentState::Directory { origin, .. }) => {
                    nearest = (directory.clone(), origin.clone())
                }
            }
        }
        let (directory, base) = nearest;
        Ok(base.and_then(|base| Some(base.join(path.below(&directory)?))))
    }

    /// Returns the version in which the call first saw `natural`.
    pub(super) fn first_seen(&self, natural: &StorePath, now: Option<Version>) -> Option<Version> {
        self.seen.get(natural).map_or(now, |seen| seen.version)
    }

    /// Reserves the memory that a new name needs.
    pub(super) fn charge_name(&self, path: &StorePath) -> Result<Charge, FileError> {
        self.budget.take(NODE_BYTES.saturating_add(length(path.as_str().len())))
    }

    /// Fails unless there is memory for any change of two names, so that no change fails halfway.
    pub(super) fn require_budget(&self) -> Result<(), FileError> {
        self.budget.take(SPARE_BYTES).map(drop)
    }

    pub(super) fn insert(&mut self, path: &StorePath, now: CurrentState, charge: Charge) {
        self.nodes.insert(
            path.clone(),
            OverlayNode { now, is_tracked: false, _charge: Arc::new(charge) },
        );
    }

    /// Records that the entry at `natural` of the base store is no longer there.
    pub(super) fn hide(
        &mut self,
        natural: &StorePath,
        kind: EntryKind,
        version: Version,
    ) -> Result<(), FileError> {
        let charge = self.charge_name(natural)?;
        let version = self.first_seen(natural, Some(version));
        self.hidden
            .insert(natural.clone(), HiddenNode { kind, version, _charge: Arc::new(charge) });
        Ok(())
    }

    /// Removes what was found at `path`, with everything below it.
    pub(super) fn remove_path(
        &mut self,
        path: &StorePath,
        found: &PathState,
    ) -> Result<(), FileError> {
        match found {
            PathState::BaseFile { natural, stat } => {
                self.hide(natural, EntryKind::File, stat.version)?
            }
            PathState::File { node, natural } => {
                if let (Some(origin), Some(natural)) = (&node.origin, natural)
                    && origin.path == *natural
                {
                    self.hide(natural, EntryKind::File, origin.version)?;
                }
            }
            PathState::Directory { base: Some(base), natural: Some(natural), stat, .. }
                if base == natural =>
            {
                self.hide(natural, EntryKind::Directory, stat.version)?;
            }
            _ => {}
        }
        self.drop_below(path);
        self.nodes.remove(path);
        if found.base_path().is_some_and(|natural| self.hidden.contains_key(natural)) {
            let charge = self.charge_name(path)?;
            self.insert(path, CurrentState::Gone, charge);
        }
        Ok(())
    }

    pub(super) fn keys_below(&self, path: &StorePath) -> Vec<StorePath> {
        let from = (Bound::Excluded(path.clone()), Bound::Unbounded);
        self.nodes
            .range(from)
            .map(|(key, _)| key)
            .take_while(|key| key.as_str().starts_with(path.as_str()))
            .filter(|key| key.below(path).is_some())
            .cloned()
            .collect()
    }

    pub(super) fn drop_below(&mut self, path: &StorePath) {
        for key in self.keys_below(path) {
            self.nodes.remove(&key);
        }
    }

    /// Takes the node at `path` out to put it elsewhere.
    pub(super) fn take_node(&mut self, path: &StorePath) -> Option<OverlayNode> {
        self.nodes.remove(path)
    }

    pub(super) fn put_node(&mut self, path: &StorePath, node: OverlayNode) {
        self.nodes.insert(path.clone(), node);
    }

    /// Creates a node for what was found at `path`, so that it can be moved: from now on the node
    /// keeps its origin regardless of its path.
    pub(super) fn movable(
        &mut self,
        path: &StorePath,
        found: &PathState,
    ) -> Result<CurrentState, FileError> {
        Ok(match found {
            PathState::File { node, .. } => CurrentState::File(Arc::clone(node)),
            PathState::BaseFile { natural, stat } => {
                CurrentState::File(self.track(path, natural.clone(), stat)?)
            }
            PathState::Directory { base, .. } => {
                let number = match self.nodes.get(path).map(|node| &node.now) {
                    Some(CurrentState::Directory { number, .. }) => *number,
                    _ => self.number(),
                };
                CurrentState::Directory { origin: base.clone(), number }
            }
            PathState::Missing { .. } | PathState::BelowFile | PathState::Special => {
                return Err(FileError::NotFound);
            }
        })
    }
}

/// Reason why a path cannot exist.
pub(super) enum NoParent {
    /// Something above it is a file.
    File,
    /// Something above it is missing.
    Missing,
}

pub(super) fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
