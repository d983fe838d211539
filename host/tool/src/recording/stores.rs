//! Parts of file stores that a call has read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RecordedBytes;

/// Part of a file store that a call has read, as it was at the first look. Paths are relative to
/// the root of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStore {
    /// True if every change was refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_read_only: bool,
    /// True if names that only this system can hold are allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_native_names: bool,
    /// Limits and usage, if the call needed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<RecordedRoom>,
    /// Metadata by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stats: BTreeMap<String, RecordedLookup<RecordedStat>>,
    /// Pieces of files by path, each of them where it was read first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, RecordedLookup<Vec<RecordedPiece>>>,
    /// Direct children by path of the directory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub listings: BTreeMap<String, RecordedLookup<RecordedListing>>,
    /// Everything below a directory by its path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub trees: BTreeMap<String, RecordedLookup<RecordedListing>>,
}

/// Result of a lookup: a value, or the kind of the error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedLookup<T> {
    /// The value.
    Found(T),
    /// Kind of the error, such as `not-found`.
    Failed(String),
}

/// Metadata of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStat {
    /// Length of a file in bytes; `None` for a directory.
    pub bytes: Option<u64>,
    /// Time of the last write, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified_ns: Option<u64>,
    /// Version in the store.
    pub version: u64,
}

/// Piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPiece {
    /// Position of the first byte.
    pub offset: u64,
    /// Content.
    pub content: RecordedBytes,
    /// True if the file ends here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_last: bool,
}

/// Listing of a directory: relative paths, those of directories with a trailing `/`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedListing {
    /// Entries in the order of the store.
    pub entries: Vec<String>,
    /// True if there are more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_truncated: bool,
    /// True if the store did not show some.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hides_entries: bool,
}

/// Limits and usage of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedRoom {
    /// Maximum content of all files together, in bytes.
    pub bytes_max: u64,
    /// Maximum number of entries.
    pub entries_max: u64,
    /// Maximum content of one file, in bytes.
    pub file_bytes_max: u64,
    /// Maximum number of segments of a path.
    pub depth_max: u64,
    /// True if the limits are for growth, and the usage has the store's own unit for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_growth: bool,
    /// Content of all files together, in bytes.
    pub bytes: u64,
    /// Number of entries.
    pub entries: u64,
}

impl RecordedStore {
    /// Returns the recorded contents.
    pub(super) fn contents(&self) -> impl Iterator<Item = &RecordedBytes> {
        let pieces = self.files.values().filter_map(|lookup| match lookup {
            RecordedLookup::Found(pieces) => Some(pieces),
            RecordedLookup::Failed(_) => None,
        });
        pieces.flatten().map(|piece| &piece.content)
    }

    /// Returns the recorded contents, to change them.
    pub(super) fn contents_mut(&mut self) -> impl Iterator<Item = &mut RecordedBytes> {
        let pieces = self.files.values_mut().filter_map(|lookup| match lookup {
            RecordedLookup::Found(pieces) => Some(pieces),
            RecordedLookup::Failed(_) => None,
        });
        pieces.flatten().map(|piece| &mut piece.content)
    }
}
