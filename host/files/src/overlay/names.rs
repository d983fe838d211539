//! Removing directories and giving things other names, in the overlay alone.

use super::state::{Found, Now, State};
use crate::{EntryKind, FileError, Scope, StorePath};

impl State {
    pub(super) async fn remove_directory(&mut self, path: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        if path.is_root() {
            return Err(FileError::Root);
        }
        let found = self.look(path).await?;
        match &found {
            Found::Directory { .. } => {}
            Found::File { .. } | Found::BaseFile { .. } => return Err(FileError::NotDirectory),
            Found::Missing { .. } | Found::BelowFile | Found::Special => return Err(FileError::NotFound),
        }
        self.require_empty(path).await?;
        self.room().await?;
        self.require_spare()?;
        self.vanish(path, &found)?;
        self.enter(|usage| usage.without_directory());
        Ok(())
    }

    async fn require_empty(&mut self, path: &StorePath) -> Result<(), FileError> {
        let listing = self.list(path, Scope::Children).await?;
        let is_empty = listing.entries.is_empty() && !listing.is_truncated && !listing.hides_entries;
        if is_empty { Ok(()) } else { Err(FileError::NotEmpty) }
    }

    pub(super) async fn rename(&mut self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        if from.is_root() {
            return Err(FileError::Root);
        }
        let found = self.look(from).await?;
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
        let replaced = self.look(to).await?;
        if matches!(replaced, Found::Special) {
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
        self.require_spare()?;
        self.make_way(to, &replaced)?;
        self.put(from, &found, to)
    }

    /// The depth of the deepest path once the directory `from` is `to`.
    async fn deepest(&mut self, from: &StorePath, to: &StorePath) -> Result<u64, FileError> {
        let listing = self.list(from, Scope::Recursive).await?;
        let depths = listing.entries.iter().map(|entry| to.join(&entry.name).depth());
        Ok(depths.max().unwrap_or(0).max(to.depth()))
    }

    /// Takes away what is replaced at `to`.
    fn make_way(&mut self, to: &StorePath, replaced: &Found) -> Result<(), FileError> {
        self.vanish(to, replaced)?;
        match replaced {
            Found::File { node, .. } => {
                node.unlink();
                let bytes = node.bytes();
                self.enter(|usage| usage.without_file(bytes));
            }
            Found::BaseFile { stat, .. } => self.enter(|usage| usage.without_file(stat.bytes)),
            Found::Directory { .. } => self.enter(|usage| usage.without_directory()),
            Found::Missing { .. } | Found::BelowFile | Found::Special => {}
        }
        Ok(())
    }

    /// Puts what was found at `from`, and everything that is changed in it, under `to`, where nothing is.
    fn put(&mut self, from: &StorePath, found: &Found, to: &StorePath) -> Result<(), FileError> {
        let charge = self.charge_name(to)?;
        let now = self.movable(from, found)?;
        let below = self.keys_below(from);
        let moved: Vec<_> =
            below.iter().filter_map(|key| Some((to.join(key.below(from)?), self.take_node(key)?))).collect();
        self.vanish(from, found)?;
        self.insert(to, now, charge);
        for (key, node) in moved {
            self.put_node(&key, node);
        }
        Ok(())
    }
}

impl Found {
    fn kind(&self) -> Option<EntryKind> {
        match self {
            Self::File { .. } | Self::BaseFile { .. } => Some(EntryKind::File),
            Self::Directory { .. } => Some(EntryKind::Directory),
            Self::Missing { .. } | Self::BelowFile | Self::Special => None,
        }
    }
}

impl Now {
    /// What it is in the store below, if anything.
    pub(super) fn origin(&self) -> Option<&StorePath> {
        match self {
            Self::Gone => None,
            Self::File(node) => node.origin.as_ref().map(|origin| &origin.path),
            Self::Directory { origin, .. } => origin.as_ref(),
        }
    }
}
