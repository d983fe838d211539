//! Findings of a check of the log, in words for the user.

use std::fmt;

/// Source of a statement about the state of a segment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimSource {
    /// Checkpoint that the user kept.
    Kept,
    /// Checkpoint in the file beside the segment.
    Checkpoint,
    /// Tombstone that retention signed.
    Tombstone,
    /// Line of the file `witnessed` that a witness has signed.
    Witness(String),
    /// `heads` line of another segment.
    Heads {
        /// Segment with the line.
        segment: String,
        /// Number of the line, from 1.
        line: u64,
    },
}

/// Kinds of findings. Each one means that the log is not what was written, or cannot show it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// A line has a later number than the one that follows its predecessor.
    Gap {
        /// Number that the line should have.
        expected: u64,
        /// Number that it has.
        found: u64,
    },
    /// A line has the number of an earlier line.
    Repeat {
        /// Number that the line should have.
        expected: u64,
        /// Number that it has.
        found: u64,
    },
    /// A line is not one of a log.
    Malformed,
    /// A line stands behind the one that closes the segment.
    AfterClose,
    /// The last line of a closed segment has no line end.
    Torn,
    /// The segment cannot be read to its end.
    Unreadable(String),
    /// The segment has calls, but no checkpoint beside it.
    NoCheckpoint,
    /// The checkpoint beside the segment is invalid.
    InvalidCheckpoint(String),
    /// The segment has fewer lines than a statement says.
    Truncated {
        /// Number of lines in the statement.
        claimed: u64,
        /// Number of lines in the segment.
        found: u64,
        /// Source of the statement.
        by: ClaimSource,
    },
    /// The lines of the segment are not those of a statement.
    Changed {
        /// Number of lines in the statement.
        claimed: u64,
        /// Number of lines at the start that another statement confirms.
        intact: u64,
        /// Source of the statement.
        by: ClaimSource,
    },
    /// The segment does not exist, and no tombstone says that retention removed it.
    Missing {
        /// Number of lines in the statement.
        claimed: u64,
        /// Source of the statement.
        by: ClaimSource,
    },
    /// The last state in the tombstone is older than, or differs from, that of a statement.
    TombstoneMismatch {
        /// Number of lines in the statement.
        claimed: u64,
        /// Number of lines in the tombstone.
        pruned: u64,
        /// Source of the statement.
        by: ClaimSource,
    },
    /// A line of the file `pruned` is not a tombstone of this log.
    InvalidTombstone,
    /// A kept checkpoint is not signed by the key of the log.
    KeptSignature(String),
    /// The note of a witness is not signed by the log and the witness.
    InvalidWitness(String),
    /// A witness has signed other checkpoints than those of the log.
    WitnessMismatch {
        /// Name of the witness.
        name: String,
        /// Number of checkpoints that it has signed.
        signed: u64,
    },
    /// A witness has signed more checkpoints than the log has.
    WitnessAhead {
        /// Name of the witness.
        name: String,
        /// Number of checkpoints that it has signed.
        signed: u64,
        /// Number of checkpoints that the log has.
        found: u64,
    },
}

/// One thing that is wrong with a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFinding {
    /// Segment without its suffix, or another file of the log.
    pub segment: String,
    /// Number of the line, from 1; none if the finding concerns the whole file.
    pub line: Option<u64>,
    /// Kind of the finding.
    pub kind: FindingKind,
}

impl fmt::Display for ClaimSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept => formatter.write_str("a kept checkpoint"),
            Self::Checkpoint => formatter.write_str("its own checkpoint"),
            Self::Tombstone => formatter.write_str("its tombstone"),
            Self::Witness(name) => write!(formatter, "the witness `{name}`"),
            Self::Heads { segment, line } => write!(formatter, "line {line} of `{segment}`"),
        }
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { expected, found } => {
                write!(f, "expected line number {expected}, found {found}: lines are missing")
            }
            Self::Repeat { expected, found } => write!(
                f,
                "expected line number {expected}, found {found}: a line was repeated or moved"
            ),
            Self::Malformed => f.write_str("expected a line of the log, found something else"),
            Self::AfterClose => f.write_str("a line was added behind the end of the segment"),
            Self::Torn => f.write_str("the segment was closed, but its last line is incomplete"),
            Self::Unreadable(error) => write!(f, "cannot be read to its end: {error}"),
            Self::NoCheckpoint => f.write_str("has calls but no checkpoint file"),
            Self::InvalidCheckpoint(error) => write!(f, "its checkpoint file is invalid: {error}"),
            Self::Truncated { claimed, found, by } => {
                write!(f, "{by} states {claimed} lines, found {found}: lines were removed")
            }
            Self::Changed { claimed, intact, by } => write!(
                f,
                "a line among {} to {claimed} was changed: {by} states another root",
                intact + 1
            ),
            Self::Missing { claimed, by } => write!(
                f,
                "does not exist, although {by} states {claimed} lines, and was not pruned"
            ),
            Self::TombstoneMismatch { claimed, pruned, by } => write!(
                f,
                "was pruned with {pruned} lines, which contradicts {by} with {claimed} lines"
            ),
            Self::InvalidTombstone => f.write_str("expected a tombstone signed by the log's key"),
            Self::KeptSignature(error) => {
                write!(f, "the kept checkpoint is not from this log's key: {error}")
            }
            Self::InvalidWitness(error) => {
                write!(f, "the note of a witness is invalid: {error}")
            }
            Self::WitnessMismatch { name, signed } => write!(
                f,
                "the witness `{name}` has signed {signed} checkpoints, and not the first {signed} \
                 that the log has: some were changed"
            ),
            Self::WitnessAhead { name, signed, found } => write!(
                f,
                "the witness `{name}` has signed {signed} checkpoints, found {found}: the log was \
                 replaced by an older state"
            ),
        }
    }
}

impl fmt::Display for LogFinding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(formatter, "{}:{line}: {}", self.segment, self.kind),
            None => write!(formatter, "{}: {}", self.segment, self.kind),
        }
    }
}
