//! Compression of closed segments, and retention by bytes and age.
//!
//! Blobs go first, the oldest before others, then closed segments, and open ones whose process is
//! gone. A segment of a live process is never removed. Several processes may do this at once: a
//! file that another one has removed is fine.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use crate::blocks::{BlockZone, compress_blocks};
use crate::checkpoint::TOMBSTONES;
use crate::directory::{LogDirectory, temporary_name};
use crate::note::SigningKey;
use crate::payloads::BLOBS;
use crate::sealer::record_pruned;
use crate::segment_writer::ClosedSegment;
use crate::segments::{CLOSED_SUFFIX, OPEN_SUFFIX, SegmentFile, ZONE_SUFFIX};
use crate::zone::ZoneMap;
use crate::{EvidenceError, RecordError, UtcTime};

/// Age after which a temporary file is a leftover of a process that is gone.
const TEMPORARY_SECONDS: i64 = 3600;
/// Age below which a segment whose process seems to be gone is kept.
const ORPHAN_SECONDS_MIN: i64 = 60;

/// Limits of the files of a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetentionLimits {
    pub(crate) bytes_max: u64,
    pub(crate) age_max: Duration,
}

/// Numbers of removed files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PruneReport {
    /// Number of removed blobs.
    pub blobs: u64,
    /// Number of removed segments.
    pub segments: u64,
    /// Bytes that are free now.
    pub bytes_freed: u64,
    /// Bytes of the log that are left.
    pub bytes_left: u64,
}

impl PruneReport {
    /// Adds the numbers of another log.
    pub(crate) fn add(&mut self, other: Self) {
        self.blobs += other.blobs;
        self.segments += other.segments;
        self.bytes_freed += other.bytes_freed;
        self.bytes_left += other.bytes_left;
    }
}

/// Compresses a closed segment, and writes its zone map beside it.
pub(crate) fn compress(
    directory: &LogDirectory,
    closed: &ClosedSegment,
) -> Result<(), RecordError> {
    let stem = &closed.stem;
    let (name, target) = (format!("{stem}{OPEN_SUFFIX}"), format!("{stem}{CLOSED_SUFFIX}"));
    let temporary = temporary_name(&target)?;
    let copied = copy_compressed(directory, &name, &temporary)
        .and_then(|blocks| {
            let zone = ZoneMap { blocks, ..closed.zone.clone() };
            let zone = serde_json::to_vec(&zone).unwrap_or_default();
            directory.write(&format!("{stem}{ZONE_SUFFIX}"), &zone)
        })
        .and_then(|()| directory.rename(&temporary, &target));
    match copied {
        Ok(()) => directory.remove(&name),
        Err(error) => {
            directory.remove(&temporary)?;
            Err(error)
        }
    }
}

fn copy_compressed(
    directory: &LogDirectory,
    from: &str,
    to: &str,
) -> Result<Vec<BlockZone>, RecordError> {
    let source = directory.open_file(from)?;
    let mut target = io::BufWriter::new(directory.create_file(to)?);
    let failure = |error| RecordError::file(to, error);
    let blocks = compress_blocks(source, &mut target).map_err(failure)?;
    target.flush().and_then(|()| target.get_ref().sync_all()).map_err(failure)?;
    Ok(blocks)
}

/// A file that retention may remove.
struct Candidate {
    modified: i64,
    bytes: u64,
    name: String,
}

/// Removes the oldest files until the log is within its limits.
pub(crate) fn prune(
    directory: &LogDirectory,
    limits: RetentionLimits,
    key: Option<&Arc<SigningKey>>,
) -> Result<PruneReport, EvidenceError> {
    let now = UtcTime::now().micros() / 1_000_000;
    let oldest = now.saturating_sub(i64::try_from(limits.age_max.as_secs()).unwrap_or(i64::MAX));
    let (mut report, mut left) = (PruneReport::default(), 0);
    let mut blobs = blobs(directory, now)?;
    let (mut segments, bytes_of_others) = segments(directory, now)?;
    left += blobs.iter().chain(&segments).map(|file| file.bytes).sum::<u64>() + bytes_of_others;
    blobs.sort_by_key(|file| file.modified);
    segments.sort_by(|a, b| a.name.cmp(&b.name));
    // Times of files are whole seconds, so that a maximum age of 0 includes those of this second.
    let is_over = |file: &Candidate, left: u64| file.modified <= oldest || left > limits.bytes_max;
    for blob in blobs {
        if !is_over(&blob, left) {
            break;
        }
        if is_in_use(directory, &blob) {
            continue;
        }
        directory.remove(&blob.name)?;
        left = left.saturating_sub(blob.bytes);
        report.blobs += 1;
        report.bytes_freed += blob.bytes;
    }
    for segment in segments {
        if !is_over(&segment, left) {
            break;
        }
        remove_segment(directory, &segment.name, key)?;
        left = left.saturating_sub(segment.bytes);
        report.segments += 1;
        report.bytes_freed += segment.bytes;
    }
    report.bytes_left = left;
    Ok(report)
}

/// Returns whether a blob was used again since it was listed.
fn is_in_use(directory: &LogDirectory, blob: &Candidate) -> bool {
    directory.facts(&blob.name).is_some_and(|facts| facts.modified != blob.modified)
}

fn remove_segment(
    directory: &LogDirectory,
    stem: &str,
    key: Option<&Arc<SigningKey>>,
) -> Result<(), EvidenceError> {
    if let Some(key) = key {
        record_pruned(directory, stem, key)?;
    }
    for suffix in [OPEN_SUFFIX, CLOSED_SUFFIX, ZONE_SUFFIX] {
        directory.remove(&format!("{stem}{suffix}"))?;
    }
    Ok(())
}

/// Returns the blobs, and removes leftovers of processes that are gone.
fn blobs(directory: &LogDirectory, now: i64) -> Result<Vec<Candidate>, RecordError> {
    let mut blobs = Vec::new();
    for folder in directory.names(BLOBS)? {
        let folder = format!("{BLOBS}/{folder}");
        for name in directory.names(&folder)? {
            let name = format!("{folder}/{name}");
            // Another process may have removed it.
            let Some(facts) = directory.facts(&name) else { continue };
            if is_leftover(&name, facts.modified, now) {
                directory.remove(&name)?;
                continue;
            }
            blobs.push(Candidate { modified: facts.modified, bytes: facts.bytes, name });
        }
    }
    Ok(blobs)
}

/// Returns the segments that may be removed, by stem, and the bytes of all other files.
fn segments(directory: &LogDirectory, now: i64) -> Result<(Vec<Candidate>, u64), RecordError> {
    let (mut segments, mut others) = (Vec::new(), 0);
    for segment in SegmentFile::list(directory)? {
        let Some(facts) = directory.facts(&segment.name()) else { continue };
        let is_young = now.saturating_sub(facts.modified) < ORPHAN_SECONDS_MIN;
        if segment.is_live() || (is_young && !segment.is_closed()) {
            others += facts.bytes;
            continue;
        }
        let zone = directory.facts(&format!("{}{ZONE_SUFFIX}", segment.stem()));
        let bytes = facts.bytes + zone.map_or(0, |zone| zone.bytes);
        let name = segment.stem().to_owned();
        segments.push(Candidate { modified: facts.modified, bytes, name });
    }
    for name in directory.names(".")? {
        let is_segment =
            [OPEN_SUFFIX, CLOSED_SUFFIX, ZONE_SUFFIX].iter().any(|s| name.ends_with(s));
        // The list of removed segments only grows, and must not displace what is left.
        if is_segment || name == BLOBS || name == TOMBSTONES {
            continue;
        }
        let Some(facts) = directory.facts(&name) else { continue };
        if is_leftover(&name, facts.modified, now) {
            directory.remove(&name)?;
        } else {
            others += facts.bytes;
        }
    }
    Ok((segments, others))
}

fn is_leftover(name: &str, modified: i64, now: i64) -> bool {
    name.ends_with(".tmp") && now.saturating_sub(modified) > TEMPORARY_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_that_was_used_since_the_listing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let directory = LogDirectory::create(&folder.path().join("log")).unwrap();
        directory.write("blob", b"content").unwrap();
        let modified = directory.facts("blob").unwrap().modified;
        let blob = |modified| Candidate { modified, bytes: 7, name: "blob".to_owned() };
        assert!(!is_in_use(&directory, &blob(modified)));
        assert!(is_in_use(&directory, &blob(modified - 1)));
        directory.remove("blob").unwrap();
        assert!(!is_in_use(&directory, &blob(modified)));
    }
}
