//! Proofs that one line is in the log: the line, its path in the Merkle tree of its segment, and
//! the signed checkpoint. A proof is one JSON document and can be checked without the log.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{EvidenceError, LogCheckpoint, decode_hash, encode_hash, read_checkpoint};
use crate::directory::LogDirectory;
use crate::merkle::{PATH_MAX, TreeHash, includes, inclusion_path};
use crate::note::VerifierKey;
use crate::segments::{LINE_BYTES_MAX, SegmentFile};
use crate::verify::directory_key;

/// Maximum lines of a segment for proofs: 128 MiB of hashes.
const LINES_MAX: u64 = 4 * 1024 * 1024;
/// Maximum bytes of a proof: the longest line with each byte escaped, and the rest.
const PROOF_BYTES_MAX: usize = 6 * LINE_BYTES_MAX + 256 * 1024;
/// Value of the field `proof`.
const PROOF_FORMAT: &str = "cofferdam-record-1";

/// Line to prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofTarget<'a> {
    /// Last line about a call: its end, or its beginning if the host was killed.
    Call(&'a str),
    /// Line of a segment.
    Line {
        /// Segment without its suffix.
        segment: &'a str,
        /// Number of the line, from 1.
        line: u64,
    },
}

/// Proof that a line is in a log. Its JSON form stands alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    proof: String,
    line: String,
    index: u64,
    path: Vec<String>,
    checkpoint: String,
    key: String,
}

/// Line that a proof shows to be in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProvenLine {
    /// State of the segment that contains the line.
    pub checkpoint: LogCheckpoint,
    /// Number of the line, from 1.
    pub number: u64,
    /// Line without its line end.
    pub line: String,
}

#[derive(Deserialize)]
struct CallId<'a> {
    #[serde(borrow)]
    id: std::borrow::Cow<'a, str>,
}

/// Proves that a line is in the log.
///
/// # Errors
///
/// Returns an error if the log cannot be read, or has no such line or no checkpoint behind it yet.
pub fn prove(directory: &Path, target: ProofTarget<'_>) -> Result<InclusionProof, EvidenceError> {
    let directory = LogDirectory::open(directory)?;
    let key = directory_key(&directory)?;
    let files = SegmentFile::list(&directory)?;
    for file in files.iter().rev().filter(|file| may_contain(file, target)) {
        if let Some(proof) = prove_in(&directory, file, target, &key)? {
            return Ok(proof);
        }
    }
    let found = match target {
        ProofTarget::Call(id) => {
            format!("no call in the log has the id `{id}`; `cofferdam log` lists ids")
        }
        ProofTarget::Line { segment, line } => {
            format!("the log has no line {line} in a segment `{segment}`")
        }
    };
    Err(EvidenceError::Unprovable(found))
}

fn may_contain(file: &SegmentFile, target: ProofTarget<'_>) -> bool {
    match target {
        ProofTarget::Call(id) => id.starts_with(file.process()),
        ProofTarget::Line { segment, .. } => file.stem() == segment,
    }
}

fn prove_in(
    directory: &LogDirectory,
    file: &SegmentFile,
    target: ProofTarget<'_>,
    key: &VerifierKey,
) -> Result<Option<InclusionProof>, EvidenceError> {
    // Before the lines: a running process may add some meanwhile.
    let note = read_checkpoint(directory, file.stem())?;
    let (mut leaves, mut found, mut lines) = (Vec::new(), None, file.lines()?);
    while let Some(line) = lines.next_line()? {
        let index = leaves.len() as u64;
        if index >= LINES_MAX {
            let error = format!("`{}` has more than {LINES_MAX} lines", file.stem());
            return Err(EvidenceError::Unprovable(error));
        }
        if line.is_whole && is_target(line.bytes, index, target) {
            found = Some((index, String::from_utf8_lossy(line.bytes).into_owned()));
        }
        if line.is_whole {
            leaves.push(TreeHash::leaf(line.bytes));
        }
    }
    let Some((index, line)) = found else { return Ok(None) };
    let note = note.ok_or_else(|| unsealed(file, index))?;
    let state = LogCheckpoint::open(&note, key)?;
    let sealed = usize::try_from(state.size).ok().and_then(|size| leaves.get(..size));
    let sealed = sealed.ok_or_else(|| unverified(file))?;
    let position = usize::try_from(index).unwrap_or(usize::MAX);
    let path = inclusion_path(sealed, position).ok_or_else(|| unsealed(file, index))?;
    let proof = InclusionProof {
        proof: PROOF_FORMAT.to_owned(),
        line,
        index,
        path: path.iter().map(encode_hash).collect(),
        checkpoint: note,
        key: key.to_string(),
    };
    // A segment that was changed has no proofs.
    proof.check(key).map_err(|_| unverified(file))?;
    Ok(Some(proof))
}

fn is_target(line: &[u8], index: u64, target: ProofTarget<'_>) -> bool {
    match target {
        ProofTarget::Line { line, .. } => index.checked_add(1) == Some(line),
        ProofTarget::Call(id) => {
            memchr::memmem::find(line, id.as_bytes()).is_some()
                && serde_json::from_slice(line).is_ok_and(|call: CallId<'_>| call.id == id)
        }
    }
}

fn unsealed(file: &SegmentFile, index: u64) -> EvidenceError {
    EvidenceError::Unprovable(format!(
        "line {} of `{}` is behind the last checkpoint; a running host makes one every 60 seconds",
        index + 1,
        file.stem()
    ))
}

fn unverified(file: &SegmentFile) -> EvidenceError {
    EvidenceError::Unprovable(format!(
        "`{}` does not match its checkpoint; `cofferdam log verify` says more",
        file.stem()
    ))
}

impl InclusionProof {
    /// Checks the proof with a key that the caller trusts. The key in the proof is only a hint.
    ///
    /// # Errors
    ///
    /// Returns an error if the proof or its signature does not hold.
    pub fn check(&self, key: &VerifierKey) -> Result<ProvenLine, EvidenceError> {
        if self.proof != PROOF_FORMAT {
            return Err(EvidenceError::Proof("it has an unknown format"));
        }
        if self.path.len() > PATH_MAX {
            return Err(EvidenceError::Proof("its path is too long"));
        }
        let checkpoint = LogCheckpoint::open(&self.checkpoint, key)?;
        let path: Option<Vec<_>> = self.path.iter().map(|hash| decode_hash(hash)).collect();
        let path = path.ok_or(EvidenceError::Proof("its path is malformed"))?;
        let leaf = TreeHash::leaf(self.line.as_bytes());
        let LogCheckpoint { size, root, .. } = &checkpoint;
        if !includes(&leaf, self.index, *size, &path, root) {
            return Err(EvidenceError::Proof("the line is not in the tree of the checkpoint"));
        }
        Ok(ProvenLine { checkpoint, number: self.index + 1, line: self.line.clone() })
    }
}

/// Checks the JSON form of a proof with a key that the caller trusts.
///
/// # Errors
///
/// Returns an error if the proof is malformed, or does not hold.
pub fn check_proof(json: &[u8], key: &VerifierKey) -> Result<ProvenLine, EvidenceError> {
    if json.len() > PROOF_BYTES_MAX {
        return Err(EvidenceError::Proof("it is too long"));
    }
    let proof: Result<InclusionProof, _> = serde_json::from_slice(json);
    proof.map_err(|_| EvidenceError::Proof("it is not the JSON of a proof"))?.check(key)
}

#[cfg(test)]
mod tests;
