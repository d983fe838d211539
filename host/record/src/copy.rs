//! Copies of logs on another machine.
//!
//! A process gives out parts of the files of its log ([`LogFiles`]), and a collector appends them
//! to copies ([`LogCollection`]). A copy has the lines and the checkpoints of its log, byte by
//! byte, so that `verify` holds for both. What was copied is never changed: a log that is rewritten
//! later differs from its copy. Payloads, recordings and private keys are not copied.
//!
//! A collection is a directory with one folder `logs/<digest of the key>` for each log. A
//! [`Log`](crate::Log) of the collection reads all of them.

mod collection;
mod files;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use self::collection::{CopyError, LogCollection, LogCopy};
pub use self::files::LogFiles;
use crate::RecordError;
use crate::directory::LogDirectory;

/// Folder of a directory that has the copies of other logs.
const COPIES: &str = "logs";
/// File of a copy with the public key of its log.
pub(crate) const PUBLIC_KEY: &str = "public-key";
/// Maximum bytes of that file.
pub(crate) const PUBLIC_KEY_BYTES_MAX: u64 = 1024;

/// File of a log, and its last change. Files are ordered by the change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangedFile {
    /// Time of the change, in seconds since 1970.
    pub changed: i64,
    /// Segment, or `pruned` for the list of segments that retention has removed.
    pub name: String,
}

/// State of a file of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileState {
    /// A process writes the file.
    Live,
    /// No process writes the file, and it has no end: its process was killed.
    Orphaned,
    /// The file is complete.
    Closed,
}

/// Part of a file of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    /// Bytes of the file, uncompressed.
    pub bytes: Vec<u8>,
    /// True if nothing followed when they were read.
    pub is_last: bool,
    /// State of the file before they were read.
    pub state: FileState,
    /// Newest checkpoint before they were read.
    pub checkpoint: Option<String>,
}

/// Returns the directories of the copies of other logs in a directory. It has none unless it is a
/// collection.
///
/// # Errors
/// If the directory is not the user's own, or a copy cannot be read.
pub fn copied_logs(directory: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let copies = copies(&LogDirectory::open(directory)?)?;
    let mut logs: Vec<_> = copies.into_iter().map(|(folder, _)| directory.join(folder)).collect();
    logs.sort();
    Ok(logs)
}

/// Opens the copies of other logs in a directory, and returns them with their folders. Usually, it
/// has none.
pub(crate) fn copies(directory: &LogDirectory) -> Result<Vec<(String, LogDirectory)>, RecordError> {
    let names = directory.names(COPIES)?;
    let folders = names.iter().filter(|name| !name.starts_with('.'));
    let copy = |folder: String| directory.open_folder(&folder).map(|copy| (folder, copy));
    folders.map(|name| copy(format!("{COPIES}/{name}"))).collect()
}
