//! Statements about segments, and their comparison with what was read.

use std::collections::{BTreeMap, BTreeSet};

use super::{ScanMap, TombstoneMap, VerifyReport, last_states};
use crate::RecordError;
use crate::checkpoint::{EvidenceError, LogCheckpoint};
use crate::directory::LogDirectory;
use crate::finding::{ClaimSource, FindingKind, LogFinding};
use crate::note::VerifierKey;
use crate::scan::SegmentScan;
use crate::segments::SegmentFile;

/// Lines that a segment may have without a checkpoint: its process was killed at its start.
const LINES_UNSEALED_MAX: u64 = 2;

/// Statement about the state of a segment.
#[derive(Debug, Clone)]
pub(super) struct SegmentClaim {
    state: LogCheckpoint,
    by: ClaimSource,
}

/// Statements by segment.
#[derive(Debug, Default)]
pub(super) struct ClaimSet {
    by_segment: BTreeMap<String, Vec<SegmentClaim>>,
}

/// Everything that statements are compared with.
pub(super) struct ClaimCheck<'a> {
    pub(super) directory: &'a LogDirectory,
    pub(super) key: &'a VerifierKey,
    pub(super) scans: ScanMap,
    pub(super) tombstones: TombstoneMap,
}

impl ClaimSet {
    pub(super) fn add(&mut self, state: LogCheckpoint, by: ClaimSource) {
        let claims = self.by_segment.entry(state.segment.clone()).or_default();
        claims.push(SegmentClaim { state, by });
    }

    /// Adds the checkpoints beside the segments and the heads in them.
    pub(super) fn add_scans(&mut self, scans: &ScanMap) {
        for scan in scans.values() {
            if let Some((_, state)) = &scan.checkpoint {
                self.add(state.clone(), ClaimSource::Checkpoint);
            }
            for (line, head) in &scan.heads {
                let by = ClaimSource::Heads { segment: scan.segment.clone(), line: *line };
                self.add(head.clone(), by);
            }
        }
    }

    /// Adds the tombstones of segments that are still there.
    pub(super) fn add_tombstones(&mut self, tombstones: &TombstoneMap, scans: &ScanMap) {
        for (segment, state) in tombstones {
            if scans.contains_key(segment) {
                self.add(state.clone(), ClaimSource::Tombstone);
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.by_segment.values().map(|claims| claims.len() as u64).sum()
    }

    /// Returns the sizes that statements about a segment have.
    pub(super) fn sizes(&self, segment: &str) -> BTreeSet<u64> {
        let claims = self.by_segment.get(segment).into_iter().flatten();
        claims.map(|claim| claim.state.size).collect()
    }
}

impl ClaimCheck<'_> {
    /// Compares all statements, and finds the segments that have none.
    pub(super) fn run(
        &self,
        claims: ClaimSet,
        report: &mut VerifyReport,
    ) -> Result<(), EvidenceError> {
        for scan in self.scans.values().filter(|scan| self.lacks_checkpoint(scan)) {
            report.add(finding(&scan.segment, FindingKind::NoCheckpoint));
        }
        let mut removed = Vec::new();
        // Those that no other statement names.
        let is_silent = |segment: &&String| {
            !self.scans.contains_key(*segment) && !claims.by_segment.contains_key(*segment)
        };
        report.pruned.extend(self.tombstones.keys().filter(is_silent).cloned());
        for (segment, claims) in claims.by_segment {
            let scan = self.scans.get(&segment);
            let is_settled = match scan {
                Some(scan) => claims.iter().all(|claim| is_answered(scan, claim)),
                None => self.is_pruned(&segment),
            };
            let again = if is_settled { None } else { self.read_again(&segment, &claims)? };
            match again.as_ref().or(scan.filter(|_| is_settled)) {
                Some(scan) => compare(scan, &claims, report),
                None => removed.push((segment, claims)),
            }
        }
        self.check_removed(&removed, report)
    }

    fn lacks_checkpoint(&self, scan: &SegmentScan) -> bool {
        scan.lines > LINES_UNSEALED_MAX
            && !scan.has_checkpoint_file
            && !self.is_pruned(&scan.segment)
    }

    fn is_pruned(&self, segment: &str) -> bool {
        self.tombstones.contains_key(segment)
    }

    /// Reads a segment again that has grown or appeared since the first time, or that lacks the
    /// root of a size.
    fn read_again(
        &self,
        segment: &str,
        claims: &[SegmentClaim],
    ) -> Result<Option<SegmentScan>, RecordError> {
        let files = SegmentFile::list(self.directory)?;
        let file = files.iter().find(|file| file.stem() == segment);
        let sizes = claims.iter().map(|claim| claim.state.size).collect();
        Ok(file.and_then(|file| SegmentScan::read(file, self.key, sizes)))
    }

    fn check_removed(
        &self,
        removed: &[(String, Vec<SegmentClaim>)],
        report: &mut VerifyReport,
    ) -> Result<(), EvidenceError> {
        let is_known = removed.iter().all(|(segment, _)| self.is_pruned(segment));
        // Some may have been pruned since the tombstones were read.
        let fresh =
            if is_known { None } else { Some(last_states(self.directory, self.key, |_| {})?) };
        let tombstones = fresh.as_ref().unwrap_or(&self.tombstones);
        for (segment, claims) in removed {
            match contradiction(tombstones.get(segment), claims) {
                Some(kind) => report.add(finding(segment, kind)),
                None => drop(report.pruned.insert(segment.clone())),
            }
        }
        Ok(())
    }
}

/// Returns the finding about a removed segment, unless its tombstone confirms all statements.
fn contradiction(
    tombstone: Option<&LogCheckpoint>,
    claims: &[SegmentClaim],
) -> Option<FindingKind> {
    let is_confirmed = |claim: &&SegmentClaim| {
        tombstone
            .is_some_and(|tombstone| tombstone.size > claim.state.size || *tombstone == claim.state)
    };
    let SegmentClaim { state, by } = last(claims.iter().filter(|claim| !is_confirmed(claim)))?;
    let (claimed, by) = (state.size, by.clone());
    Some(match tombstone {
        Some(tombstone) => FindingKind::TombstoneMismatch { claimed, pruned: tombstone.size, by },
        None => FindingKind::Missing { claimed, by },
    })
}

/// Compares one segment: at most one finding about its length, and one about its lines, which
/// names the smallest part that cannot be confirmed.
fn compare(scan: &SegmentScan, claims: &[SegmentClaim], report: &mut VerifyReport) {
    let is_confirmed =
        |claim: &&SegmentClaim| scan.roots.get(&claim.state.size) == Some(&claim.state.root);
    let longer = claims.iter().filter(|claim| claim.state.size > scan.lines);
    if let Some(SegmentClaim { state, by }) = last(longer) {
        let (claimed, found, by) = (state.size, scan.lines, by.clone());
        report.add(finding(&scan.segment, FindingKind::Truncated { claimed, found, by }));
    }
    let within = claims.iter().filter(|claim| claim.state.size <= scan.lines);
    let changed = within.clone().filter(|claim| !is_confirmed(claim));
    let Some(first) = changed.min_by_key(|claim| (claim.state.size, claim.by.clone())) else {
        return;
    };
    let (claimed, by) = (first.state.size, first.by.clone());
    let intact = within.filter(is_confirmed).map(|claim| claim.state.size);
    let intact = intact.filter(|size| *size < claimed).max().unwrap_or(0);
    report.add(finding(&scan.segment, FindingKind::Changed { claimed, intact, by }));
}

/// Returns true if a scan can tell if a statement holds. A segment that is still written may have
/// grown since it was read.
fn is_answered(scan: &SegmentScan, claim: &SegmentClaim) -> bool {
    let is_longer = claim.state.size > scan.lines;
    if is_longer { scan.is_closed } else { scan.roots.contains_key(&claim.state.size) }
}

/// Returns the statement about the most lines; of several, the user's own first.
fn last<'a>(claims: impl Iterator<Item = &'a SegmentClaim>) -> Option<&'a SegmentClaim> {
    claims.max_by_key(|claim| (claim.state.size, std::cmp::Reverse(claim.by.clone())))
}

fn finding(segment: &str, kind: FindingKind) -> LogFinding {
    LogFinding { segment: segment.to_owned(), line: None, kind }
}
