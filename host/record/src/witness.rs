//! Witnesses of a log (C2SP `tlog-witness`): services of others that sign its checkpoints with
//! their own key and clock, so that a rewritten or shortened log is found.
//!
//! A witness knows a log by one origin, and a log has a Merkle tree for each segment. So the file
//! `witnessed` has a line for each checkpoint of a segment, and a tree of its own over these lines,
//! whose origin is the name of the log's key. Witnesses sign the states of this tree. The last
//! state that a witness has signed is in `witness-<id of its key>.note`, with its signature.

#[cfg(feature = "witness")]
mod client;
mod key;
mod lines;
mod note;
#[cfg(feature = "witness")]
mod task;

use crate::EvidenceError;
use crate::directory::LogDirectory;
use crate::finding::{FindingKind, LogFinding};
use crate::note::VerifierKey;
use crate::time::UtcTime;

#[cfg(feature = "witness")]
pub use self::client::{WitnessClient, WitnessError, WitnessOptions};
pub use self::key::WitnessKey;
use self::lines::WITNESSED;
pub(crate) use self::lines::WitnessedLines;
pub(crate) use self::note::{SignedState, read_ahead};
#[cfg(feature = "witness")]
pub use self::task::{WitnessHealth, WitnessTask};

/// State of a witness in the check of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WitnessStatus {
    /// Name of the witness.
    pub name: String,
    /// Number of checkpoints that it has signed; none if it has signed nothing of this log.
    pub checkpoints: u64,
    /// Time of its last signature, by its own clock.
    pub at: Option<UtcTime>,
}

/// Checks what a witness has signed against the lines of the log. Returns the number of lines that
/// the witness confirms, with its state and what is wrong.
pub(crate) fn check(
    directory: &LogDirectory,
    lines: &WitnessedLines,
    witness: &WitnessKey,
    log: &VerifierKey,
) -> Result<(WitnessStatus, Option<LogFinding>), EvidenceError> {
    let name = witness.name().to_owned();
    let mut status = WitnessStatus { name: name.clone(), checkpoints: 0, at: None };
    let finding = |kind| Some(LogFinding { segment: WITNESSED.to_owned(), line: None, kind });
    let found = lines.len();
    let signed = match SignedState::read(directory, witness, log) {
        Ok(signed) => signed,
        Err(error) => {
            return Ok((status, finding(FindingKind::InvalidWitness(error.to_string()))));
        }
    };
    if let Some(signed) = read_ahead(directory, witness)?.filter(|ahead| *ahead > found) {
        return Ok((status, finding(FindingKind::WitnessAhead { name, signed, found })));
    }
    let Some(SignedState { size, root, at, .. }) = signed else { return Ok((status, None)) };
    if size > found {
        return Ok((status, finding(FindingKind::WitnessAhead { name, signed: size, found })));
    }
    if lines.root(size) != Some(root) {
        return Ok((status, finding(FindingKind::WitnessMismatch { name, signed: size })));
    }
    (status.checkpoints, status.at) = (size, Some(at));
    Ok((status, None))
}
