//! Records what a call reads from its stores, and answers a later call from such a recording.
//!
//! The recorder is below the overlay of a call, so that it sees what comes from the store and
//! nothing of what the call itself has written. It records the first look at each path: the
//! overlay keeps what it has seen, except contents of files that are read again.

mod playback;
mod recorder;

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cofferdam_tool::recording::{RecordedListing, RecordedLookup, RecordedRoom, RecordedStat};

pub use self::playback::PlaybackStore;
pub use self::recorder::{StoreRecorder, StoreRecordings};
use crate::store::Version;
use crate::{EntryKind, FileError, Listing, ListingEntry, Quota, QuotaCounts, Room, Stat, Usage};

/// Name of an error, and a function that makes it.
type NamedError = (&'static str, fn() -> FileError);

/// Names of the errors that a lookup can end with. Others are failures of the host, which a
/// recording does not tell apart.
const ERRORS: [NamedError; 7] = [
    ("not-found", || FileError::NotFound),
    ("link", || FileError::Link),
    ("special", || FileError::Special),
    ("is-directory", || FileError::IsDirectory),
    ("not-directory", || FileError::NotDirectory),
    ("parent-is-file", || FileError::ParentIsFile),
    ("create-only", || FileError::CreateOnly),
];

/// Name of all other errors.
const OTHER_ERROR: &str = "failed";

fn error_name(error: &FileError) -> &'static str {
    let is_same =
        |other: &FileError| std::mem::discriminant(other) == std::mem::discriminant(error);
    let known = ERRORS.iter().find(|(_, make)| is_same(&make()));
    known.map_or(OTHER_ERROR, |(name, _)| name)
}

fn error_named(name: &str) -> FileError {
    let known = ERRORS.iter().find(|(known, _)| *known == name);
    known.map_or_else(
        || std::io::Error::other("the store failed when the call was recorded").into(),
        |(_, make)| make(),
    )
}

fn lookup<T, R>(result: &Result<T, FileError>, record: impl FnOnce(&T) -> R) -> RecordedLookup<R> {
    match result {
        Ok(value) => RecordedLookup::Found(record(value)),
        Err(error) => RecordedLookup::Failed(error_name(error).to_owned()),
    }
}

fn recorded_stat(stat: &Stat) -> RecordedStat {
    let since = stat.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    RecordedStat {
        bytes: (stat.kind == EntryKind::File).then_some(stat.bytes),
        modified_ns: since.and_then(|since| u64::try_from(since.as_nanos()).ok()),
        version: stat.version.0,
    }
}

fn played_stat(stat: &RecordedStat) -> Stat {
    let version = Version(stat.version);
    let modified = stat.modified_ns.map(|ns| SystemTime::UNIX_EPOCH + Duration::from_nanos(ns));
    match stat.bytes {
        Some(bytes) => Stat::file(bytes, modified, version),
        None => Stat { modified, ..Stat::directory(version) },
    }
}

fn recorded_listing(listing: &Listing) -> RecordedListing {
    let entry = |entry: &ListingEntry| match entry.kind {
        EntryKind::Directory => format!("{}/", entry.name),
        EntryKind::File => entry.name.clone(),
    };
    RecordedListing {
        entries: listing.entries.iter().map(entry).collect(),
        is_truncated: listing.is_truncated,
        hides_entries: listing.hides_entries,
    }
}

fn played_listing(listing: &RecordedListing) -> Listing {
    let entry = |entry: &String| match entry.strip_suffix('/') {
        Some(name) => ListingEntry::new(name, EntryKind::Directory),
        None => ListingEntry::new(entry.as_str(), EntryKind::File),
    };
    Listing {
        entries: listing.entries.iter().map(entry).collect(),
        is_truncated: listing.is_truncated,
        hides_entries: listing.hides_entries,
        ..Listing::default()
    }
}

fn recorded_room(room: &Room) -> RecordedRoom {
    let Quota { bytes_max, entries_max, file_bytes_max, depth_max, counts } = room.quota;
    let Usage { bytes, entries } = room.usage;
    let is_growth = counts == QuotaCounts::Growth;
    RecordedRoom { bytes_max, entries_max, file_bytes_max, depth_max, is_growth, bytes, entries }
}

fn played_room(room: &RecordedRoom) -> Room {
    let &RecordedRoom {
        bytes_max,
        entries_max,
        file_bytes_max,
        depth_max,
        is_growth,
        bytes,
        entries,
    } = room;
    let counts = if is_growth { QuotaCounts::Growth } else { QuotaCounts::Total };
    Room {
        quota: Quota { bytes_max, entries_max, file_bytes_max, depth_max, counts },
        usage: Usage { bytes, entries },
    }
}
