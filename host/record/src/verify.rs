//! Checks a log against everything that states what it was: numbers of lines, checkpoints beside
//! the segments, heads in other segments, tombstones, and checkpoints that the user kept.
//!
//! The check reads each line once, on all cores. A segment is read again only if a statement is
//! about a size behind which no root was remembered, which no statement of this crate is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::checkpoint::{
    CHECKPOINT_SUFFIX, EvidenceError, LogCheckpoint, TOMBSTONES, read_checkpoint, read_tombstones,
};
use crate::copy::{PUBLIC_KEY, PUBLIC_KEY_BYTES_MAX};
use crate::directory::LogDirectory;
use crate::finding::{ClaimSource, FindingKind, LogFinding};
use crate::note::{SigningKey, VerifierKey, split_notes};
use crate::scan::SegmentScan;
use crate::segments::SegmentFile;
use crate::witness::{WitnessKey, WitnessStatus, WitnessedLines};

mod claims;

use claims::{ClaimCheck, ClaimSet};

/// Maximum number of findings in a report.
const FINDINGS_MAX: usize = 1000;
/// Maximum number of threads that read segments.
const THREADS_MAX: usize = 16;

type ScanMap = BTreeMap<String, SegmentScan>;
type TombstoneMap = BTreeMap<String, LogCheckpoint>;

/// What a log is compared with, besides its own statements.
#[derive(Debug, Clone, Copy, Default)]
pub struct VerifyOptions<'o> {
    /// Texts with checkpoints that the user has kept elsewhere, one after the other.
    pub kept: &'o [String],
    /// Key of the log. Without it, the key in the directory is used, which shows less: a key that
    /// was replaced together with all checkpoints is found only by what was kept.
    pub key: Option<&'o VerifierKey>,
    /// Keys of the witnesses whose signatures are checked.
    pub witnesses: &'o [WitnessKey],
}

/// Result of checking a log.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct VerifyReport {
    /// Number of segments that were read.
    pub segments: u64,
    /// Number of lines that were read.
    pub lines: u64,
    /// Bytes of these lines.
    pub bytes: u64,
    /// Number of lines behind the last checkpoint of their segment. Nothing shows a change of
    /// them, except to their numbers.
    pub lines_unsealed: u64,
    /// Number of segments that do not end with a `close` line: they are being written, their
    /// process was killed, or their end was removed together with newer checkpoints.
    pub segments_unclosed: u64,
    /// Number of segments that end in the middle of a line, which a killed process can leave.
    pub torn_tails: u64,
    /// Number of statements about segments that were compared.
    pub claims: u64,
    /// Number of these that are checkpoints kept by the user.
    pub kept_checkpoints: u64,
    /// Segments that retention removed, by their tombstones.
    pub pruned: BTreeSet<String>,
    /// Witnesses, in the order in which their keys were given.
    pub witnesses: Vec<WitnessStatus>,
    /// Notes to keep elsewhere: the checkpoints that no other segment covers.
    pub frontier: Vec<String>,
    /// Everything that is wrong; at most 1000.
    pub findings: Vec<LogFinding>,
    /// Number of findings beyond those.
    pub findings_left_out: u64,
}

impl VerifyReport {
    /// Returns true if nothing is wrong.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty() && self.findings_left_out == 0
    }

    fn add(&mut self, finding: LogFinding) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        } else {
            self.findings_left_out += 1;
        }
    }

    fn add_scan(&mut self, scan: &SegmentScan) {
        self.segments += 1;
        self.lines += scan.lines;
        self.bytes += scan.bytes;
        self.segments_unclosed += u64::from(!scan.is_closed);
        self.torn_tails += u64::from(scan.has_torn_tail);
        let sealed = scan.checkpoint.as_ref().map_or(0, |(_, state)| state.size);
        self.lines_unsealed += scan.lines.saturating_sub(sealed);
        scan.findings.iter().cloned().for_each(|finding| self.add(finding));
        self.findings_left_out += scan.findings_left_out;
    }
}

/// Checks a log, without witnesses. [`VerifyOptions`] describes `kept` and `key`.
///
/// # Errors
///
/// Same as [`verify_with`].
pub fn verify(
    directory: &Path,
    kept: &[String],
    key: Option<&VerifierKey>,
) -> Result<VerifyReport, EvidenceError> {
    verify_with(directory, VerifyOptions { kept, key, witnesses: &[] })
}

/// Checks a log.
///
/// # Errors
///
/// Returns an error if the directory or its key cannot be read, or a kept text has no checkpoint.
/// What is wrong with the log itself is in the report.
pub fn verify_with(
    directory: &Path,
    options: VerifyOptions<'_>,
) -> Result<VerifyReport, EvidenceError> {
    let VerifyOptions { kept, key: verifier, witnesses } = options;
    let directory = LogDirectory::open(directory)?;
    let key = match verifier {
        Some(key) => key.clone(),
        None => directory_key(&directory)?,
    };
    let mut report = VerifyReport::default();
    let mut claims = ClaimSet::default();
    add_kept(kept, &key, &mut claims, &mut report)?;
    add_witnesses(&directory, witnesses, &key, &mut claims, &mut report)?;
    let scans = read_all(&directory, &key, &claims)?;
    add_orphans(&directory, &key, &scans, &mut claims)?;
    scans.values().for_each(|scan| report.add_scan(scan));
    // After the segments: one that was pruned meanwhile has a tombstone already.
    let tombstones = last_states(&directory, &key, |line| {
        let (segment, kind) = (TOMBSTONES.to_owned(), FindingKind::InvalidTombstone);
        report.add(LogFinding { segment, line: Some(line), kind });
    })?;
    claims.add_scans(&scans);
    claims.add_tombstones(&tombstones, &scans);
    report.claims = claims.len();
    let check = ClaimCheck { directory: &directory, key: &key, scans, tombstones };
    check.run(claims, &mut report)?;
    report.frontier = frontier(&check.scans);
    Ok(report)
}

/// Reads the public key of the log in a directory.
///
/// # Errors
///
/// Returns an error if the directory cannot be read, or has no key yet.
pub fn log_key(directory: &Path) -> Result<VerifierKey, EvidenceError> {
    directory_key(&LogDirectory::open(directory)?)
}

pub(crate) fn directory_key(directory: &LogDirectory) -> Result<VerifierKey, EvidenceError> {
    if let Some(key) = SigningKey::load(directory)? {
        return Ok(key.verifier().clone());
    }
    // A copy of a log has its public key only.
    match directory.read(PUBLIC_KEY, PUBLIC_KEY_BYTES_MAX) {
        Ok(text) => Ok(VerifierKey::parse(&String::from_utf8_lossy(&text))?),
        Err(error) if error.is_not_found() => Err(EvidenceError::NoKey),
        Err(error) => Err(error.into()),
    }
}

fn add_kept(
    kept: &[String],
    key: &VerifierKey,
    claims: &mut ClaimSet,
    report: &mut VerifyReport,
) -> Result<(), EvidenceError> {
    let notes: Vec<_> = kept.iter().map(|text| split_notes(text)).collect();
    if notes.iter().any(Vec::is_empty) {
        return Err(EvidenceError::Checkpoint("an empty text"));
    }
    for note in notes.into_iter().flatten() {
        let state = LogCheckpoint::parse_unsigned(&note)?;
        if let Err(error) = LogCheckpoint::open(&note, key) {
            let kind = FindingKind::KeptSignature(error.to_string());
            report.add(LogFinding { segment: state.segment.clone(), line: None, kind });
        }
        report.kept_checkpoints += 1;
        claims.add(state, ClaimSource::Kept);
    }
    Ok(())
}

/// Adds the checkpoints that witnesses have signed.
fn add_witnesses(
    directory: &LogDirectory,
    witnesses: &[WitnessKey],
    key: &VerifierKey,
    claims: &mut ClaimSet,
    report: &mut VerifyReport,
) -> Result<(), EvidenceError> {
    if witnesses.is_empty() {
        return Ok(());
    }
    let lines = WitnessedLines::read(directory)?;
    for witness in witnesses {
        let (status, finding) = crate::witness::check(directory, &lines, witness, key)?;
        finding.into_iter().for_each(|finding| report.add(finding));
        for state in lines.newest(status.checkpoints).into_values() {
            claims.add(state, ClaimSource::Witness(witness.name().to_owned()));
        }
        report.witnesses.push(status);
    }
    Ok(())
}

/// Adds the checkpoints whose segments were not read.
fn add_orphans(
    directory: &LogDirectory,
    key: &VerifierKey,
    scans: &ScanMap,
    claims: &mut ClaimSet,
) -> Result<(), EvidenceError> {
    for name in directory.names(".")? {
        let Some(segment) = name.strip_suffix(CHECKPOINT_SUFFIX) else { continue };
        if scans.contains_key(segment) {
            continue;
        }
        let note = read_checkpoint(directory, segment)?;
        if let Some(Ok(state)) = note.map(|note| LogCheckpoint::open(&note, key)) {
            claims.add(state, ClaimSource::Checkpoint);
        }
    }
    Ok(())
}

/// Reads the tombstones: the last state of each pruned segment. The numbers of invalid lines go to
/// `invalid`.
pub(crate) fn last_states(
    directory: &LogDirectory,
    key: &VerifierKey,
    mut invalid: impl FnMut(u64),
) -> Result<TombstoneMap, EvidenceError> {
    let mut tombstones = TombstoneMap::new();
    for tombstone in read_tombstones(directory, key)? {
        match tombstone {
            // A crash while pruning leaves a second one without lines.
            Ok(state) => match tombstones.get(&state.segment) {
                Some(other) if other.size >= state.size => {}
                _ => drop(tombstones.insert(state.segment.clone(), state)),
            },
            Err(line) => invalid(line),
        }
    }
    Ok(tombstones)
}

/// Reads all segments, several at a time.
fn read_all(
    directory: &LogDirectory,
    key: &VerifierKey,
    claims: &ClaimSet,
) -> Result<ScanMap, EvidenceError> {
    let files = SegmentFile::list(directory)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut scans = Vec::new();
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            scans.extend(SegmentScan::read(file, key, claims.sizes(file.stem())));
        }
        scans
    };
    let scans = std::thread::scope(|scope| {
        let spare = threads.min(THREADS_MAX).min(files.len()).saturating_sub(1);
        let builders = (0..spare).map(|_| std::thread::Builder::new().spawn_scoped(scope, work));
        let workers: Vec<_> = builders.filter_map(Result::ok).collect();
        let mut scans = work();
        let mut is_complete = true;
        for worker in workers {
            match worker.join() {
                Ok(more) => scans.extend(more),
                Err(_) => is_complete = false,
            }
        }
        is_complete.then_some(scans)
    });
    let scans = scans.ok_or(EvidenceError::Interrupted)?;
    Ok(scans.into_iter().map(|scan| (scan.segment.clone(), scan)).collect())
}

/// Returns the checkpoints that no `heads` line behind another checkpoint covers.
fn frontier(scans: &ScanMap) -> Vec<String> {
    let mut covered: BTreeMap<&str, u64> = BTreeMap::new();
    for scan in scans.values() {
        let sealed = scan.checkpoint.as_ref().map_or(0, |(_, state)| state.size);
        for (_, head) in scan.heads.iter().filter(|(line, _)| *line <= sealed) {
            let size = covered.entry(&head.segment).or_default();
            *size = head.size.max(*size);
        }
    }
    let is_open =
        |state: &LogCheckpoint| covered.get(&*state.segment).is_none_or(|s| *s < state.size);
    let checkpoints = scans.values().filter_map(|scan| scan.checkpoint.as_ref());
    checkpoints.filter(|(_, state)| is_open(state)).map(|(note, _)| note.clone()).collect()
}

#[cfg(test)]
mod tests;
