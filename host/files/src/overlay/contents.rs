//! Opens, writes and deletes files, in the overlay only.

use std::sync::Arc;

use super::file::{FileNode, Origin};
use super::state::{CurrentState, OverlayState, PathState, length};
use crate::blocking::blocking;
use crate::content::{FileContent, SpilledContent};
use crate::quota::UsageChange;
use crate::{FileError, OpenMode, Stat, StorePath, Usage, WriteMode};

/// Chunk size for copying a file of the base store to disk.
const COPIED_BYTES: u64 = 1024 * 1024;

/// Number of opens after which files that are closed and unchanged are forgotten.
const OPENS_PER_SWEEP: u32 = 1024;

impl OverlayState {
    pub(super) async fn open(
        &mut self,
        path: &StorePath,
        mode: OpenMode,
    ) -> Result<Arc<FileNode>, FileError> {
        if mode.writes || mode.truncates {
            self.require_writable()?;
        }
        let node = match self.lookup(path).await? {
            PathState::Directory { .. } if mode.creates && mode.is_exclusive => {
                return Err(FileError::AlreadyExists);
            }
            PathState::Directory { .. } => return Err(FileError::IsDirectory),
            PathState::File { .. } | PathState::BaseFile { .. }
                if mode.creates && mode.is_exclusive =>
            {
                return Err(FileError::AlreadyExists);
            }
            PathState::File { node, .. } => node,
            PathState::BaseFile { natural, stat } => self.track(path, natural, &stat)?,
            PathState::BelowFile if mode.creates => return Err(FileError::ParentIsFile),
            PathState::Special if mode.creates => return Err(FileError::Special),
            PathState::Missing { .. } if mode.creates => return self.create(path).await,
            PathState::BelowFile | PathState::Missing { .. } | PathState::Special => {
                return Err(FileError::NotFound);
            }
        };
        if mode.truncates {
            self.resize(&node, 0).await?;
        }
        Ok(node)
    }

    /// Creates an empty file in an existing directory.
    async fn create(&mut self, path: &StorePath) -> Result<Arc<FileNode>, FileError> {
        self.require_writable()?;
        if !self.missing_parents(path).await?.is_empty() {
            return Err(FileError::NotFound);
        }
        self.quota().await?.check_depth(path.depth())?;
        let usage = self.admit(UsageChange { entries_added: 1, ..UsageChange::default() }).await?;
        let charge = self.charge_name(path)?;
        let node = Arc::new(FileNode::empty(self.number(), self.budget.take(0)?));
        self.insert(path, CurrentState::File(Arc::clone(&node)), charge);
        self.enter(|_| usage);
        Ok(node)
    }

    pub(super) async fn write(
        &mut self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.require_writable()?;
        let missing = self.missing_parents(path).await?;
        let found = self.lookup(path).await?;
        let bytes_removed = match &found {
            PathState::Directory { .. } => return Err(FileError::IsDirectory),
            PathState::Special => return Err(FileError::Special),
            PathState::File { .. } | PathState::BaseFile { .. } if mode == WriteMode::Create => {
                return Err(FileError::AlreadyExists);
            }
            PathState::File { node, .. } => Some(node.bytes()),
            PathState::BaseFile { stat, .. } => Some(stat.bytes),
            PathState::Missing { .. } | PathState::BelowFile => None,
        };
        let bytes_added = length(content.len());
        self.quota().await?.check_file(path.depth(), bytes_added)?;
        let change = UsageChange {
            entries_added: length(missing.len()).saturating_add(u64::from(bytes_removed.is_none())),
            bytes_removed: bytes_removed.unwrap_or(0),
            bytes_added,
        };
        let usage = self.admit(change).await?;
        match found {
            PathState::File { node, .. } => {
                let content = self.keep(&node, content).await?;
                node.set(content);
            }
            PathState::BaseFile { natural, stat } => {
                let node = self.track(path, natural, &stat)?;
                let content = self.keep(&node, content).await?;
                node.set(content);
            }
            _ => {
                let charges = self.charge_names(&missing)?;
                let charge = self.charge_name(path)?;
                let node = FileNode::empty(self.number(), self.budget.take(0)?);
                let content = self.keep(&node, content).await?;
                node.set(content);
                self.insert_directories(missing, charges);
                self.insert(path, CurrentState::File(Arc::new(node)), charge);
            }
        }
        self.enter(|_| usage);
        Ok(())
    }

    pub(super) async fn write_at(
        &mut self,
        node: &FileNode,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<(), FileError> {
        self.require_writable()?;
        if data.is_empty() {
            return Ok(());
        }
        let bytes = node.bytes();
        let offset = offset.unwrap_or(bytes);
        let end = offset.saturating_add(length(data.len()));
        let usage = self.prepare(node, end.max(bytes)).await?;
        node.write(offset, data)?;
        self.enter(|before| usage.unwrap_or(before));
        Ok(())
    }

    /// Changes the length of a file.
    pub(super) async fn resize(&mut self, node: &FileNode, bytes: u64) -> Result<(), FileError> {
        let usage = self.prepare(node, bytes).await?;
        node.resize(bytes)?;
        self.enter(|before| usage.unwrap_or(before));
        Ok(())
    }

    /// Reserves room for the whole new content of a file, and puts it on disk if it is too large
    /// for memory. Nothing has visibly changed until the file is given the returned content.
    async fn keep(&self, node: &FileNode, content: Vec<u8>) -> Result<FileContent, FileError> {
        let bytes = length(content.len());
        if !self.budget.prefers_disk(bytes) {
            match node.charge(bytes) {
                Ok(()) => return Ok(FileContent::Bytes(content)),
                Err(error) if !self.budget.allows_disk(bytes) => return Err(error),
                Err(_) => {}
            }
        }
        let spilled = match self.budget.spill(bytes, &*self.base) {
            Ok(spilled) => spilled,
            // It may fit in memory.
            Err(error) => {
                return node.charge(bytes).map(|()| FileContent::Bytes(content)).map_err(|_| error);
            }
        };
        let spilled = blocking(move || {
            let mut spilled = spilled;
            spilled.write(0, &content)?;
            Ok(spilled)
        })
        .await?;
        node.charge(0)?;
        Ok(FileContent::Spilled(spilled))
    }

    /// Loads the content of a file and reserves room for its new length. Everything is checked
    /// before anything is taken. Returns the usage to enter when the length has changed.
    async fn prepare(&mut self, node: &FileNode, bytes: u64) -> Result<Option<Usage>, FileError> {
        self.require_writable()?;
        let bytes_before = node.bytes();
        let mut usage = None;
        if node.is_linked() {
            if bytes > bytes_before {
                self.quota().await?.check_file(0, bytes)?;
            }
            let change =
                UsageChange { entries_added: 0, bytes_removed: bytes_before, bytes_added: bytes };
            usage = Some(self.admit(change).await?);
        }
        if node.is_loaded() {
            node.make_room(&self.budget, bytes, &*self.base)?;
        } else {
            self.load(node, bytes_before, bytes).await?;
        }
        Ok(usage)
    }

    /// Copies the content of a file of the base store, unless none of it will stay.
    async fn load(
        &mut self,
        node: &FileNode,
        bytes_before: u64,
        bytes: u64,
    ) -> Result<(), FileError> {
        if bytes == 0 {
            node.set(FileContent::default());
            return Ok(());
        }
        let most = bytes_before.max(bytes);
        let refused = if self.budget.prefers_disk(most) { None } else { node.charge(most).err() };
        match refused {
            None if !self.budget.prefers_disk(most) => {}
            Some(error) if !self.budget.allows_disk(most) => return Err(error),
            _ => match self.budget.spill(most, &*self.base) {
                Ok(spilled) => {
                    self.load_to_disk(node, spilled, bytes_before).await?;
                    return node.make_room(&self.budget, bytes, &*self.base);
                }
                // It may fit in memory.
                Err(error) => node.charge(most).map_err(|_| error)?,
            },
        }
        let content = {
            let path = node.base_path()?;
            let changed = || FileError::Conflict { path: path.clone() };
            match self.base.read(path, bytes_before).await {
                Ok(content) if length(content.len()) == bytes_before => Ok(content),
                Ok(_) => Err(changed()),
                Err(error) if is_replaced(&error) => Err(changed()),
                Err(error) => Err(error),
            }
        };
        match content {
            Ok(content) => node.set(FileContent::Bytes(content)),
            Err(error) => {
                node.charge(0)?;
                return Err(error);
            }
        }
        node.charge(bytes)
    }

    async fn load_to_disk(
        &mut self,
        node: &FileNode,
        mut spilled: SpilledContent,
        bytes_before: u64,
    ) -> Result<(), FileError> {
        let path = node.base_path()?;
        let changed = || FileError::Conflict { path: path.clone() };
        loop {
            // At the end, request one more byte, which should not exist.
            let wanted = bytes_before.saturating_sub(spilled.bytes()).clamp(1, COPIED_BYTES);
            let part = match self.base.read_range(path, spilled.bytes(), wanted).await {
                Err(error) if is_replaced(&error) => return Err(changed()),
                part => part?,
            };
            if part.is_empty() {
                break;
            }
            if spilled.bytes() >= bytes_before {
                return Err(changed());
            }
            spilled.write(spilled.bytes(), &part)?;
        }
        if spilled.bytes() < bytes_before {
            return Err(changed());
        }
        node.set(FileContent::Spilled(spilled));
        Ok(())
    }

    pub(super) async fn delete(&mut self, path: &StorePath) -> Result<(), FileError> {
        self.require_writable()?;
        let found = self.lookup(path).await?;
        let bytes = match &found {
            PathState::File { node, .. } => node.bytes(),
            PathState::BaseFile { stat, .. } => stat.bytes,
            _ => return Err(FileError::NotFound),
        };
        self.room().await?;
        self.require_budget()?;
        self.remove_path(path, &found)?;
        if let PathState::File { node, .. } = found {
            node.unlink();
        }
        self.enter(|usage| usage.without_file(bytes));
        Ok(())
    }

    /// Adds the file at `path` as a node of the overlay. The base store does not change.
    pub(super) fn track(
        &mut self,
        path: &StorePath,
        natural: StorePath,
        stat: &Stat,
    ) -> Result<Arc<FileNode>, FileError> {
        self.sweep();
        let charge = self.charge_name(path)?;
        let version = self.first_seen(&natural, Some(stat.version)).unwrap_or(stat.version);
        let origin = Origin { path: natural, bytes: stat.bytes, modified: stat.modified, version };
        let node = Arc::new(FileNode::of_base(self.number(), origin, self.budget.take(0)?));
        self.insert(path, CurrentState::File(Arc::clone(&node)), charge);
        if let Some(node) = self.nodes.get_mut(path) {
            node.is_tracked = true;
        }
        Ok(node)
    }

    /// Forgets files that were only read, so that a call may open any number of files one after
    /// another.
    fn sweep(&mut self) {
        self.opens = self.opens.saturating_add(1);
        if self.opens < OPENS_PER_SWEEP {
            return;
        }
        self.opens = 0;
        self.nodes.retain(|_, node| match &node.now {
            CurrentState::File(file) => {
                !node.is_tracked || file.is_changed() || Arc::strong_count(file) > 1
            }
            _ => true,
        });
    }
}

/// Returns whether `error`, returned while reading a file that the call has seen, means that
/// something else has replaced it.
fn is_replaced(error: &FileError) -> bool {
    matches!(
        error,
        FileError::TooLarge { .. }
            | FileError::NotFound
            | FileError::Link
            | FileError::Special
            | FileError::IsDirectory
    )
}
