//! States of the tree over the witnessed lines, as notes that the log and a witness have signed.

#[cfg(feature = "witness")]
use std::collections::BTreeSet;

use crate::checkpoint::parse_state_of;
use crate::directory::LogDirectory;
use crate::merkle::TreeHash;
use crate::note::{NOTE_BYTES_MAX, VerifierKey};
use crate::{EvidenceError, UtcTime, WitnessKey};

const NOTE_PREFIX: &str = "witness-";
const NOTE_SUFFIX: &str = ".note";

/// State of the tree over the witnessed lines, signed by a witness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedState {
    pub(crate) size: u64,
    pub(crate) root: TreeHash,
    /// Time of the witness's signature.
    pub(crate) at: UtcTime,
}

impl SignedState {
    /// Reads the last state that a witness has signed. None if it has signed nothing.
    pub(crate) fn read(
        directory: &LogDirectory,
        witness: &WitnessKey,
        log: &VerifierKey,
    ) -> Result<Option<Self>, EvidenceError> {
        match directory.read(&note_name(witness), NOTE_BYTES_MAX as u64) {
            Ok(bytes) => Self::open(&String::from_utf8_lossy(&bytes), witness, log).map(Some),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Checks a note that the log and the witness have signed.
    pub(crate) fn open(
        note: &str,
        witness: &WitnessKey,
        log: &VerifierKey,
    ) -> Result<Self, EvidenceError> {
        let text = log.open(note)?;
        if text.lines().next() != Some(log.name()) {
            return Err(EvidenceError::Checkpoint("the origin of another log"));
        }
        let (size, root) = parse_state_of(text)?;
        Ok(Self { size, root, at: witness.check(note)? })
    }
}

/// Returns the sizes of the states that witnesses have signed last, those of former witnesses
/// included.
#[cfg(feature = "witness")]
pub(super) fn signed_sizes(directory: &LogDirectory) -> Result<BTreeSet<usize>, EvidenceError> {
    let mut sizes = BTreeSet::new();
    for name in directory.names(".")? {
        if name.starts_with(NOTE_PREFIX) && name.ends_with(NOTE_SUFFIX) {
            let note = directory.read(&name, NOTE_BYTES_MAX as u64)?;
            let state = parse_state_of(&String::from_utf8_lossy(&note));
            sizes.extend(state.ok().and_then(|(size, _)| usize::try_from(size).ok()));
        }
    }
    Ok(sizes)
}

/// Returns the number of lines that a witness says it has signed, if the log had fewer.
pub(crate) fn read_ahead(
    directory: &LogDirectory,
    witness: &WitnessKey,
) -> Result<Option<u64>, EvidenceError> {
    match directory.read(&ahead_name(witness), 32) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().parse().ok()),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the name of the file with the last state that a witness has signed.
pub(super) fn note_name(witness: &WitnessKey) -> String {
    format!("{NOTE_PREFIX}{}{NOTE_SUFFIX}", witness.id())
}

/// Returns the name of the file that says that a witness has signed more than the log has.
pub(super) fn ahead_name(witness: &WitnessKey) -> String {
    format!("witness-{}.ahead", witness.id())
}
