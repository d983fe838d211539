//! Creates, lists, removes and renames directories, in the overlay only.

use super::budget::Charge;
use super::state::{CurrentState, OverlayState, PathState, length};
use crate::quota::UsageChange;
use crate::{EntryKind, FileError, Listing, ListingEntry, MadeDirectory, Scope, StorePath};

/// Maximum number of directories that one listing visits if changes and the base store are mixed.
const DIRECTORIES_LISTED_MAX: usize = 100_000;

impl OverlayState {
    pub(super) async fn create_directory(
        &mut self,
        path: &StorePath,
    ) -> Result<MadeDirectory, FileError> {
        self.require_writable()?;
        let mut missing = self.missing_parents(path).await?;
        match self.lookup(path).await? {
            PathState::Directory { .. } => return Ok(MadeDirectory::Existed),
            PathState::File { .. } | PathState::BaseFile { .. } | PathState::Special => {
                return Err(FileError::IsFile);
            }
            PathState::Missing { .. } | PathState::BelowFile => missing.push(path.clone()),
        }
        self.quota().await?.check_depth(path.depth())?;
        let usage = self
            .admit(UsageChange { entries_added: length(missing.len()), ..UsageChange::default() })
            .await?;
        let charges = self.charge_names(&missing)?;
        self.insert_directories(missing, charges);
        self.enter(|_| usage);
        Ok(MadeDirectory::Created)
    }

    pub(super) fn charge_names(&self, paths: &[StorePath]) -> Result<Vec<Charge>, FileError> {
        paths.iter().map(|path| self.charge_name(path)).collect()
    }

    pub(super) fn insert_directories(&mut self, paths: Vec<StorePath>, charges: Vec<Charge>) {
        let mut names: Vec<_> = paths.into_iter().zip(charges).collect();
        // Top-down, because the previous contents of a directory with the same name are dropped.
        names.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (path, charge) in names {
            let number = self.number();
            self.drop_below(&path);
            self.insert(&path, CurrentState::Directory { origin: None, number }, charge);
        }
    }

    /// Returns the directories above `path` that do not exist.
    pub(super) async fn missing_parents(
        &mut self,
        path: &StorePath,
    ) -> Result<Vec<StorePath>, FileError> {
        let mut missing = Vec::new();
        for above in path.ancestors() {
            match self.lookup(&above).await? {
                PathState::Missing { .. } | PathState::BelowFile => missing.push(above),
                PathState::File { .. } | PathState::BaseFile { .. } | PathState::Special => {
                    return Err(FileError::ParentIsFile);
                }
                // The parent of a directory is a directory.
                PathState::Directory { .. } => break,
            }
        }
        Ok(missing)
    }

    pub(super) async fn list(
        &mut self,
        directory: &StorePath,
        scope: Scope,
    ) -> Result<Listing, FileError> {
        let PathState::Directory { base, .. } = self.lookup(directory).await? else {
            return Ok(Listing::default());
        };
        let is_unchanged = self.keys_below(directory).is_empty();
        if let (true, Some(base)) = (is_unchanged, &base) {
            return self.base.list(base, scope).await;
        }
        let (mut pending, mut listed) = (vec![directory.clone()], 0_usize);
        let mut whole = Listing::default();
        while let Some(here) = pending.pop() {
            listed = listed.saturating_add(1);
            let children = self.children(&here).await?;
            whole.is_truncated |= children.is_truncated || listed > DIRECTORIES_LISTED_MAX;
            whole.hides_entries |= children.hides_entries;
            whole
                .not_shown
                .add_below(here.below(directory).unwrap_or_default(), children.not_shown);
            for entry in children.entries {
                let path = here.join(&entry.name);
                if let Some(name) = path.below(directory) {
                    whole.entries.push(ListingEntry::new(name, entry.kind));
                }
                if scope == Scope::Recursive
                    && entry.kind == EntryKind::Directory
                    && !whole.is_truncated
                {
                    pending.push(path);
                }
            }
        }
        Ok(Listing {
            hides_entries: whole.hides_entries,
            not_shown: whole.not_shown,
            ..Listing::sorted(whole.entries, whole.is_truncated)
        })
    }

    /// Lists the direct children of a directory.
    async fn children(&mut self, directory: &StorePath) -> Result<Listing, FileError> {
        let PathState::Directory { base, .. } = self.lookup(directory).await? else {
            return Ok(Listing::default());
        };
        let mut listing = match base {
            Some(base) => self.base.list(&base, Scope::Children).await?,
            None => Listing::default(),
        };
        listing.entries.retain(|entry| !self.nodes.contains_key(&directory.join(&entry.name)));
        for key in self.keys_below(directory) {
            let name = key.below(directory).filter(|name| !name.contains('/'));
            let kind = match self.nodes.get(&key).map(|node| &node.now) {
                Some(CurrentState::File(_)) => EntryKind::File,
                Some(CurrentState::Directory { .. }) => EntryKind::Directory,
                Some(CurrentState::Gone) | None => continue,
            };
            listing.entries.extend(name.map(|name| ListingEntry::new(name, kind)));
        }
        Ok(listing)
    }

    pub(super) async fn remove_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        if path.is_root() {
            return Err(FileError::Root);
        }
        let found = self.lookup(path).await?;
        match &found {
            PathState::Directory { .. } => {}
            PathState::File { .. } | PathState::BaseFile { .. } => {
                return Err(FileError::NotDirectory);
            }
            PathState::Missing { .. } | PathState::BelowFile | PathState::Special => {
                return Err(FileError::NotFound);
            }
        }
        self.require_empty(path).await?;
        self.room().await?;
        self.require_budget()?;
        self.remove_path(path, &found)?;
        self.enter(|usage| usage.without_directory());
        Ok(())
    }

    async fn require_empty(&mut self, path: &StorePath) -> Result<(), FileError> {
        let listing = self.list(path, Scope::Children).await?;
        let is_empty =
            listing.entries.is_empty() && !listing.is_truncated && !listing.hides_entries;
        if is_empty { Ok(()) } else { Err(FileError::NotEmpty) }
    }

    pub(super) async fn rename(
        &mut self,
        from: &StorePath,
        to: &StorePath,
    ) -> Result<(), FileError> {
        self.require_writable()?;
        if from.is_root() {
            return Err(FileError::Root);
        }
        let found = self.lookup(from).await?;
        let kind = found.kind().ok_or(FileError::NotFound)?;
        if from == to {
            return Ok(());
        }
        if to.is_root() {
            return Err(FileError::Root);
        }
        if to.below(from).is_some() {
            return Err(if kind == EntryKind::File {
                FileError::ParentIsFile
            } else {
                FileError::IntoItself
            });
        }
        if !self.missing_parents(to).await?.is_empty() {
            return Err(FileError::NotFound);
        }
        let replaced = self.lookup(to).await?;
        if matches!(replaced, PathState::Special) {
            return Err(FileError::Special);
        }
        match (kind, replaced.kind()) {
            (EntryKind::File, Some(EntryKind::Directory)) => return Err(FileError::IsDirectory),
            (EntryKind::Directory, Some(EntryKind::File)) => return Err(FileError::IsFile),
            (EntryKind::Directory, Some(EntryKind::Directory)) => self.require_empty(to).await?,
            _ => {}
        }
        let deepest = match kind {
            EntryKind::File => to.depth(),
            EntryKind::Directory => self.deepest(from, to).await?,
        };
        self.quota().await?.check_depth(deepest)?;
        self.require_budget()?;
        self.remove_target(to, &replaced)?;
        self.put(from, &found, to)
    }

    /// Returns the depth of the deepest path once the directory `from` has become `to`.
    async fn deepest(&mut self, from: &StorePath, to: &StorePath) -> Result<u64, FileError> {
        let listing = self.list(from, Scope::Recursive).await?;
        let depths = listing.entries.iter().map(|entry| to.join(&entry.name).depth());
        Ok(depths.max().unwrap_or(0).max(to.depth()))
    }

    /// Removes what is replaced at `to`.
    fn remove_target(&mut self, to: &StorePath, replaced: &PathState) -> Result<(), FileError> {
        self.remove_path(to, replaced)?;
        match replaced {
            PathState::File { node, .. } => {
                node.unlink();
                let bytes = node.bytes();
                self.enter(|usage| usage.without_file(bytes));
            }
            PathState::BaseFile { stat, .. } => self.enter(|usage| usage.without_file(stat.bytes)),
            PathState::Directory { .. } => self.enter(|usage| usage.without_directory()),
            PathState::Missing { .. } | PathState::BelowFile | PathState::Special => {}
        }
        Ok(())
    }

    /// Moves what was found at `from`, with all changes in it, to `to`, where nothing exists.
    fn put(
        &mut self,
        from: &StorePath,
        found: &PathState,
        to: &StorePath,
    ) -> Result<(), FileError> {
        let charge = self.charge_name(to)?;
        let now = self.movable(from, found)?;
        let below = self.keys_below(from);
        let moved: Vec<_> = below
            .iter()
            .filter_map(|key| Some((to.join(key.below(from)?), self.take_node(key)?)))
            .collect();
        self.remove_path(from, found)?;
        self.insert(to, now, charge);
        for (key, node) in moved {
            self.put_node(&key, node);
        }
        Ok(())
    }
}

impl PathState {
    fn kind(&self) -> Option<EntryKind> {
        match self {
            Self::File { .. } | Self::BaseFile { .. } => Some(EntryKind::File),
            Self::Directory { .. } => Some(EntryKind::Directory),
            Self::Missing { .. } | Self::BelowFile | Self::Special => None,
        }
    }
}

impl CurrentState {
    /// Returns the path of the entry in the base store, if it has one.
    pub(super) fn origin(&self) -> Option<&StorePath> {
        match self {
            Self::Gone => None,
            Self::File(node) => node.origin.as_ref().map(|origin| &origin.path),
            Self::Directory { origin, .. } => origin.as_ref(),
        }
    }
}
