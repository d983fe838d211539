//! What a call has changed, and what its store looks like with that.
//!
//! Changes are kept as a tree of names over the tree of the store below. A name without a node
//! shows what is below. A directory that was moved remembers what it is in the store below (its
//! origin), so that everything in it shows at the new place and nothing is copied. Paths of the
//! store below are called natural here and stay the same for as long as the overlay lives.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::budget::{Budget, Charge};
use super::file::{FileNode, identity_of};
use crate::quota::Change;
use crate::{EntryKind, FileError, FileStore, Quota, Room, Stat, StorePath, Usage, Version};

/// What a name costs beside its length, in bytes: the node, its place in the map, the file.
const NODE_BYTES: u64 = 512;
/// What moving or deleting may cost: six names of the greatest length.
const SPARE_BYTES: u64 = 6 * (4096 + NODE_BYTES);
/// Of how many paths it is remembered which state the call saw first, beyond those that it changes.
const SEEN_MAX: usize = 65_536;
/// What remembering one of them costs beside its length, in bytes.
const SEEN_BYTES: u64 = 128;

pub(super) struct State {
    pub(super) base: Arc<dyn FileStore>,
    pub(super) budget: Budget,
    pub(super) nodes: BTreeMap<StorePath, Node>,
    /// What is in the store below and no longer at its natural path.
    pub(super) hidden: BTreeMap<StorePath, Hidden>,
    /// The state of each path below when the call first looked at it, `None` if there was nothing.
    seen: HashMap<StorePath, Seen>,
    /// With the changes of the call; `None` before the first one.
    pub(super) room: Option<Room>,
    /// What the store below held at the first change.
    usage_before: Usage,
    numbers: u64,
    pub(super) opens: u32,
    /// The path of the first change that was refused because another call had committed first.
    pub(super) conflict: Option<StorePath>,
}

struct Seen {
    version: Option<Version>,
    _charge: Charge,
}

/// What is at a path of the overlay in place of what is below.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) now: Now,
    /// Only there because the file is or was open: it can go when it is closed and unchanged.
    pub(super) is_tracked: bool,
    _charge: Arc<Charge>,
}

#[derive(Clone)]
pub(super) enum Now {
    Gone,
    File(Arc<FileNode>),
    Directory {
        /// What it is in the store below, if anything.
        origin: Option<StorePath>,
        number: u64,
    },
}

/// Something of the store below that was deleted or moved.
#[derive(Clone)]
pub(super) struct Hidden {
    pub(super) kind: EntryKind,
    pub(super) version: Option<Version>,
    _charge: Arc<Charge>,
}

/// What a path leads to.
pub(super) enum Found {
    Missing {
        /// Its place in the store below, if its directory has one.
        natural: Option<StorePath>,
    },
    BelowFile,
    /// Taken by something that the store below does not show.
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
        /// What it is in the store below, if anything.
        base: Option<StorePath>,
        natural: Option<StorePath>,
        stat: Stat,
        identity: u64,
    },
}

impl Found {
    /// The state that a path is in; `None` if nothing is there.
    pub(super) fn version(&self) -> Option<Version> {
        match self {
            Self::File { node, .. } => Some(node.stat().version),
            Self::BaseFile { stat, .. } | Self::Directory { stat, .. } => Some(stat.version),
            Self::Missing { .. } | Self::BelowFile | Self::Special => None,
        }
    }

    fn natural(&self) -> Option<&StorePath> {
        match self {
            Self::BelowFile | Self::Special => None,
            Self::BaseFile { natural, .. } => Some(natural),
            Self::Missing { natural }
            | Self::File { natural, .. }
            | Self::Directory { natural, .. } => natural.as_ref(),
        }
    }
}

impl State {
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

    /// Remembers that a change of the caller was refused because another call had committed first.
    pub(super) fn note_conflict<T>(
        &mut self,
        changed: Result<T, FileError>,
    ) -> Result<T, FileError> {
        if let (Err(FileError::Conflict { path }), None) = (&changed, &self.conflict) {
            self.conflict = Some(path.clone());
        }
        changed
    }

    /// Forgets every change and gives what the store held before and after them.
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

    /// The usage after `change`, if the quota admits it.
    pub(super) async fn admit(&mut self, change: Change) -> Result<Usage, FileError> {
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

    /// What is at `path`, links refused by the store below.
    pub(super) async fn look(&mut self, path: &StorePath) -> Result<Found, FileError> {
        match self.look_above(path) {
            Ok(found) => Ok(found),
            Err(natural) => {
                let probed = self.base.probe(&natural).await;
                self.found_below(natural, probed)
            }
        }
    }

    /// What is at `path`, or, as the error, where the store below may have it.
    pub(super) fn look_above(&self, path: &StorePath) -> Result<Found, StorePath> {
        if path.is_root() {
            let root = StorePath::ROOT;
            let identity = identity_of(&root);
            return Ok(Found::Directory {
                base: Some(root),
                natural: None,
                stat: Stat::ROOT,
                identity,
            });
        }
        let natural = match self.natural(path) {
            Ok(natural) => natural,
            Err(IsBelowFile(true)) => return Ok(Found::BelowFile),
            Err(IsBelowFile(false)) => return Ok(Found::Missing { natural: None }),
        };
        match self.nodes.get(path).map(|node| node.now.clone()) {
            Some(Now::Gone) => Ok(Found::Missing { natural }),
            Some(Now::File(node)) => Ok(Found::File { node, natural }),
            Some(Now::Directory { origin, number }) => {
                let identity = origin.as_ref().map_or(number, identity_of);
                let stat = Stat::directory(Version(identity));
                Ok(Found::Directory { base: origin, natural, stat, identity })
            }
            None => match natural {
                Some(natural) => Err(natural),
                None => Ok(Found::Missing { natural }),
            },
        }
    }

    /// What the store below said of `natural`, which the call has now seen.
    pub(super) fn found_below(
        &mut self,
        natural: StorePath,
        probed: Result<Option<Stat>, FileError>,
    ) -> Result<Found, FileError> {
        let found = match probed {
            Err(FileError::Special) => return Ok(Found::Special),
            found => found?,
        };
        let version = found.as_ref().map(|stat| stat.version);
        self.remember(&natural, version);
        Ok(match found {
            None => Found::Missing { natural: Some(natural) },
            Some(stat) if stat.kind == EntryKind::File => Found::BaseFile { natural, stat },
            Some(stat) => Found::Directory {
                base: Some(natural.clone()),
                identity: identity_of(&natural),
                natural: Some(natural),
                stat,
            },
        })
    }

    /// Keeps the first state of a path in mind. Where there is no room for that, the state at the
    /// change counts.
    fn remember(&mut self, natural: &StorePath, version: Option<Version>) {
        if self.seen.len() >= SEEN_MAX || self.seen.contains_key(natural) {
            return;
        }
        if let Ok(charge) =
            self.budget.take(SEEN_BYTES.saturating_add(length(natural.as_str().len())))
        {
            self.seen.insert(natural.clone(), Seen { version, _charge: charge });
        }
    }

    /// The place of `path` in the store below; `None` if its directory is new.
    pub(super) fn natural(&self, path: &StorePath) -> Result<Option<StorePath>, IsBelowFile> {
        // Most calls look at much before they change anything.
        if self.nodes.is_empty() {
            return Ok((!path.is_root()).then(|| path.clone()));
        }
        let mut above: Vec<StorePath> = path.ancestors().collect();
        above.reverse();
        let mut nearest = (StorePath::ROOT, Some(StorePath::ROOT));
        for directory in above {
            match self.nodes.get(&directory).map(|node| &node.now) {
                None => {}
                Some(Now::Gone) => return Err(IsBelowFile(false)),
                Some(Now::File(_)) => return Err(IsBelowFile(true)),
                Some(Now::Directory { origin, .. }) => {
                    nearest = (directory.clone(), origin.clone())
                }
            }
        }
        let (directory, base) = nearest;
        Ok(base.and_then(|base| Some(base.join(path.below(&directory)?))))
    }

    /// The state in which the call first saw what is at `natural`.
    pub(super) fn first_seen(&self, natural: &StorePath, now: Option<Version>) -> Option<Version> {
        self.seen.get(natural).map_or(now, |seen| seen.version)
    }

    /// Takes the memory that a new name needs.
    pub(super) fn charge_name(&self, path: &StorePath) -> Result<Charge, FileError> {
        self.budget.take(NODE_BYTES.saturating_add(length(path.as_str().len())))
    }

    /// Fails unless there is memory for any change of two names, so that none fails half-way.
    pub(super) fn require_spare(&self) -> Result<(), FileError> {
        self.budget.take(SPARE_BYTES).map(drop)
    }

    pub(super) fn insert(&mut self, path: &StorePath, now: Now, charge: Charge) {
        self.nodes.insert(path.clone(), Node { now, is_tracked: false, _charge: Arc::new(charge) });
    }

    /// Notes that what the store below has at `natural` is not there any more.
    pub(super) fn hide(
        &mut self,
        natural: &StorePath,
        kind: EntryKind,
        version: Version,
    ) -> Result<(), FileError> {
        let charge = self.charge_name(natural)?;
        let version = self.first_seen(natural, Some(version));
        self.hidden.insert(natural.clone(), Hidden { kind, version, _charge: Arc::new(charge) });
        Ok(())
    }

    /// Takes what was found at `path` away, with everything below it.
    pub(super) fn vanish(&mut self, path: &StorePath, found: &Found) -> Result<(), FileError> {
        match found {
            Found::BaseFile { natural, stat } => {
                self.hide(natural, EntryKind::File, stat.version)?
            }
            Found::File { node, natural } => {
                if let (Some(origin), Some(natural)) = (&node.origin, natural)
                    && origin.path == *natural
                {
                    self.hide(natural, EntryKind::File, origin.version)?;
                }
            }
            Found::Directory { base: Some(base), natural: Some(natural), stat, .. }
                if base == natural =>
            {
                self.hide(natural, EntryKind::Directory, stat.version)?;
            }
            _ => {}
        }
        self.drop_below(path);
        self.nodes.remove(path);
        if found.natural().is_some_and(|natural| self.hidden.contains_key(natural)) {
            let charge = self.charge_name(path)?;
            self.insert(path, Now::Gone, charge);
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
    pub(super) fn take_node(&mut self, path: &StorePath) -> Option<Node> {
        self.nodes.remove(path)
    }

    pub(super) fn put_node(&mut self, path: &StorePath, node: Node) {
        self.nodes.insert(path.clone(), node);
    }

    /// The node for what was found at `path`, to be moved: from here on it stands for itself and
    /// not for its place.
    pub(super) fn movable(&mut self, path: &StorePath, found: &Found) -> Result<Now, FileError> {
        Ok(match found {
            Found::File { node, .. } => Now::File(Arc::clone(node)),
            Found::BaseFile { natural, stat } => {
                Now::File(self.track(path, natural.clone(), stat)?)
            }
            Found::Directory { base, .. } => {
                let number = match self.nodes.get(path).map(|node| &node.now) {
                    Some(Now::Directory { number, .. }) => *number,
                    _ => self.number(),
                };
                Now::Directory { origin: base.clone(), number }
            }
            Found::Missing { .. } | Found::BelowFile | Found::Special => {
                return Err(FileError::NotFound);
            }
        })
    }
}

/// Why a path has no place: something above it is a file, or is not there.
pub(super) struct IsBelowFile(bool);

pub(super) fn length(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
