//! Store that answers from a recording.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::recording::{
    RecordedListing, RecordedLookup, RecordedPiece, RecordedStat, RecordedStore,
};

use super::{error_named, played_listing, played_room, played_stat};
use crate::store::NoChanges;
use crate::{
    Changes, FileError, FileStore, Listing, MadeDirectory, NameRules, PreparedCommit, Quota, Room,
    Scope, Stat, StorePath, Usage, WriteMode,
};

/// Store that answers what a recording contains. Anything else does not exist and is reported. It
/// is never changed: changes are refused, and a commit has no effect.
pub struct PlaybackStore {
    name: String,
    recorded: RecordedStore,
    report: Arc<dyn Fn(String) + Send + Sync>,
}

impl PlaybackStore {
    /// Creates a store from the recording of the store `name`. Calls `report` for each lookup that
    /// the recording does not contain.
    pub fn new(
        name: impl Into<String>,
        recorded: RecordedStore,
        report: Arc<dyn Fn(String) + Send + Sync>,
    ) -> Self {
        Self { name: name.into(), recorded, report }
    }

    fn missing(&self, action: &str, path: &str) -> FileError {
        (self.report)(format!("{action} `/{}/{path}`", self.name));
        FileError::NotFound
    }

    fn found_stat(&self, path: &StorePath) -> Result<&RecordedStat, FileError> {
        match self.recorded.stats.get(path.as_str()) {
            Some(RecordedLookup::Found(stat)) => Ok(stat),
            Some(RecordedLookup::Failed(error)) => Err(error_named(error)),
            None => Err(self.missing("look up", path.as_str())),
        }
    }

    /// Returns up to `length` bytes from `offset` on, up to the first that was not recorded.
    fn bytes(&self, path: &StorePath, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        let pieces = match self.recorded.files.get(path.as_str()) {
            Some(RecordedLookup::Found(pieces)) => pieces,
            Some(RecordedLookup::Failed(error)) => return Err(error_named(error)),
            None => return Err(self.missing("read", path.as_str())),
        };
        let mut found = Vec::new();
        let end = offset.saturating_add(length);
        let mut at = offset;
        while at < end {
            let Some(piece) =
                pieces.iter().find(|piece| piece.offset <= at && at < piece_end(piece))
            else {
                if !self.ends_before(path, pieces, at) {
                    (self.report)(format!("read `/{}/{path}` from byte {at} on", self.name));
                }
                break;
            };
            let content = piece.content.bytes().unwrap_or_default();
            let start = usize::try_from(at - piece.offset).unwrap_or(usize::MAX);
            let wanted = usize::try_from(end - at).unwrap_or(usize::MAX);
            let rest = content.get(start..).unwrap_or_default();
            let part = rest.get(..wanted).unwrap_or(rest);
            if part.is_empty() {
                break;
            }
            found.extend_from_slice(part);
            at = at.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        }
        Ok(found)
    }

    /// Returns whether the recording shows that the file ends at or before `at`.
    fn ends_before(&self, path: &StorePath, pieces: &[RecordedPiece], at: u64) -> bool {
        let stat = self.recorded.stats.get(path.as_str());
        let is_short = matches!(stat, Some(RecordedLookup::Found(stat)) if stat.bytes.is_some_and(|bytes| bytes <= at));
        is_short || pieces.iter().any(|piece| piece.is_last && piece_end(piece) <= at)
    }

    fn listing(&self, directory: &StorePath, scope: Scope) -> Option<Result<Listing, FileError>> {
        let lists = match scope {
            Scope::Children => &self.recorded.listings,
            Scope::Recursive => &self.recorded.trees,
        };
        Some(match lists.get(directory.as_str())? {
            RecordedLookup::Found(listing) => Ok(played_listing(listing)),
            RecordedLookup::Failed(error) => Err(error_named(error)),
        })
    }
}

fn piece_end(piece: &RecordedPiece) -> u64 {
    let bytes = piece.content.bytes().map_or(0, |bytes| bytes.len());
    piece.offset.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX))
}

/// Returns the direct children in a listing of everything below a directory.
fn children(tree: &RecordedListing) -> Listing {
    let is_child = |entry: &&String| !entry.trim_end_matches('/').contains('/');
    let entries = tree.entries.iter().filter(is_child).cloned().collect();
    played_listing(&RecordedListing { entries, ..tree.clone() })
}

#[async_trait]
impl FileStore for PlaybackStore {
    fn is_read_only(&self) -> bool {
        self.recorded.is_read_only
    }

    fn names(&self) -> NameRules {
        if self.recorded.has_native_names { NameRules::Native } else { NameRules::Portable }
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        if path.is_root() && !self.recorded.stats.contains_key("") {
            return Ok(Stat::ROOT);
        }
        self.found_stat(path).map(played_stat)
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        if let Some(RecordedLookup::Found(stat)) = self.recorded.stats.get(path.as_str())
            && let Some(bytes) = stat.bytes
            && bytes > bytes_max
        {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        self.bytes(path, 0, bytes_max)
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        self.bytes(path, offset, length)
    }

    async fn write(&self, _: &StorePath, _: Vec<u8>, _: WriteMode) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn delete(&self, _: &StorePath) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        if let Some(listing) = self.listing(directory, scope) {
            return listing;
        }
        let tree = self.recorded.trees.get(directory.as_str());
        if let (Scope::Children, Some(RecordedLookup::Found(tree))) = (scope, tree) {
            return Ok(children(tree));
        }
        let _ = self.missing("list", directory.as_str());
        Ok(Listing::default())
    }

    async fn create_directory(&self, _: &StorePath) -> Result<MadeDirectory, FileError> {
        Err(FileError::ReadOnly)
    }

    async fn remove_directory(&self, _: &StorePath) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn rename(&self, _: &StorePath, _: &StorePath) -> Result<(), FileError> {
        Err(FileError::ReadOnly)
    }

    async fn room(&self) -> Result<Room, FileError> {
        match &self.recorded.room {
            Some(room) => Ok(played_room(room)),
            None => {
                (self.report)(format!("change something in `/{}`", self.name));
                Ok(Room { quota: Quota::default(), usage: Usage::default() })
            }
        }
    }

    async fn prepare(&self, _: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        Ok(Box::new(NoChanges))
    }
}
